//! acemq runs RabbitMQ consumers: a service annotates an async function, and acemq connects, declares what is missing,
//! retries what fails, keeps duplicates out, and closes without losing a message.
//!
//! ```
//! use acemq::{App, State, consumer};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct OrderPlaced { order_id: String }
//!
//! #[consumer(queue = "orders.placed", declare = quorum, retry = exponential(5, "1s", "1m"))]
//! async fn record_order(order: OrderPlaced, State(book): State<tokio::sync::mpsc::Sender<String>>) -> Result<(), &'static str> {
//!     book.send(order.order_id).await.map_err(|_| "the book is closed")
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (book, mut entries) = tokio::sync::mpsc::channel::<String>(8);
//! // A service calls `run`, which ends with SIGTERM or SIGINT; `start` gives a handle. Unless consumers are named, all run.
//! let running = App::new().url("memory://orders").consumer::<record_order>().state(book).start().await?;
//! running.publisher().to_queue("orders.placed").send(&OrderPlaced { order_id: "A-1".to_owned() }).await?;
//! assert_eq!(entries.recv().await.as_deref(), Some("A-1"));
//! let drained = running.close().await;
//! assert!(drained.finished);
//! # Ok(()) }
//! ```
//!
//! # What becomes of a message
//!
//! | the consumer | the message |
//! |---|---|
//! | returns `()`, `Ok` or [`Ack::accept`] | is acknowledged |
//! | returns an error, panics, or takes longer than its `timeout` | waits and is delivered again with the next attempt, as its [`RetryPolicy`] says; past the last one it is dead-lettered |
//! | returns a [`fatal`] error, anywhere in its chain, or [`Ack::dead_letter`] | is in `{queue}.dlq`, with the reason in its header |
//! | cannot read the body, or returns [`Ack::park`] | is in `{queue}.parked`, as it came |
//! | returns [`Ack::release`] | goes back to the queue, after a pause |
//!
//! Short waits are spent in the consumer, which holds the delivery; long ones in a queue of the broker, a *rung*, where they
//! survive the consumer. A copy is confirmed and in a queue before the original is acknowledged: a crash in between gives a
//! duplicate, never a loss. `idempotent` keeps duplicates away from the function.
//!
//! # Features
//!
//! | feature | brings | default |
//! |---|---|---|
//! | `rabbitmq` | the transport for `amqp://`; without it there is only the embedded broker | yes |
//! | `tls` | `amqps://`, by rustls and the system's root certificates | yes |
//! | `json` | the JSON codec | yes |
//! | `macros` | `#[consumer]` and its companions | yes |
//! | `postgres`, `mysql`, `sqlite` | claims in a database | |
//! | `testing` | tests of a service without a broker | |
//! | `actuator` | health and metrics over HTTP | |
//! | `otel` | traces that go with their messages: `traceparent` of the W3C, by `tracing-opentelemetry` | |

// What a consumer function is made of
pub mod envelope;
pub mod handler;
pub mod policy;
pub mod registry;

// What it runs on
pub mod idempotency;
pub mod topology;
pub mod transport;

// What runs it
mod app;
#[cfg(feature = "macros")]
mod attribute;
mod drain;
pub mod engine;
mod error;
pub mod health;
mod publisher;
mod telemetry;
#[cfg(feature = "testing")]
pub mod testing;

#[doc(hidden)]
pub mod __private;
#[cfg(feature = "actuator")]
pub mod actuator;

pub use app::{App, CRASH_LIMIT, DRAIN_TIMEOUT, GRACE, Handle, OnRefusal, Running, UnknownConsumer, run};
#[cfg(feature = "macros")]
pub use attribute::{Classify, Message, consumer, consumers};
pub use drain::{Drained, WaitAbandoned};
pub use error::Error;
pub use handler::{
    Ack, Classify, Context, ExtractError, Fatal, FromContext, FromMessage, Message, MessageType, Raw, State, Text,
    fatal,
};
pub use policy::RetryPolicy;
pub use publisher::{BatchError, Publication, Publisher, Receipt, SendError};
