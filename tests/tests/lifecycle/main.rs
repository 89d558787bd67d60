//! The end of real processes on real brokers, and what an operator is told meanwhile.

mod alarm;
mod child;
mod exit;
mod rounds;
mod signals;
