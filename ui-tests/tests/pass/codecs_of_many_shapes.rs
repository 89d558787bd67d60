use std::marker::PhantomData;

use acemq::{
    consumer,
    envelope::{Codec, DecodeError, Json},
};
use serde::{Serialize, de::DeserializeOwned};

struct Wrapped<A, B>(PhantomData<(A, B)>);

impl<A: Codec, B> Codec for Wrapped<A, B> {
    const CONTENT_TYPE: &'static str = A::CONTENT_TYPE;

    fn reads(content_type: Option<&str>) -> bool {
        A::reads(content_type)
    }

    fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, DecodeError> {
        A::decode(body)
    }

    fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, DecodeError> {
        A::encode(value)
    }
}

type Ours = Wrapped<Json, u8>;

#[consumer(queue = "alias", codec = Ours)]
async fn alias(_: Vec<u8>) {}

#[consumer(queue = "generic", codec = Wrapped<Json, u8>, prefetch = 3)]
async fn generic(_: Vec<u8>) {}

#[consumer(queue = "nested", codec = Wrapped<Wrapped<Json, u8>, Vec<(u8, fn() -> u8)>>, prefetch = 3)]
async fn nested(_: Vec<u8>) {}

#[test]
fn compiles_and_registers() {}
