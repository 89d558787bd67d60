use std::{io, sync::Arc};

use acemq::{
    Ack, Context, ExtractError, FromContext, Message, Raw, State, Text, consumer, consumers,
    envelope::{Codec, DecodeError},
    handler::{DeadLetter, Delivered, Park, Requirements, Scope},
    registry::{Consumer, Consumers},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{call, call_in, context, delivered};

#[derive(serde::Deserialize)]
struct Order {
    number: u64,
}

#[consumer(queue = "plain")]
async fn plain(order: Order) -> Ack {
    Ack::park(order.number.to_string())
}

#[tokio::test]
async fn a_body_is_decoded_and_the_return_value_decides() {
    assert_eq!(call(&plain::REGISTRATION, r#"{"number":7}"#).await, Ack::park("7"));
}

#[tokio::test]
async fn a_body_that_does_not_decode_is_parked_and_the_function_not_called() {
    let ack = call(&plain::REGISTRATION, "{").await;
    assert!(matches!(ack, Ack::Park { cause: Park::Undecodable, .. }), "{ack:?}");
}

/// Fetches what the body refers to from somewhere that is away.
struct Away;

impl Codec for Away {
    const CONTENT_TYPE: &'static str = "application/json";

    fn reads(_: Option<&str>) -> bool {
        true
    }

    fn decode<T: DeserializeOwned>(_: &[u8]) -> Result<T, DecodeError> {
        Err(DecodeError::Unavailable("the store is away".to_owned()))
    }

    fn encode<T: Serialize + ?Sized>(_: &T) -> Result<Vec<u8>, DecodeError> {
        Err(DecodeError::Unavailable("the store is away".to_owned()))
    }
}

#[consumer(queue = "referred", codec = Away)]
async fn referred(_: Order) -> Ack {
    panic!("must not run")
}

#[tokio::test]
async fn a_body_that_cannot_be_had_now_is_a_failed_attempt_and_not_parked() {
    let ack = call(&referred::REGISTRATION, "{}").await;
    assert_eq!(ack, Ack::retry("the body cannot be read now: the store is away"));
}

#[consumer(queue = "text")]
async fn text(Text(text): Text) -> Ack {
    Ack::park(text)
}

#[tokio::test]
async fn text_that_is_not_utf_8_is_parked_and_not_mended() {
    let with = |body: &'static [u8]| {
        let delivered = Delivered { body: body.into(), ..delivered("", &[]) };
        (text::REGISTRATION.invoke)(context(delivered, Scope::default()))
    };
    assert_eq!(with("täxt".as_bytes()).await, Ack::park("täxt"));
    let ack = with(b"t\xe4xt").await;
    assert!(matches!(ack, Ack::Park { cause: Park::Undecodable, .. }), "{ack:?}");
}

struct Refused;

impl FromContext for Refused {
    async fn from_context(_: &Context) -> Result<Self, ExtractError> {
        Err(ExtractError::fatal("no tenant"))
    }
}

#[consumer(queue = "refused")]
async fn refused(_: Raw, _: Refused) {
    panic!("must not run")
}

#[tokio::test]
async fn an_extractor_that_fails_decides_before_the_function_runs() {
    let ack = call(&refused::REGISTRATION, "").await;
    assert_eq!(ack, Ack::DeadLetter { reason: "no tenant".into(), cause: DeadLetter::Fatal });
}

#[consumer(queue = "stateful")]
async fn stateful(message: Message<Order>, State(text): State<String>, context: Context) -> Result<Ack, io::Error> {
    Ok(Ack::park(format!("{} {text} {}", message.body.number, context.attempt())))
}

#[tokio::test]
async fn arguments_are_taken_from_the_context_and_named_before_the_start() {
    let mut scope = Scope::default();
    scope.insert("shop".to_owned());
    assert_eq!(call_in(&stateful::REGISTRATION, r#"{"number":1}"#, scope).await, Ack::park("1 shop 1"));

    let mut requirements = Requirements::default();
    (stateful::REGISTRATION.requires)(&mut requirements);
    let names: Vec<_> = requirements.as_slice().iter().map(|requirement| requirement.type_name).collect();
    assert_eq!(names, ["alloc::string::String"]);
}

#[consumer(queue = "blocking", blocking)]
fn blocked(order: Order) -> Ack {
    // Only a thread that may block can block on a runtime.
    let number = tokio::runtime::Handle::current().block_on(async { order.number });
    assert_ne!(number, 13, "thirteen");
    Ack::park(number.to_string())
}

#[tokio::test]
async fn a_blocking_function_runs_off_the_async_threads() {
    assert_eq!(call(&blocked::REGISTRATION, r#"{"number":2}"#).await, Ack::park("2"));
}

#[tokio::test]
async fn a_panic_of_a_blocking_function_is_one_of_the_call() {
    let error = tokio::spawn(async { call(&blocked::REGISTRATION, r#"{"number":13}"#).await }).await.unwrap_err();
    let panic = error.into_panic();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("thirteen"), "{text}");
}

struct Shop {
    name: &'static str,
}

impl Shop {
    const LIMIT: u16 = 3;
}

#[consumers]
impl Shop {
    /// Sells.
    #[consumer(queue = "sales", prefetch = Self::LIMIT)]
    async fn sell(&self, order: Order, State(text): State<String>) -> Ack {
        Ack::park(format!("{} {text} {}", self.name, self.helper(order.number)))
    }

    fn helper(&self, number: u64) -> u64 {
        number + self.name.len() as u64
    }

    #[consumer(queue = "returns", blocking)]
    fn take_back(&self, _: Raw) -> Ack {
        Ack::park(self.name)
    }

    #[cfg(any())]
    #[consumer(queue = "never")]
    async fn never(&self, _: Raw) {}
}

#[tokio::test]
async fn methods_are_called_on_the_service_that_the_application_provides() {
    let [sell, take_back] = Shop::REGISTRATIONS else { panic!("not two") };
    let scope = || {
        let mut scope = Scope::default();
        scope.insert(Arc::new(Shop { name: "corner" }));
        scope.insert("sold".to_owned());
        scope
    };
    assert_eq!(call_in(sell, r#"{"number":1}"#, scope()).await, Ack::park("corner sold 7"));
    assert_eq!(call_in(take_back, "", scope()).await, Ack::park("corner"));
    assert_eq!((sell.spec.queue, sell.spec.prefetch), ("sales", 3));
    assert!(sell.name.ends_with("calls::Shop::sell"), "{}", sell.name);

    let mut requirements = Requirements::default();
    (sell.requires)(&mut requirements);
    assert_eq!(requirements.as_slice().len(), 2);
}

#[tokio::test]
async fn a_service_that_nobody_provides_is_named() {
    let [sell, ..] = Shop::REGISTRATIONS else { panic!("none") };
    let Ack::Retry { reason, .. } = call(sell, r#"{"number":1}"#).await else { panic!("not a retry") };
    assert!(reason.contains("Shop") && reason.contains("App::state"), "{reason}");
}
