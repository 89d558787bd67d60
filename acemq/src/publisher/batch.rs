//! Many messages at once.

use std::fmt;

use serde::Serialize;

use super::{Publication, Receipt, SendError};
use crate::envelope::{Codec, DefaultCodec};

/// A batch of which not every message was confirmed.
///
/// Its [`results`](Self::results) say of each message what became of it, in the order of the batch: what was
/// [refused](SendError::Refused) is safe to send again, what is [unknown](SendError::Unknown) may have arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchError {
    /// What became of each message, in the order of the batch.
    pub results: Vec<Result<Receipt, SendError>>,
}

impl BatchError {
    /// The messages that were not confirmed, with their places in the batch.
    pub fn failures(&self) -> impl Iterator<Item = (usize, &SendError)> {
        let failed = |(at, result)| Result::as_ref(result).err().map(|error| (at, error));
        self.results.iter().enumerate().filter_map(failed)
    }
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |is: fn(&SendError) -> bool| self.failures().filter(|(_, error)| is(error)).count();
        let unknown = count(|error| matches!(error, SendError::Unknown { .. }));
        let unroutable = count(|error| matches!(error, SendError::Unroutable { .. }));
        let failed = self.failures().count();
        write!(
            f,
            "{failed} of {} messages were not confirmed: {unroutable} found no queue, {unknown} have an unknown outcome, {} \
             were not taken",
            self.results.len(),
            failed - unknown - unroutable,
        )?;
        match self.failures().next() {
            Some((at, error)) => write!(f, "; the first, at {at}: {error}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for BatchError {}

impl Publication {
    /// Publishes every value by the default codec, all of them before the first confirm is awaited, and gives their receipts
    /// in their order. Each has an id of its own.
    ///
    /// # Errors
    /// When not every message is confirmed; the error says what became of each.
    ///
    /// # Examples
    /// ```
    /// # async fn example(publisher: acemq::Publisher) -> Result<(), acemq::BatchError> {
    /// let receipts = publisher.to("orders", "order.placed").send_all(&["A-1", "A-2"]).await?;
    /// assert_eq!(receipts.len(), 2);
    /// # Ok(()) }
    /// ```
    pub async fn send_all<T: Serialize>(
        self,
        messages: impl IntoIterator<Item = T>,
    ) -> Result<Vec<Receipt>, BatchError> {
        self.send_all_as::<DefaultCodec, T>(messages).await
    }

    /// Publishes every value by a codec, as [`Publication::send_all`].
    ///
    /// # Errors
    /// As [`Publication::send_all`].
    pub async fn send_all_as<C: Codec, T: Serialize>(
        self,
        messages: impl IntoIterator<Item = T>,
    ) -> Result<Vec<Receipt>, BatchError> {
        let mut sent = Vec::new();
        for message in messages {
            sent.push(self.clone().begin_one_of_many::<C, T>(&message).await);
        }
        let mut results = Vec::with_capacity(sent.len());
        for sent in sent {
            results.push(match sent {
                Ok(sent) => sent.receipt().await,
                Err(error) => Err(error),
            });
        }
        if results.iter().all(Result::is_ok) {
            return Ok(results.into_iter().flatten().collect());
        }
        Err(BatchError { results })
    }

    async fn begin_one_of_many<C: Codec, T: Serialize>(
        self,
        message: &T,
    ) -> Result<super::publication::Sent, SendError> {
        if self.has_id() {
            return Err(SendError::SharedId);
        }
        let body = C::encode(message).map_err(SendError::Encode)?;
        self.begin(C::CONTENT_TYPE, body.into()).await
    }
}
