use std::sync::Arc;

use acemq::{Context, ExtractError, FromContext, Message, Publisher, Raw, State, consumer, handler::Text};

#[derive(serde::Deserialize)]
struct Order {
    number: u64,
}

#[derive(serde::Deserialize)]
enum Event<T> {
    Placed(T),
}

struct Tenant(String);

impl FromContext for Tenant {
    async fn from_context(_: &Context) -> Result<Self, ExtractError> {
        Ok(Self("tenant".to_owned()))
    }
}

#[consumer(queue = "pattern")]
async fn pattern(Order { number }: Order, Tenant(_tenant): Tenant) {
    let _ = number;
}

#[consumer(queue = "message")]
async fn message(Message { envelope, body }: Message<Order>) {
    let _ = (envelope, body.number);
}

#[consumer(queue = "generic")]
async fn generic(event: Event<Vec<Order>>) {
    let Event::Placed(_) = event;
}

#[consumer(queue = "raw")]
async fn raw(mut raw: Raw, _: Publisher) {
    raw.0.clear();
}

#[consumer(queue = "text")]
async fn text(Text(text): Text) {
    let _ = text;
}

#[consumer(queue = "tuple")]
async fn tuple((_, _): (u8, Option<u8>), _: Context) {}

#[consumer(queue = "functions")]
#[allow(clippy::type_complexity)]
async fn functions(_: Raw, State(rule): State<Arc<dyn Fn(&str) -> bool + Send + Sync>>) {
    let _ = rule("x");
}

#[consumer(queue = "many")]
#[allow(clippy::too_many_arguments)]
async fn many(
    _: Raw,
    _: State<u8>,
    _: State<u16>,
    _: State<u32>,
    _: State<u64>,
    _: State<i8>,
    _: State<i16>,
    _: State<i32>,
    _: State<i64>,
    _: Context,
) {
}

#[test]
fn compiles_and_registers() {}
