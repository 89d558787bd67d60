use acemq::{Ack, Raw, consumer, consumers};

#[consumer(queue = "orders")]
async fn orders(raw: Raw) -> Ack {
    if raw.0.is_empty() { Ack::park("empty") } else { Box::pin(orders(Raw(Vec::new().into()))).await }
}

#[consumer(queue = "files", blocking)]
fn files(_: Raw) -> Ack {
    Ack::accept()
}

struct Shop;

#[consumers]
impl Shop {
    #[consumer(queue = "sales")]
    async fn sell(&self, _: Raw) -> Ack {
        self.sold()
    }

    #[allow(clippy::unused_self)]
    fn sold(&self) -> Ack {
        Ack::accept()
    }
}

#[test]
fn compiles_and_registers() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(orders(Raw("x".into()))), Ack::park("empty"));
    assert_eq!(files(Raw(Vec::new().into())), Ack::accept());
    assert_eq!(runtime.block_on(Shop.sell(Raw(Vec::new().into()))), Ack::accept());
    let function: fn(Raw) -> Ack = files;
    assert_eq!(function(Raw(Vec::new().into())), Ack::accept());
}
