//! From publishers to consumers, and back.

use std::time::Duration;

use acemq::{
    envelope::{Table, Value},
    topology::ExchangeKind,
    transport::Verdict,
};

use super::{DLRK, DLX, KINDS, LENGTH, OVERFLOW, Record, TTL, TYPE, mortal, text};
use crate::lab::{Lab, binding, bodies, exchange, message, queue};

pub async fn routing(lab: &Lab) -> Record {
    lab.all(&[exchange("direct", ExchangeKind::Direct), exchange("fanout", ExchangeKind::Fanout)]).await;
    lab.all(&[exchange("topic", ExchangeKind::Topic), queue("q", &[])]).await;
    lab.all(&[binding("q", "direct", "k"), binding("q", "fanout", "x"), binding("q", "fanout", "y")]).await;
    let patterns = ["order.#", "*.placed", "#.c", "a.#.c", "#.b.#", "", "*", "#.a.#.b", "x.*.y", "#"];
    for (at, pattern) in patterns.iter().enumerate() {
        let name = format!("p{at}");
        lab.all(&[queue(&name, &[]), binding(&name, "topic", pattern)]).await;
    }
    let mut record = Record::new();
    for (target, key) in [("direct", "k"), ("direct", "other"), ("fanout", "any"), ("", "q"), ("", "nope")] {
        let mut sent = message(target, key, key);
        record.push(lab.send(sent.clone()).await);
        sent.mandatory = false;
        record.push(lab.send(sent).await);
    }
    for key in
        ["order", "order.placed", "order.placed.late", "a.c", "c", "a.b.b.c", "b", "", "x..y", ".", "x.a.y.a.z.b"]
    {
        record.push(lab.send(message("topic", key, key)).await);
    }
    record.push(lab.send(message("nope", "k", "m")).await);
    record.extend(lab.empty("q").await);
    for at in 0..patterns.len() {
        record.extend(lab.empty(&format!("p{at}")).await);
    }
    record
}

pub async fn carbon_copies(lab: &Lab) -> Record {
    let list = |keys: &[&str]| Value::Array(keys.iter().map(|key| text(key)).collect());
    let [ttl, dlx, dlrk] = [(TTL, Value::I32(50)), (DLX, text("x")), (DLRK, text("dead"))];
    lab.all(&[exchange("x", ExchangeKind::Direct), queue("dead", &[])]).await;
    lab.all(&[queue("b", &[]), queue("c", &[]), queue("keeps keys", &[ttl.clone(), dlx.clone()])]).await;
    lab.all(&[queue("has a key", &[ttl, dlx, dlrk])]).await;
    for (queue, key) in [("b", "b"), ("c", "c"), ("dead", "dead"), ("dead", "keeps keys")] {
        lab.all(&[binding(queue, "x", key)]).await;
    }
    let mut record = Record::new();
    for first in ["keeps keys", "has a key"] {
        let mut copied = message("", first, "m");
        copied.properties.headers =
            Table::from([("CC".to_owned(), list(&[first, "b", "b", "nope"])), ("BCC".to_owned(), list(&["c"]))]);
        record.push(lab.send(copied).await);
        tokio::time::sleep(Duration::from_millis(500)).await;
        for queue in ["b", "c", "dead"] {
            record.extend(lab.empty(queue).await);
        }
    }
    record
}

pub async fn full_queues(lab: &Lab) -> Record {
    let mut record = Record::new();
    lab.all(&[queue("dead", &[])]).await;
    for kind in KINDS {
        let most = (LENGTH, Value::I32(2));
        let (drop, reject) = (format!("drop {kind}"), format!("reject {kind}"));
        let rejecting = [(TYPE, text(kind)), most.clone(), (OVERFLOW, text("reject-publish"))];
        lab.all(&[queue(&drop, &mortal(kind, "dead", &[most])), queue(&reject, &rejecting)]).await;
        for queue in [&drop, &reject] {
            record.push(lab.fill(queue, &["1", "2", "3", "4", "5"]).await);
            record.extend(lab.empty(queue).await);
        }
        record.extend(lab.empty("dead").await);
        // What a consumer holds does not count.
        record.push(lab.fill(&reject, &["6", "7"]).await);
        let mut consumer = lab.consumer(&reject, 2).await;
        consumer.take(2).await;
        record.push(lab.fill(&reject, &["8", "9"]).await);
        consumer.close().await;
        record.extend(lab.empty(&reject).await);
    }
    record
}

pub async fn prefetch_and_turns(lab: &Lab) -> Record {
    let mut record = Record::new();
    for kind in KINDS {
        lab.all(&[queue(kind, &[(TYPE, text(kind))])]).await;
        let mut a = lab.consumer(kind, 2).await;
        let mut b = lab.consumer(kind, 3).await;
        record.push(lab.fill(kind, &["1", "2", "3", "4", "5", "6", "7"]).await);
        let of_a = a.take(2).await;
        let of_b = b.take(3).await;
        record.extend([bodies(&of_a), bodies(&of_b)].concat());
        a.settle(&of_a[1], Verdict::Ack);
        record.extend(bodies(&a.all().await));
        record.extend(bodies(&b.all().await));
        b.settle(&of_b[0], Verdict::Ack);
        record.extend(bodies(&b.all().await));
    }
    record
}

pub async fn cancelling(lab: &Lab) -> Record {
    let mut record = Record::new();
    for kind in KINDS {
        lab.all(&[queue(kind, &[(TYPE, text(kind))])]).await;
        record.push(lab.fill(kind, &["1", "2", "3"]).await);
        let mut consumer = lab.consumer(kind, 2).await;
        // So that both are surely on this side.
        let mut held = consumer.take(2).await;
        consumer.cancel().await;
        held.extend(consumer.all().await);
        record.extend(bodies(&held));
        consumer.settle(&held[0], Verdict::Ack);
        consumer.close().await;
        record.extend(lab.empty(kind).await);
    }
    record
}

pub async fn closing(lab: &Lab) -> Record {
    let mut record = Record::new();
    for kind in KINDS {
        lab.all(&[queue(kind, &[(TYPE, text(kind))])]).await;
        record.push(lab.fill(kind, &["1", "2", "3"]).await);
        let mut first = lab.consumer(kind, 2).await;
        first.take(2).await;
        first.close().await;
        let mut second = lab.consumer(kind, 10).await;
        let mut back = bodies(&second.take(3).await);
        if kind == "quorum" {
            // Up to 3.x the returned ones come in turn with the others.
            back.sort();
        }
        record.extend(back);
    }
    record
}

pub async fn returns_to_a_quorum_queue(lab: &Lab) -> Record {
    let mut record = Record::new();
    for kind in KINDS {
        lab.all(&[queue(kind, &[(TYPE, text(kind))])]).await;
        record.push(lab.fill(kind, &["1", "2", "3", "4"]).await);
        let mut consumer = lab.consumer(kind, 3).await;
        let held = consumer.take(3).await;
        consumer.cancel().await;
        for at in [2, 0, 1] {
            consumer.settle(&held[at], Verdict::Requeue);
        }
        consumer.close().await;
        record.extend(lab.empty(kind).await);
    }
    record
}
