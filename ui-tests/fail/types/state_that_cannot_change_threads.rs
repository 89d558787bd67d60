// says: `Rc<u8>` cannot be the state of an application
use std::rc::Rc;

use acemq::{Raw, State, consumer};

#[consumer(queue = "orders")]
async fn handle(_: Raw, _: State<Rc<u8>>) {}

fn main() {}
