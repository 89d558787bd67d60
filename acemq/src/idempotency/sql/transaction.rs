use std::time::Duration;

use sqlx::Transaction;

use super::{
    SqlStore,
    backend::{Backend, Dialect},
    op::Item,
    store::millis,
};
use crate::idempotency::{Fenced, StoreError, Token, key::fit};

impl<D: Dialect> SqlStore<D> {
    /// Confirms `key` as part of `transaction`, so that it counts as handled if and only if the transaction commits.
    ///
    /// It is meant to be the last statement before the commit, as the entry stays locked until then. On [`Fenced::Lost`]
    /// somebody else may handle the message: roll back.
    ///
    /// # Errors
    ///
    /// When the database does not answer or refuses; the transaction is then only good for rolling back.
    pub async fn confirm_in(
        &self,
        transaction: &mut Transaction<'_, D>,
        key: &str,
        token: &Token,
        retention: Duration,
    ) -> Result<Fenced, StoreError> {
        let millis = millis("retention", retention)?;
        let key = fit(key);
        let item = Item { key: &key, token: token.as_str() };
        let inner = self.inner();
        <D as Backend>::confirm_in(&inner.sql, &mut **transaction, item, millis)
            .await
            .map(Fenced::from)
            .map_err(|failure| inner.failed(failure))
    }
}
