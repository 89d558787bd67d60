use std::time::Duration;

use acemq::{
    Classify, Message, MessageType,
    handler::{BoxError, Class},
};

const NAME: &str = "order.placed";
const WAIT: Duration = Duration::from_secs(30);

#[derive(Message)]
#[message(type = NAME, version = 1 + 1)]
struct Order<T: Clone>
where
    T: Send,
{
    _inner: T,
}

#[derive(Message)]
#[message(type = "event")]
enum Event {
    _Placed,
}

#[derive(Debug, thiserror::Error, Classify)]
enum Failed {
    #[error("one")]
    #[fatal]
    One,
    #[error("two")]
    #[retry(after = WAIT)]
    Two(u8, u8),
    #[error("three")]
    #[retry]
    Three { inner: u8 },
    #[error(transparent)]
    Four(#[from] Inner),
    #[error("five")]
    Five(#[source] BoxError),
    #[error("six")]
    Six,
}

#[derive(Debug, thiserror::Error, Classify)]
#[error("inner")]
#[park]
struct Inner;

#[derive(Debug, thiserror::Error, Classify)]
enum Never {}

#[test]
fn compiles_and_registers() {
    assert_eq!((<Order<u8> as MessageType>::TYPE, <Order<u8> as MessageType>::VERSION), ("order.placed", 2));
    assert_eq!((acemq::Message::<Event>::TYPE, Event::VERSION), ("event", 1));
    for (error, class) in [
        (Failed::One, Some(Class::Fatal)),
        (Failed::Two(1, 2), Some(Class::Retry { after: Some(WAIT) })),
        (Failed::Three { inner: 1 }, Some(Class::Retry { after: None })),
        (Inner.into(), Some(Class::Park)),
        (Failed::Five("x".into()), None),
        (Failed::Six, None),
    ] {
        assert_eq!(error.class(), class, "{error:?}");
    }
    let _: fn(&Never) -> Option<Class> = Never::class;
}
