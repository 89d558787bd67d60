use acemq::{Raw, consumer, consumers};

#[cfg(any())]
#[consumer(queue = "never-1")]
async fn above_never(_: DoesNotExist) {}

#[consumer(queue = "never-2")]
#[cfg(any())]
async fn below_never(_: DoesNotExist) {}

#[consumer(queue = "never-3")]
#[cfg_attr(all(), cfg(any()))]
async fn attribute_never(_: DoesNotExist) {}

#[cfg(test)]
#[consumer(queue = "always-1")]
#[cfg(test)]
async fn always(_: Raw) {}

#[consumer(queue = "always-2")]
#[cfg_attr(any(), cfg(any()))]
async fn attribute_always(_: Raw) {}

struct Shop;

#[consumers]
#[cfg(test)]
impl Shop {
    #[cfg(any())]
    #[consumer(queue = "never-4")]
    async fn above_never(&self, _: DoesNotExist) {}

    #[consumer(queue = "never-5")]
    #[cfg(any())]
    async fn below_never(&self, _: DoesNotExist) {}

    #[consumer(queue = "always-3")]
    async fn always(&self, _: Raw) {}
}

struct Gone;

#[consumers]
#[cfg(any())]
impl Gone {
    #[consumer(queue = "never-6")]
    async fn never(&self, _: Raw) {}
}

#[test]
fn compiles_and_registers() {
    let _ = (Shop, Gone);
    let queues: Vec<&str> = super::registered(file!()).iter().map(|found| found.spec.queue).collect();
    assert_eq!(queues, ["always-1", "always-2", "always-3"]);
}
