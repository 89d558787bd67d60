//! Bytes that no well-behaved client writes.

use acemq::{
    envelope::Value,
    transport::{Settled, Verdict},
};
use acemq_tests::{on_each_rabbitmq, rabbitmq::Node, wait::within};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::bench::{Bench, SOON, is_open, next};

/// A client that writes any bytes.
struct Raw(TcpStream);

fn short(text: &[u8]) -> Vec<u8> {
    [&[u8::try_from(text.len()).unwrap()], text].concat()
}

fn long(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

impl Raw {
    async fn connect(node: &Node) -> Self {
        let mut raw = Self(TcpStream::connect(("127.0.0.1", node.port())).await.unwrap());
        raw.0.write_all(b"AMQP\x00\x00\x09\x01").await.unwrap();
        raw.answer().await;
        let start_ok = [&long(b"")[..], &short(b"PLAIN"), &long(b"\0guest\0guest"), &short(b"en_US")].concat();
        raw.method(0, [0, 10, 0, 11], &start_ok).await;
        raw.answer().await;
        raw.method(0, [0, 10, 0, 31], &[0, 100, 0, 2, 0, 0, 0, 0]).await;
        raw.method(0, [0, 10, 0, 40], &[&short(b"/")[..], &[0, 0]].concat()).await;
        raw.answer().await;
        raw.method(1, [0, 20, 0, 10], &[0]).await;
        raw.answer().await;
        raw
    }

    async fn frame(&mut self, kind: u8, channel: u8, payload: &[u8]) {
        let frame = [&[kind, 0, channel][..], &long(payload), &[0xce]].concat();
        self.0.write_all(&frame).await.unwrap();
    }

    async fn method(&mut self, channel: u8, method: [u8; 4], arguments: &[u8]) {
        self.frame(1, channel, &[&method[..], arguments].concat()).await;
    }

    async fn answer(&mut self) {
        let mut head = [0; 7];
        within(SOON, "an answer", self.0.read_exact(&mut head)).await.unwrap();
        let length = u32::from_be_bytes([head[3], head[4], head[5], head[6]]);
        let mut payload = vec![0; usize::try_from(length).unwrap() + 1];
        within(SOON, "an answer", self.0.read_exact(&mut payload)).await.unwrap();
    }

    async fn publish(&mut self, queue: &str, flags: u16, properties: &[u8]) {
        let publish = [&[0, 0, 0][..], &short(queue.as_bytes()), &[0]].concat();
        self.method(1, [0, 60, 0, 40], &publish).await;
        let header = [&[0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1][..], &flags.to_be_bytes(), properties].concat();
        self.frame(2, 1, &header).await;
        self.frame(3, 1, b"x").await;
    }
}

on_each_rabbitmq! {
    async fn texts_that_are_not_utf_8_do_not_stop_a_consumer(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        let mut raw = Raw::connect(node).await;
        raw.publish(&queue, 1 << 7, &short(b"caf\xe9")).await;
        let table = [&short(b"na\xefve")[..], b"S", &long(b"\xff")].concat();
        raw.publish(&queue, 1 << 13, &long(&table)).await;
        let mut subscription = bench.subscribe(&queue, 10).await;
        assert_eq!(next(&mut subscription).await.properties.message_id.as_deref(), Some("caf?"));
        let headers = next(&mut subscription).await.properties.headers;
        assert_eq!(headers.get("na?ve"), Some(&Value::LongString(b"\xff"[..].into())));
        bench.fill(&queue, 1).await;
        let last = next(&mut subscription).await;
        assert_eq!(last.body, "0");
        assert_eq!(subscription.channel.settle(last.tag, Verdict::Ack), Settled::Done);
        assert!(is_open(&*bench.consume));
    }

    async fn headers_nested_without_end_do_not_end_the_process(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        let mut raw = Raw::connect(node).await;
        for kind in [b'A', b'F'] {
            let mut value = b"V".to_vec();
            for _ in 0..2000 {
                let inner = if kind == b'F' { [&[0][..], &value].concat() } else { value };
                value = [&[kind][..], &long(&inner)].concat();
            }
            raw.publish(&queue, 1 << 13, &long(&[&short(b"deep")[..], &value].concat())).await;
        }
        let mut subscription = bench.subscribe(&queue, 10).await;
        for _ in 0..2 {
            assert!(next(&mut subscription).await.properties.headers.contains_key("deep"));
        }
        assert!(is_open(&*bench.consume));
    }
}
