use acemq::Context;

// rustfmt moves such an attribute to the right each time it runs.
#[rustfmt::skip]
macro_rules! consumer {
    ($name:ident, $queue:literal, $kind:ty, $attempts:expr, $delay:expr, $codec:path) => {
        #[acemq::consumer(
            queue = $queue,
            retry = fixed($attempts, $delay),
            timeout = $delay,
            codec = $codec,
            idempotent(claim = $delay, in_progress_delay = "1s"),
            bind = ($queue, "key"),
        )]
        async fn $name(message: $kind, context: Context) {
            let _ = (message, context);
        }
    };
}

macro_rules! service {
    ($name:ident { $($method:ident: $queue:expr),* }) => {
        struct $name;

        #[acemq::consumers]
        impl $name {
            $(
                #[consumer(queue = $queue)]
                async fn $method(&self, _: acemq::Raw) {}
            )*
        }
    };
}

macro_rules! whole {
    ($item:item) => {
        #[acemq::consumer(queue = "whole")]
        $item
    };
}

consumer!(orders, "orders", Vec<String>, 3, "10s", acemq::envelope::Json);
consumer!(invoices, "invoices", acemq::Raw, 2 + 3, "1m", acemq::envelope::Json);
service!(Shop { sell: "sales", take_back: concat!("returns", ".eu") });
whole! {
    async fn whole(_: acemq::Raw) {}
}

#[test]
fn compiles_and_registers() {
    let _ = Shop;
    let queues: Vec<&str> = super::registered(file!()).iter().map(|found| found.spec.queue).collect();
    assert_eq!(queues, ["invoices", "orders", "returns.eu", "sales", "whole"]);
}
