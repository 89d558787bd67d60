//! Claims against duplicates: who may handle a message, and whether it has been handled.
//!
//! A [`ClaimStore`] is asked before a handler runs and told when it has accepted. [`MemoryStore`] remembers within one
//! process; the stores in a database (the features `postgres`, `mysql` and `sqlite`) remember across processes and restarts.
//!
//! ```
//! use acemq::{App, consumer, idempotency::MemoryStore};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Deposit { account: String, cents: u64 }
//!
//! #[consumer(queue = "deposits", declare = quorum, idempotent(retention = "7d", claim = "1m"))]
//! async fn deposit(deposit: Deposit) {
//!     println!("{} cents for {}", deposit.cents, deposit.account);
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::with_cap(1_000_000);
//! let running = App::new().url("memory://bank").consumer::<deposit>().idempotency(store).start().await?;
//! for _ in 0..2 {
//!     let deposit = Deposit { account: "Ada".to_owned(), cents: 500 };
//!     running.publisher().to_queue("deposits").id("deposit-17").send(&deposit).await?;
//! }
//! # while running.totals().settled() < 2 || running.totals().duplicate == 0 {
//! #     tokio::time::sleep(std::time::Duration::from_millis(5)).await;
//! # }
//! let drained = running.close().await;
//! assert_eq!((drained.totals.acked, drained.totals.duplicate), (1, 1));
//! # Ok(()) }
//! ```
//!
//! This is *effectively* once, not exactly once: a handler whose process dies after its effect and before its confirmation
//! runs again when the lease ends.

mod current;
mod key;
mod memory;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
pub mod sql;
mod store;

#[cfg(feature = "testing")]
pub mod conformance;

pub use self::{
    key::{Scope, fit},
    memory::MemoryStore,
    store::{Claim, ClaimStore, Fenced, StoreError, Token},
};
pub(crate) use current::Current;
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
pub(crate) use current::{Twice, Work};
pub(crate) use store::LONGEST;
