//! What the compiler says of mistakes in consumers, and what it accepts.
//!
//! - `fail/{family}/{mistake}.rs` begins with what must be said of it (`// says: …`), and beside it lies all that the pinned
//!   compiler says. The test `words` holds the two together; `acemq-macros` reads the same cases without a compiler.
//! - `tests/pass/{situation}.rs` must compile and register what it has.
//! - `fixtures/` are whole services: a renamed crate, the strictest lints, another edition, consumers in a dependency.

/// The examples of the page about the attribute, which compile and run.
#[doc = include_str!("../../docs/attribute.md")]
mod attribute {}
