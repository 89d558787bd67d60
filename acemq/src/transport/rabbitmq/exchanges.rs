//! Which exchanges are there.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use tokio::time::Instant;

use super::{declare, shared::Shared};

/// How long a missing exchange is taken for missing without asking again.
const MISSING: Duration = Duration::from_secs(1);
/// Exchange names that are remembered.
const NAMES: usize = 1000;

/// What a lane knows about exchanges.
///
/// A publish to a missing exchange makes the broker close the channel, with everything that is outstanding on it. So the
/// broker is asked once for each exchange, before the first publish to it.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    known: HashSet<String>,
    missing: HashMap<String, Instant>,
}

impl Exchanges {
    /// Whether a publish to it is worth a try.
    pub(super) async fn exists(&mut self, shared: &Shared, exchange: &str) -> bool {
        // The default exchange has no name and is always there.
        if exchange.is_empty() || self.known.contains(exchange) {
            return true;
        }
        let since = self.missing.get(exchange);
        if since.is_some_and(|since| since.elapsed() < MISSING) {
            return false;
        }
        // With many channels lost, a publish may find out itself.
        let exists = shared.spares_channels() || declare::exchange_exists(shared, exchange).await;
        if exists {
            self.missing.remove(exchange);
            self.make_room();
            self.known.insert(exchange.to_owned());
        } else {
            self.is_missing(exchange);
        }
        exists
    }

    /// Takes note of an exchange that a publish did not find.
    pub(super) fn is_missing(&mut self, exchange: &str) {
        self.known.remove(exchange);
        self.make_room();
        self.missing.insert(exchange.to_owned(), Instant::now());
    }

    fn make_room(&mut self) {
        if self.known.len() + self.missing.len() >= NAMES {
            self.known.clear();
            self.missing.clear();
        }
    }
}
