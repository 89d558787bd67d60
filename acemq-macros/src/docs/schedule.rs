//! The waits of a policy that is written in literals, as a table.

use syn::{Expr, ExprLit, Lit};

use crate::{
    args::Options,
    retry::{Common, Retry},
    values::Length,
};

/// A policy whose every value is a literal. Its arithmetic is that of `acemq::RetryPolicy`, which a test compares it with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schedule {
    /// `None` is without end.
    attempts: Option<u64>,
    first: u64,
    /// The longest wait, where waits double.
    max: Option<u64>,
    jitter: f64,
    threshold: u64,
}

/// Some waits of one length.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The first delivery that follows such a wait.
    pub(crate) from: u64,
    /// The last one; `None` is without end.
    pub(crate) to: Option<u64>,
    /// In milliseconds.
    pub(crate) delay: u64,
    pub(crate) in_broker: bool,
}

impl Schedule {
    /// The schedule, if all of it can be known without the compiler.
    pub(crate) fn of(options: &Options) -> Option<Self> {
        let plain = |attempts, first| Self { attempts, first, max: None, jitter: 0.0, threshold: 30_000 };
        match &options.retry {
            None => {
                let delay = options.retry_delay.as_ref().map_or(Some(5_000), milliseconds)?;
                Some(plain(None, delay))
            }
            Some(Retry::None) => Some(plain(Some(1), 0)),
            Some(Retry::Constant(_)) => None,
            Some(Retry::Fixed { attempts, delay, common }) => {
                plain(Some(whole(attempts)?), milliseconds(delay)?).with(common, 0.0)
            }
            Some(Retry::Exponential { attempts, initial, max, common }) => {
                let doubling = Self { max: Some(milliseconds(max)?), ..plain(None, milliseconds(initial)?) };
                Self { attempts: Some(whole(attempts)?), ..doubling }.with(common, 0.2)
            }
        }
    }

    fn with(self, common: &Common, jitter: f64) -> Option<Self> {
        let jitter = match &common.jitter {
            Some(Expr::Lit(ExprLit { lit: Lit::Float(share), .. })) => share.base10_parse().ok()?,
            Some(_) => return None,
            None => jitter,
        };
        let threshold = common.wait_in_broker_from.as_ref().map_or(Some(30_000), milliseconds)?;
        Some(Self { jitter, threshold, ..self })
    }

    fn delay(&self, attempt: u64) -> u64 {
        let Some(max) = self.max else { return self.first };
        let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        let grown = self.first.saturating_mul(2u64.saturating_pow(doublings));
        grown.min(max)
    }

    /// The waits, those of one length together.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let in_broker = |delay| self.threshold > 0 && delay >= self.threshold;
        let mut rows: Vec<Row> = Vec::new();
        let mut delivery = 2;
        while self.attempts.is_none_or(|attempts| delivery <= attempts) {
            let delay = self.delay(delivery - 1);
            // Zero never grows; the compiler is about to refuse it.
            let stays = delay == 0 || self.max.is_none_or(|max| delay == max);
            let to = if stays { self.attempts } else { Some(delivery) };
            rows.push(Row { from: delivery, to, delay, in_broker: in_broker(delay) });
            if stays {
                break;
            }
            delivery += 1;
        }
        rows
    }

    /// The schedule in Markdown.
    pub(crate) fn table(&self, queue: &str) -> String {
        let rows = self.rows();
        if rows.is_empty() {
            return "No retries.\n".to_owned();
        }
        let mut text = "| delivery | after a wait of | spent in |\n|---|---|---|\n| 1 | | |\n".to_owned();
        for Row { from, to, delay, in_broker } in rows {
            let deliveries = match to {
                Some(to) if to == from => from.to_string(),
                Some(to) => format!("{from} to {to}"),
                None => format!("{from} and on"),
            };
            let delay = render(delay);
            let row = if in_broker {
                format!("| {deliveries} | {delay} | the broker: `{queue}.retry.{delay}` |\n")
            } else if self.jitter > 0.0 {
                format!("| {deliveries} | {delay} ± {:.0} % | the consumer |\n", self.jitter * 100.0)
            } else {
                format!("| {deliveries} | {delay} | the consumer |\n")
            };
            text.push_str(&row);
        }
        text
    }
}

fn whole(value: &Expr) -> Option<u64> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Int(digits), .. }) => digits.base10_parse().ok(),
        _ => None,
    }
}

/// The milliseconds of a duration in text.
pub(crate) fn milliseconds(length: &Length) -> Option<u64> {
    let Length::Text(text) = length else { return None };
    let text = text.value();
    let split = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (digits, unit) = text.split_at_checked(split)?;
    let unit = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The text of a delay, as in the names of queues.
pub(crate) fn render(milliseconds: u64) -> String {
    for (unit, name) in [(3_600_000, "h"), (60_000, "m"), (1_000, "s")] {
        if milliseconds > 0 && milliseconds.is_multiple_of(unit) {
            return format!("{}{name}", milliseconds / unit);
        }
    }
    format!("{milliseconds}ms")
}
