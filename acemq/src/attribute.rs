//! The macros, with their documentation: here it can link to what they are about.

/// Makes a consumer of a function: it is registered, and [`run`](crate::run) runs it for each message of its queue.
///
/// The function stays what it was: it can be called and tested. Its name also names a type, for
/// [`App::consumer`](crate::App::consumer).
///
/// The first argument is the message: a type with `serde::Deserialize`, [`Message<T>`](struct@crate::Message), [`Raw`](crate::Raw) or
/// [`Text`](crate::Text). The others are extractors: [`Context`](crate::Context), [`State<T>`](crate::State),
/// [`Publisher`](crate::Publisher), [`Handle`](crate::Handle), or a type with [`FromContext`](crate::FromContext). It returns
/// `()`, [`Ack`](crate::Ack), or a `Result` of either, whose error converts into `Box<dyn Error + Send + Sync>`.
///
/// | option | value | unless given |
/// |---|---|---|
/// | `queue` | string | it has to be given |
/// | `retry` | `none`, `fixed(attempts, delay)`, `exponential(attempts, initial, max)`, or a constant [`RetryPolicy`](crate::RetryPolicy); in the parentheses also `jitter`, `give_up_after` and `wait_in_broker_from` | for ever, `retry_delay` apart |
/// | `retry_delay` | duration; only without `retry` | `"5s"` |
/// | `idempotent` | alone, or with `retention`, `claim`, `in_progress_delay`, `key`, `scope`, `no_id` and `store` in parentheses | duplicates are handled |
/// | `prefetch` | 1 to 65535 | 20 |
/// | `concurrency` | 1 to 65535, at most `prefetch` | = `prefetch` |
/// | `timeout` | duration, after which the function is cancelled and the attempt has failed | no limit |
/// | `declare` | `quorum` or `classic`: acemq declares the queue | the queue has to exist |
/// | `bind` | `("exchange", "routing.key")`, any number of times | no bindings |
/// | `rungs` | `quorum` or `classic`: the queues that retries wait in | as [`App::rungs`](crate::App::rungs) says |
/// | `codec` | path of a [`Codec`](crate::envelope::Codec) | by content type, JSON |
/// | `blocking` | alone: the function is an ordinary `fn`, run off the async threads | `async` |
/// | `name` | string, for logs, health and metrics | module path and function |
/// | `crate` | path, for a crate that hands acemq on | `::acemq` |
///
/// Durations are strings such as `"500ms"`, `"30s"`, `"5m"`, `"6h"` and `"1d"`, or constants of type `Duration`; other values
/// may be constant expressions too. Everything is checked when it compiles, also one value against another;
/// `docs/attribute.md` has each setting with its checks.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use acemq::{Ack, Context, State, consumer};
///
/// #[derive(serde::Deserialize)]
/// struct OrderPlaced {
///     order_id: String,
///     total_cents: u64,
/// }
///
/// impl OrderPlaced {
///     fn key(&self) -> &str {
///         &self.order_id
///     }
/// }
///
/// const LIMIT: Duration = Duration::from_secs(30);
///
/// #[consumer(
///     queue = "orders.placed",
///     declare = quorum,
///     bind = ("orders", "order.placed"),
///     retry = exponential(5, "1s", "1m", give_up_after = "6h"),
///     idempotent(key = OrderPlaced::key, retention = "2d"),
///     concurrency = 4,
///     timeout = LIMIT,
/// )]
/// async fn check_order(order: OrderPlaced, State(most): State<u64>, context: Context) -> Result<Ack, std::io::Error> {
///     if order.total_cents > most && context.attempt() == 1 {
///         return Ok(Ack::retry("the limit may have been raised by then"));
///     }
///     Ok(Ack::accept())
/// }
///
/// /// Writes to a disk, which would hold up others on an async thread.
/// #[consumer(queue = "files", retry = fixed(3, "10s"), blocking)]
/// fn store_file(file: acemq::Raw) -> std::io::Result<()> {
///     std::fs::write("/tmp/file", &file.0)
/// }
/// # fn main() {
/// # let _ = acemq::App::new().consumer::<check_order>().consumer::<store_file>();
/// # }
/// ```
///
/// What cannot be right does not compile:
/// ```compile_fail
/// #[acemq::consumer(queue = "orders", retry = exponential(5, "1m", "1s"))]
/// async fn record(_: acemq::Raw) {} // `max` must not be shorter than `initial`
/// # fn main() {}
/// ```
pub use acemq_macros::consumer;

/// Makes consumers of the methods of a service that have `#[consumer(…)]`.
///
/// The service is shared by all calls, and provided as `State<Arc<Service>>`. A method takes `&self`, then what a
/// [`consumer`](macro@crate::consumer) takes, and has its options. The block is of a type that is not generic, without a
/// trait, and the only one of its type. [`App::consumers`](crate::App::consumers) names all of them.
///
/// # Examples
/// ```
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
///
/// use acemq::{App, consumers};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Sale { cents: u64 }
///
/// #[derive(Default)]
/// struct Till { cents: AtomicU64, sold: tokio::sync::Notify }
///
/// #[consumers]
/// impl Till {
///     #[consumer(queue = "sales", declare = quorum, retry = fixed(3, "10s"))]
///     async fn sell(&self, sale: Sale) {
///         self.cents.fetch_add(sale.cents, Ordering::Relaxed);
///         self.sold.notify_one();
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let till = Arc::new(Till::default());
/// let running = App::new().url("memory://till").consumers::<Till>().state(Arc::clone(&till)).start().await?;
/// running.publisher().to_queue("sales").send(&Sale { cents: 250 }).await?;
/// till.sold.notified().await;
/// running.close().await;
/// assert_eq!(till.cents.load(Ordering::Relaxed), 250);
/// # Ok(()) }
/// ```
pub use acemq_macros::consumers;

/// Gives a message type its logical name and version: implements [`MessageType`](trait@crate::MessageType).
///
/// `#[message(type = "…", version = 2, crate = path)]` beside the derive: the type has to be given, the version is 1 and the
/// crate `::acemq` unless given.
///
/// # Examples
/// ```
/// use acemq::MessageType;
///
/// #[derive(serde::Serialize, serde::Deserialize, acemq::Message)]
/// #[message(type = "order.placed", version = 2)]
/// struct OrderPlaced {
///     order_id: String,
///     // A message of version 1 has none.
///     #[serde(default)]
///     currency: Option<String>,
/// }
///
/// assert_eq!((OrderPlaced::TYPE, OrderPlaced::VERSION), ("order.placed", 2));
/// ```
pub use acemq_macros::Message;

/// Says what each kind of an error means for its message: implements [`Classify`](trait@crate::Classify), and is found
/// wherever in a chain the error stands.
///
/// | on a variant, or on the type for all variants without one | the message |
/// |---|---|
/// | `#[fatal]` | is dead-lettered at once |
/// | `#[park]` | is parked, for a person to look at |
/// | `#[retry]` | is tried again as the policy says |
/// | `#[retry(after = "30s")]` | is tried again after this wait, in place of the policy's |
///
/// A variant without any means what the one error in it means, if that has a class; otherwise the policy decides.
/// `#[classify(crate = path)]` on the type says where acemq is.
///
/// # Examples
/// ```
/// use acemq::{Ack, handler::IntoAck};
///
/// #[derive(Debug, thiserror::Error, acemq::Classify)]
/// enum OrderError {
///     #[error("no product {0}")]
///     #[fatal]
///     NoProduct(u64),
///     #[error("the warehouse is busy")]
///     #[retry(after = "30s")]
///     Busy,
///     #[error(transparent)]
///     Price(#[from] PriceError),
/// }
///
/// #[derive(Debug, thiserror::Error, acemq::Classify)]
/// #[error("the price has changed")]
/// #[park]
/// struct PriceError;
///
/// assert!(matches!(Err::<(), _>(OrderError::NoProduct(7)).into_ack(), Ack::DeadLetter { .. }));
/// assert!(matches!(Err::<(), _>(OrderError::from(PriceError)).into_ack(), Ack::Park { .. }));
/// ```
pub use acemq_macros::Classify;
