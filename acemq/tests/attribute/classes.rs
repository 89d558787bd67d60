use std::time::Duration;

use acemq::{
    Ack, Classify, Raw, consumer,
    handler::{BoxError, Class, DeadLetter, IntoAck, Park},
    registry::Consumer,
};

use super::call;

#[derive(Debug, thiserror::Error, Classify)]
enum OrderError {
    #[error("no such product")]
    #[fatal]
    UnknownProduct,
    #[error("busy")]
    #[retry(after = "30s")]
    Busy { by: &'static str },
    #[error("odd")]
    #[park]
    Odd(u8, u8),
    #[error("again")]
    #[retry]
    Again,
    #[error("plain")]
    Plain,
    #[error(transparent)]
    Stock(#[from] StockError),
    #[error("from outside")]
    Outside(#[source] BoxError),
    #[error("by name")]
    Named {
        #[source]
        inner: StockError,
    },
}

#[derive(Debug, thiserror::Error, Classify)]
#[error("out of stock")]
#[retry(after = Duration::from_secs(60))]
struct StockError;

#[derive(Debug, thiserror::Error, Classify)]
#[park]
enum Strange {
    #[error("first")]
    First,
    #[error("second")]
    #[fatal]
    Second,
}

fn ack(error: impl Into<BoxError>) -> Ack {
    Err::<(), _>(error.into()).into_ack()
}

#[test]
fn each_variant_decides_by_its_attribute() {
    assert!(matches!(ack(OrderError::UnknownProduct), Ack::DeadLetter { cause: DeadLetter::Fatal, .. }));
    assert_eq!(ack(OrderError::Busy { by: "x" }), Ack::retry_after("busy", Duration::from_secs(30)));
    assert_eq!(ack(OrderError::Odd(1, 2)), Ack::park("odd"));
    assert_eq!(ack(OrderError::Again), Ack::retry("again"));
    assert_eq!(ack(OrderError::Plain), Ack::retry("plain"));
    assert_eq!(ack(Strange::First), Ack::park("first"));
    assert!(matches!(ack(Strange::Second), Ack::DeadLetter { .. }));
    assert_eq!(OrderError::Again.class(), Some(Class::Retry { after: None }));
    assert_eq!(OrderError::Plain.class(), None);
}

#[test]
fn a_variant_without_an_attribute_means_what_the_error_in_it_means() {
    let minute = Duration::from_secs(60);
    assert_eq!(ack(OrderError::from(StockError)), Ack::retry_after("out of stock", minute));
    assert_eq!(ack(OrderError::Named { inner: StockError }), Ack::retry_after("by name: out of stock", minute));
    assert!(matches!(ack(OrderError::Outside(acemq::fatal("x").into())), Ack::DeadLetter { .. }));
}

#[test]
fn fatal_anywhere_decides_and_otherwise_the_outermost_class() {
    let parked = anyhow::Error::new(OrderError::Odd(1, 2)).context("first").context("second");
    assert_eq!(ack(parked), Ack::Park { reason: "second: first: odd".into(), cause: Park::Asked });
    let fatal = OrderError::Outside(Box::new(OrderError::UnknownProduct));
    assert!(matches!(ack(anyhow::Error::new(fatal).context("around")), Ack::DeadLetter { .. }));
}

#[consumer(queue = "anyhow")]
async fn through_anyhow(raw: Raw) -> anyhow::Result<()> {
    match &raw.0[..] {
        b"class" => Err(OrderError::Odd(1, 2).into()),
        b"fatal" => Err(anyhow::Error::new(acemq::fatal("never"))),
        b"context" => Err(anyhow::Error::new(acemq::fatal("never")).context("while selling")),
        _ => Ok(()),
    }
}

#[tokio::test]
async fn an_error_at_the_root_of_anyhow_is_recognised() {
    assert_eq!(call(&through_anyhow::REGISTRATION, "class").await, Ack::park("odd"));
    for body in ["fatal", "context"] {
        let ack = call(&through_anyhow::REGISTRATION, body).await;
        assert!(matches!(ack, Ack::DeadLetter { cause: DeadLetter::Fatal, .. }), "{body}: {ack:?}");
    }
    assert_eq!(call(&through_anyhow::REGISTRATION, "").await, Ack::Accept);
}
