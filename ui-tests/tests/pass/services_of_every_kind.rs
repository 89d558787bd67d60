use std::sync::{Arc, Mutex};

use acemq::{Context, RetryPolicy, State, consumers, registry::Consumers};

trait Selling {
    type Order;
}

struct Shop<T> {
    sold: Mutex<T>,
}

impl Selling for Shop<u64> {
    type Order = Vec<u64>;
}

impl Shop<u64> {
    const QUEUE: &'static str = "sales";
    const POLICY: RetryPolicy = RetryPolicy::none();
}

#[consumers]
impl Shop<u64> {
    /// Sells.
    #[consumer(queue = Self::QUEUE, retry = Self::POLICY)]
    pub async fn sell(&self, order: <Self as Selling>::Order, _: Context) -> Result<(), std::io::Error> {
        *self.sold.lock().unwrap() += order.iter().sum::<u64>();
        Ok(())
    }

    #[acemq::consumer(queue = "closing", blocking)]
    fn close(&self, _: acemq::Raw, State(_myself): State<Arc<Self>>) {}

    const OTHER: u8 = 3;

    fn helper() -> u8 {
        Self::OTHER
    }
}

mod far {
    pub(crate) struct Other;
}

#[consumers]
impl far::Other {
    #[consumer(queue = "far")]
    async fn handle(&self, _: acemq::Raw) {}
}

#[test]
fn compiles_and_registers() {
    assert_eq!(Shop::<u64>::helper(), 3);
    assert_eq!(<Shop<u64>>::REGISTRATIONS.len(), 2);
    assert!(
        <Shop<u64>>::REGISTRATIONS[0].name.ends_with("::Shop<u64>::sell"),
        "{}",
        <Shop<u64>>::REGISTRATIONS[0].name
    );
    assert_eq!(far::Other::REGISTRATIONS.len(), 1);
    let _ = (Shop { sold: Mutex::new(0u64) }, far::Other);
}
