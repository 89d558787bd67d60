// says: future cannot be sent between threads safely
use std::rc::Rc;

use acemq::{Raw, consumer};

#[consumer(queue = "orders")]
async fn handle(_: Raw) {
    let counter = Rc::new(1);
    std::future::ready(()).await;
    drop(counter);
}

fn main() {}
