//! The ledger: nothing that was confirmed is ever nowhere.
//!
//! Letters with known ids are published through confirmed publishes; consumers with a mixed script work on them; faults
//! strike at random, from a seed. In the end every confirmed letter was handled, is set aside with a reason, or lies in a
//! queue, unless the fault itself deleted the queue that it stood in; no attempt is beyond its policy's; no letter that
//! its publisher was told is refused appears; and nothing happens twice unless a fault struck.
//!
//! `LEDGER_RUNS` sets how many seeds are run, `LEDGER_FROM` the first, and `LEDGER_SEED` runs a single one again;
//! with `LEDGER_LOG` the applications say what they do.

mod book;
mod cluster;
mod embedded;
mod fault;
mod rabbitmq;
mod script;
mod store;
mod trial;
