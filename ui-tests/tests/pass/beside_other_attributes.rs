#![deny(warnings, missing_docs)]
//! Documented.

use acemq::{Raw, consumer};

/// Documented, and instrumented below.
#[consumer(queue = "below")]
#[tracing::instrument(skip_all)]
pub async fn below(_: Raw) -> Result<(), std::io::Error> {
    Ok(())
}

/// Documented, and instrumented above.
#[tracing::instrument(skip_all)]
#[consumer(queue = "above")]
pub async fn above(_: Raw) -> Result<(), std::io::Error> {
    Ok(())
}

#[consumer(queue = "many")]
/// Documented below.
#[must_use = "it says whether it worked"]
#[inline(never)]
#[allow(clippy::unused_async)]
pub async fn many(#[allow(unused_variables)] raw: Raw) -> Result<(), std::io::Error> {
    Ok(())
}

#[consumer(queue = "old")]
#[deprecated = "nobody publishes there any more"]
#[doc(hidden)]
pub async fn old(_: Raw) {}

#[test]
fn compiles_and_registers() {
    assert_eq!(super::registered(file!()).len(), 4);
}
