//! Claims against duplicates: who may handle a message, and whether it has been handled.
//!
//! A [`ClaimStore`] is asked before a handler runs and told when it has accepted. [`MemoryStore`] remembers within one
//! process; the stores in a database remember across processes and restarts.
//!
//! This is *effectively* once, not exactly once: a handler whose process dies after its effect and before its confirmation
//! runs again when the lease ends.

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
