//! Claims in a table of PostgreSQL, MySQL, MariaDB or SQLite.

mod backend;
mod batch;
mod error;
mod lanes;
#[cfg(feature = "mysql")]
mod mysql;
mod op;
#[cfg(feature = "postgres")]
mod postgres;
mod shape;
#[cfg(feature = "sqlite")]
mod sqlite;
mod statements;
mod store;
mod table;
mod transaction;

pub use self::{backend::Dialect, store::SqlStore};
