//! The claim of a delivery, on its way.

use super::Driver;
use crate::{
    engine::{
        claims::{Confirmation, Renewal},
        machine::{Event, Note},
    },
    handler::Ack,
};

impl Driver {
    pub(super) async fn claim(&mut self) -> Event {
        let Some(claim) = &self.claim else {
            return Event::StoreUnreachable;
        };
        match claim.claim(&mut self.claimed_at).await {
            Ok(claim) => Event::Claimed(claim),
            Err(error) => {
                tracing::warn!(consumer = %self.consumer.name, %error, "a message could not be claimed; it goes back");
                Event::StoreUnreachable
            }
        }
    }

    pub(super) async fn confirm(&self) -> Event {
        let Some(claim) = &self.claim else {
            return Event::Confirmed(None);
        };
        match claim.confirm().await {
            Confirmation::Answered(fenced) => Event::Confirmed(Some(fenced)),
            Confirmation::RolledBack => Event::RolledBack,
            Confirmation::NotCommitted(why) => {
                let ack = Ack::retry(format!("what the handler did was not committed: {why}"));
                Event::NotCommitted { ack, age: self.age() }
            }
            Confirmation::Failed(error) => {
                tracing::error!(
                    consumer = %self.consumer.name,
                    id = self.context.envelope().id(),
                    %error,
                    "a handled message could not be marked: a duplicate of it would run"
                );
                Event::Confirmed(None)
            }
        }
    }

    pub(super) async fn release(&self) -> Event {
        if let Some(claim) = &self.claim
            && let Err(error) = claim.release().await
        {
            tracing::warn!(%error, "a claim could not be released; its lease ends by itself");
            self.consumer.telemetry.note(&self.context, Note::ReleaseFailed);
        }
        Event::Released
    }

    pub(super) fn renewal(&self, renewal: Renewal) {
        let note = match renewal {
            Renewal::Lost => Note::LeaseLost,
            Renewal::Failed(error) => {
                tracing::warn!(consumer = %self.consumer.name, %error, "a lease could not be renewed; trying again");
                Note::RenewFailed
            }
        };
        self.consumer.telemetry.note(&self.context, note);
    }
}
