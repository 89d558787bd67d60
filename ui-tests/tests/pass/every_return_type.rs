use acemq::{Ack, Raw, consumer, handler::IntoAck};

#[derive(Debug, thiserror::Error)]
#[error("failed")]
struct Failed;

type Outcome<T = ()> = Result<T, Failed>;

#[consumer(queue = "nothing")]
async fn nothing(_: Raw) {}

#[consumer(queue = "unit")]
async fn unit(_: Raw) -> () {}

#[consumer(queue = "ack")]
async fn ack(_: Raw) -> Ack {
    Ack::accept()
}

#[consumer(queue = "result")]
async fn result(_: Raw) -> Result<(), Failed> {
    Err(Failed)
}

#[consumer(queue = "result-of-ack")]
async fn result_of_ack(_: Raw) -> Result<Ack, acemq::Fatal> {
    Ok(Ack::release())
}

#[consumer(queue = "alias")]
async fn alias(_: Raw) -> Outcome {
    Ok(())
}

#[consumer(queue = "text")]
async fn text(_: Raw) -> Result<(), &'static str> {
    Err("closed")
}

#[consumer(queue = "boxed")]
async fn boxed(_: Raw) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    Err("closed".into())
}

#[consumer(queue = "opaque")]
async fn opaque(_: Raw) -> impl IntoAck {
    Ack::accept()
}

#[consumer(queue = "own")]
async fn own(_: Raw) -> Own {
    Own
}

struct Own;

impl IntoAck for Own {
    fn into_ack(self) -> Ack {
        Ack::accept()
    }
}

#[test]
fn compiles_and_registers() {}
