#!/usr/bin/env bash
# What consumers cost a debug check: as many functions with the attribute and without it, in a crate of their own.
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-300}
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/macro-cost/src"
crate=$(cd "$target/macro-cost" && pwd)
cat > "$crate/Cargo.toml" <<TOML
[package]
name = "macro-cost"
version = "0.0.0"
edition = "2024"

[workspace]

[features]
attribute = []

[dependencies]
acemq = { path = "$PWD/acemq", default-features = false, features = ["json", "macros"] }
serde = { version = "1", features = ["derive"] }
TOML
cp Cargo.lock "$crate/Cargo.lock"
{
  echo '#![allow(dead_code)]'
  for n in $(seq "$count"); do
    cat <<RUST
#[derive(serde::Deserialize)]
struct Order$n { id: u64 }
#[cfg_attr(feature = "attribute", acemq::consumer(
    queue = "orders.$n", retry = exponential(5, "1s", "1m", give_up_after = "6h"), idempotent(claim = "10m"),
    prefetch = 10, timeout = "30s", declare = quorum, bind = ("orders", "order.$n"),
))]
async fn handle_$n(order: Order$n, context: acemq::Context) -> Result<(), std::io::Error> { let _ = (order.id, context); Ok(()) }
RUST
  done
} > "$crate/src/lib.rs"
cd "$crate"
export CARGO_TARGET_DIR="$crate/target"
seconds() { # the shortest of three checks, in milliseconds
  cargo check --offline --quiet "$@"
  best=
  for _ in 1 2 3; do
    touch src/lib.rs
    start=$(date +%s%N)
    cargo check --offline --quiet "$@"
    took=$(( ($(date +%s%N) - start) / 1000000 ))
    if [ -z "$best" ] || [ "$took" -lt "$best" ]; then best=$took; fi
  done
  echo "$best"
}
without=$(seconds)
with=$(seconds --features attribute)
echo "$count functions: ${without} ms; the same as consumers: ${with} ms; the attribute costs $((with - without)) ms"
