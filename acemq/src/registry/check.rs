//! What the settings of a consumer must keep to; the same questions are asked when compiling and when starting.

use std::{fmt, time::Duration};

use super::{Bind, ConsumerSpec, Idempotent};
use crate::policy::{BROKER_CONSUMER_TIMEOUT, PolicyError, RetryPolicy, millis, try_duration};

/// The longest name that AMQP carries, in bytes.
const LONGEST_NAME: usize = 255;

/// What is wrong with the settings of a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpecError {
    /// A queue without a name.
    QueueEmpty,
    /// A queue of the broker's own.
    QueueReserved,
    /// A queue that acemq derives from another one.
    QueueDerived,
    /// A name that AMQP cannot carry.
    QueueTooLong,
    /// A name so long that a derived one does not fit.
    DerivedTooLong,
    /// A prefetch of zero.
    NoPrefetch,
    /// A concurrency of zero.
    NoConcurrency,
    /// More handlers than deliveries.
    ConcurrencyAbovePrefetch,
    /// A time-out of no length.
    NoTimeout,
    /// A time-out that outlasts the patience of the broker.
    TimeoutTooLong,
    /// A time-out that, with the wait that follows it, outlasts the patience of the broker.
    HeldTooLong,
    /// A binding to the default exchange.
    BindDefaultExchange,
    /// A binding with a name that AMQP cannot carry.
    BindTooLong,
    /// A name for logs that is empty.
    NameEmpty,
    /// A retention of no length.
    NoRetention,
    /// A claim of no length.
    NoClaim,
    /// A wait of no length before a claimed message is looked at again.
    NoInProgressDelay,
    /// A wait that outlasts the claim that it waits for.
    InProgressNotBelowClaim,
    /// A wait that outlasts the patience of the broker.
    InProgressTooLong,
    /// A message is forgotten while its copies may still come.
    RetentionBelowSchedule,
    /// A store without a name.
    StoreEmpty,
    /// Something in the policy.
    Policy(PolicyError),
}

impl SpecError {
    /// The sentence for a person: what is wrong and what to write.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::QueueEmpty => "the queue needs a name: an empty one asks the broker to invent one",
            Self::QueueReserved => "names that start with `amq.` belong to the broker: name a queue of your own",
            Self::QueueDerived => {
                "names that end in `.dlq`, `.parked` or `.retry.` and a delay are declared by acemq itself: name the queue that they belong to"
            }
            Self::QueueTooLong => "a queue name must not be longer than 255 bytes: shorten it",
            Self::DerivedTooLong => {
                "this name leaves no room for the queues that acemq derives from it, such as `{queue}.parked` and `{queue}.retry.160s`, in the 255 bytes of a name: shorten it"
            }
            Self::NoPrefetch => "`prefetch` must be at least 1: zero means no limit at all to the broker",
            Self::NoConcurrency => "`concurrency` must be at least 1: no handler would ever run",
            Self::ConcurrencyAbovePrefetch => {
                "`concurrency` must not exceed `prefetch` (20 unless set), since a handler without a delivery has nothing to do: raise `prefetch` as well"
            }
            Self::NoTimeout => "`timeout` must be longer than zero; leave it out for no limit",
            Self::TimeoutTooLong => {
                "`timeout` must be shorter than 30 minutes: the broker gives up on a consumer that holds a delivery for so long"
            }
            Self::HeldTooLong => {
                "`timeout` and the longest wait in the consumer together must stay under 30 minutes, after which the broker gives up on the consumer: shorten one, or shorten `wait_in_broker_from`"
            }
            Self::BindDefaultExchange => {
                "the default exchange takes no bindings: name another exchange, or drop the binding, since every queue is reached there by its own name"
            }
            Self::BindTooLong => "the names in a binding must not be longer than 255 bytes",
            Self::NameEmpty => "`name` must not be empty; leave it out for the path of the function",
            Self::NoRetention => "`retention` must be longer than zero: a duplicate would never be recognised",
            Self::NoClaim => "`claim` must be longer than zero: it would end before the handler starts",
            Self::NoInProgressDelay => {
                "`in_progress_delay` must be longer than zero: the message would come back at once, again and again"
            }
            Self::InProgressNotBelowClaim => {
                "`in_progress_delay` (5s unless set) must be shorter than `claim` (5m unless set): a message that waits for a claim should be looked at before the claim ends"
            }
            Self::InProgressTooLong => {
                "`in_progress_delay` must be shorter than 30 minutes: the broker gives up on a consumer that holds a delivery for so long"
            }
            Self::RetentionBelowSchedule => {
                "`retention` (1d unless set) is shorter than all retries together: a handled message would be forgotten while a copy may still wait; lengthen it, or shorten the schedule with `give_up_after`"
            }
            Self::StoreEmpty => "`store` must not be empty; leave it out for the application's default store",
            Self::Policy(error) => error.message(),
        }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for SpecError {}

type Check = Result<(), SpecError>;

pub(crate) const fn queue(name: &str) -> Check {
    if name.is_empty() {
        Err(SpecError::QueueEmpty)
    } else if matches!(name.as_bytes(), [b'a', b'm', b'q', b'.', ..]) {
        Err(SpecError::QueueReserved)
    } else if is_derived(name) {
        Err(SpecError::QueueDerived)
    } else if name.len() > LONGEST_NAME {
        Err(SpecError::QueueTooLong)
    } else {
        Ok(())
    }
}

const fn is_derived(name: &str) -> bool {
    let bytes = name.as_bytes();
    if ends_with(bytes, b".dlq") || ends_with(bytes, b".parked") {
        return true;
    }
    let Some(dot) = last_dot(bytes) else {
        return false;
    };
    let (stem, delay) = bytes.split_at(dot);
    let Some((_, delay)) = delay.split_first() else {
        return false;
    };
    ends_with(stem, b".retry") && matches!(std::str::from_utf8(delay), Ok(delay) if try_duration(delay).is_ok())
}

const fn last_dot(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    while let [start @ .., byte] = rest {
        if *byte == b'.' {
            return Some(start.len());
        }
        rest = start;
    }
    None
}

const fn ends_with(mut text: &[u8], mut end: &[u8]) -> bool {
    while let [end_start @ .., wanted] = end {
        match text {
            [text_start @ .., found] if *found == *wanted => {
                text = text_start;
                end = end_start;
            }
            _ => return false,
        }
    }
    true
}

/// The longest ending that acemq puts behind the name of a queue: `.parked`, or `.retry.` and a delay.
pub(crate) const fn derived(name: &str, retry: &RetryPolicy) -> Check {
    let rung = retry.longest_rung_name();
    let ending = if rung == 0 { ".parked".len() } else { ".retry.".len() + rung };
    if name.len() + ending > LONGEST_NAME { Err(SpecError::DerivedTooLong) } else { Ok(()) }
}

pub(crate) const fn prefetch(prefetch: u16) -> Check {
    if prefetch == 0 { Err(SpecError::NoPrefetch) } else { Ok(()) }
}

pub(crate) const fn concurrency(concurrency: u16, prefetch: u16) -> Check {
    if concurrency == 0 {
        Err(SpecError::NoConcurrency)
    } else if concurrency > prefetch && prefetch > 0 {
        Err(SpecError::ConcurrencyAbovePrefetch)
    } else {
        Ok(())
    }
}

pub(crate) const fn timeout(timeout: Duration, retry: &RetryPolicy) -> Check {
    let patience = millis(BROKER_CONSUMER_TIMEOUT);
    let wait = millis(retry.longest_held_wait());
    if timeout.is_zero() {
        Err(SpecError::NoTimeout)
    } else if millis(timeout) >= patience {
        Err(SpecError::TimeoutTooLong)
    } else if wait < patience && millis(timeout) + wait >= patience {
        Err(SpecError::HeldTooLong)
    } else {
        Ok(())
    }
}

pub(crate) const fn bind(bind: &Bind) -> Check {
    if bind.exchange.is_empty() {
        Err(SpecError::BindDefaultExchange)
    } else if bind.exchange.len() > LONGEST_NAME || bind.routing_key.len() > LONGEST_NAME {
        Err(SpecError::BindTooLong)
    } else {
        Ok(())
    }
}

pub(crate) const fn name(name: &str) -> Check {
    if name.is_empty() { Err(SpecError::NameEmpty) } else { Ok(()) }
}

pub(crate) const fn claim(claim: Duration) -> Check {
    // A handler may run longer than its claim: the claim is renewed while it does.
    if claim.is_zero() { Err(SpecError::NoClaim) } else { Ok(()) }
}

pub(crate) const fn in_progress_delay(delay: Duration, claim: Duration) -> Check {
    if delay.is_zero() {
        Err(SpecError::NoInProgressDelay)
    } else if !claim.is_zero() && delay.as_nanos() >= claim.as_nanos() {
        Err(SpecError::InProgressNotBelowClaim)
    } else if millis(delay) >= millis(BROKER_CONSUMER_TIMEOUT) {
        Err(SpecError::InProgressTooLong)
    } else {
        Ok(())
    }
}

pub(crate) const fn retention(retention: Duration, retry: &RetryPolicy) -> Check {
    if retention.is_zero() {
        return Err(SpecError::NoRetention);
    }
    match retry.longest_life() {
        Some(life) if retention.as_nanos() < life.as_nanos() => Err(SpecError::RetentionBelowSchedule),
        _ => Ok(()),
    }
}

pub(crate) const fn store(store: &str) -> Check {
    if store.is_empty() { Err(SpecError::StoreEmpty) } else { Ok(()) }
}

impl ConsumerSpec {
    /// Checks what the attribute checks when it compiles, for a consumer that is built by hand: everything that is wrong.
    ///
    /// # Examples
    /// ```
    /// use acemq::registry::{ConsumerSpec, SpecError};
    ///
    /// let spec = ConsumerSpec { prefetch: 0, ..ConsumerSpec::new("") };
    /// assert_eq!(spec.validate(), [SpecError::QueueEmpty, SpecError::NoPrefetch]);
    /// ```
    #[must_use]
    pub fn validate(&self) -> Vec<SpecError> {
        let policy = self.retry.validate();
        let mut checks = vec![
            queue(self.queue).and_then(|()| derived(self.queue, &self.retry)),
            policy.map_err(SpecError::Policy),
            prefetch(self.prefetch),
            concurrency(self.concurrency, self.prefetch),
        ];
        checks.extend(self.timeout.map(|limit| timeout(limit, &self.retry)));
        checks.extend(self.bind.iter().map(bind));
        if let Some(idempotent) = &self.idempotent {
            checks.extend(idempotent.checks(&self.retry));
        }
        checks.into_iter().filter_map(Result::err).collect()
    }
}

impl Idempotent {
    fn checks(&self, retry: &RetryPolicy) -> [Check; 4] {
        [
            claim(self.claim),
            in_progress_delay(self.in_progress_delay, self.claim),
            retention(self.retention, retry),
            self.store.map_or(Ok(()), store),
        ]
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
