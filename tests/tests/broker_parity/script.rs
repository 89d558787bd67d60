//! What is done to both brokers. Each script gives a record of what it saw.

use std::time::Duration;

use acemq::{
    envelope::{Table, Value},
    topology::{Declaration, ExchangeKind},
    transport::Verdict,
};

use crate::lab::{Lab, binding, bodies, exchange, line, message, queue, timeless};

type Record = Vec<String>;

const TTL: &str = "x-message-ttl";
const DLX: &str = "x-dead-letter-exchange";
const DLRK: &str = "x-dead-letter-routing-key";
const STRATEGY: &str = "x-dead-letter-strategy";
const OVERFLOW: &str = "x-overflow";
const LENGTH: &str = "x-max-length";
const LIMIT: &str = "x-delivery-limit";
const TYPE: &str = "x-queue-type";
const KINDS: [&str; 2] = ["classic", "quorum"];

fn text(text: &str) -> Value {
    text.into()
}

/// The arguments of a queue of one kind whose dead go to another queue.
fn dying(kind: &str, to: &str, more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    let mut arguments = vec![(TYPE, text(kind)), (DLX, text("")), (DLRK, text(to))];
    arguments.extend_from_slice(more);
    arguments
}

/// Declares each pair of queues one after the other under one name, and writes down the second answer.
async fn redeclare(lab: &Lab, pairs: &[(&[(&str, Value)], &[(&str, Value)])]) -> Record {
    let mut record = Record::new();
    for (at, (first, second)) in pairs.iter().enumerate() {
        let name = format!("q{at}");
        lab.all(&[queue(&name, first)]).await;
        record.push(format!("{:?}", lab.declare(&queue(&name, second)).await));
    }
    record
}

pub async fn argument_differences(lab: &Lab) -> Record {
    let quorum = || (TYPE, text("quorum"));
    let one = || (TTL, Value::I32(1000));
    let at_least_once = || (STRATEGY, text("at-least-once"));
    let reject = || (OVERFLOW, text("reject-publish"));
    redeclare(
        lab,
        &[
            (&[one()], &[(TTL, Value::I64(5000))]),
            (&[one()], &[(TTL, Value::I64(1000))]),
            (&[one()], &[]),
            (&[(TTL, Value::I64(1000))], &[]),
            (&[], &[(TTL, Value::I16(5))]),
            (&[], &[(TTL, Value::U8(5))]),
            (&[], &[(TTL, Value::I8(5))]),
            (&[], &[(TTL, Value::U16(5))]),
            (&[], &[(TTL, Value::U32(5))]),
            (&[(DLX, text("a"))], &[(DLX, text("b"))]),
            (&[(DLX, text("a"))], &[]),
            (&[], &[(DLX, text("a"))]),
            (&[(DLX, text("a"))], &[(DLX, text("a")), (DLRK, text("k"))]),
            (&[reject()], &[(OVERFLOW, text("drop-head"))]),
            (&[], &[(OVERFLOW, text("drop-head"))]),
            (&[(LENGTH, Value::I32(1))], &[(LENGTH, Value::I32(2))]),
            (&[], &[(TYPE, text("classic"))]),
            (&[(TYPE, text("classic"))], &[]),
            (&[quorum()], &[(TYPE, text("classic"))]),
            (&[quorum(), (DLX, text("")), at_least_once(), reject()], &[quorum(), (DLX, text("")), reject()]),
            (&[quorum(), (LIMIT, Value::I32(3))], &[quorum(), (LIMIT, Value::I32(4))]),
            (&[quorum()], &[quorum(), (LIMIT, Value::I32(4))]),
            (&[("foreign", Value::I32(1))], &[("foreign", Value::I32(2))]),
            // Several at once: which one is named?
            (&[one(), (DLX, text("a")), (LENGTH, Value::I32(1))], &[(TTL, Value::I32(2)), (DLX, text("b"))]),
            (&[(DLX, text("a")), (DLRK, text("k")), (LENGTH, Value::I32(1))], &[(DLX, text("a")), reject()]),
            (&[(LENGTH, Value::I32(1)), reject()], &[]),
            (&[reject()], &[quorum()]),
            (&[quorum(), at_least_once(), (LENGTH, Value::I32(1))], &[quorum()]),
            (&[quorum(), (LIMIT, Value::I32(1))], &[quorum(), (LENGTH, Value::I32(1))]),
        ],
    )
    .await
}

pub async fn impossible_arguments(lab: &Lab) -> Record {
    let quorum = || (TYPE, text("quorum"));
    let table: [&[(&str, Value)]; 17] = [
        &[(TTL, Value::I32(-1))],
        &[(TTL, Value::I64(315_360_000_001))],
        &[(TTL, text("5"))],
        &[(TTL, Value::Bool(true))],
        &[(TTL, Value::F64(5.0))],
        &[(LENGTH, Value::I32(-1))],
        &[(LENGTH, text("a"))],
        &[(OVERFLOW, text("nope"))],
        &[(OVERFLOW, Value::I32(1))],
        &[(DLRK, text("k"))],
        &[(DLX, Value::I32(1))],
        &[(DLX, text("a")), (DLRK, Value::I32(1))],
        &[(DLX, text("a")), (STRATEGY, text("at-most-once"))],
        &[quorum(), (STRATEGY, text("foo"))],
        &[(TYPE, text("foo"))],
        &[(TYPE, Value::I32(1))],
        &[(LIMIT, Value::I32(3))],
    ];
    let mut record = Record::new();
    for arguments in table {
        record.push(format!("{:?}", lab.declare(&queue("q", arguments)).await));
    }
    record.push(format!("{:?}", lab.declare(&Declaration::QueueExists { name: "q".to_owned() }).await));
    record
}

pub async fn queue_types(lab: &Lab) -> Record {
    let quorum = || (TYPE, text("quorum"));
    redeclare(lab, &[(&[], &[quorum()]), (&[quorum()], &[])]).await
}

pub async fn exchanges_and_bindings(lab: &Lab) -> Record {
    lab.all(&[exchange("x", ExchangeKind::Direct), queue("q", &[])]).await;
    let table = [
        exchange("x", ExchangeKind::Direct),
        exchange("x", ExchangeKind::Topic),
        exchange("amq.topic", ExchangeKind::Topic),
        exchange("amq.topic", ExchangeKind::Fanout),
        exchange("amq.mine", ExchangeKind::Direct),
        exchange("", ExchangeKind::Direct),
        queue("amq.mine", &[]),
        binding("q", "x", ""),
        binding("q", "nope", "k"),
        binding("nope", "x", "k"),
        binding("nope", "neither", "k"),
        binding("q", "", "k"),
        Declaration::QueueExists { name: "q".to_owned() },
        Declaration::QueueExists { name: "nope".to_owned() },
    ];
    let mut record = Record::new();
    for wanted in table {
        record.push(format!("{:?}", lab.declare(&wanted).await));
    }
    record
}

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
    let emptied = (0..patterns.len()).map(async |at| lab.empty(&format!("p{at}")).await);
    record.extend(futures_util::future::join_all(emptied).await.concat());
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
        lab.all(&[queue(&drop, &dying(kind, "dead", &[most])), queue(&reject, &rejecting)]).await;
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

pub async fn waiting_in_a_queue(lab: &Lab) -> Record {
    let mut record = Record::new();
    lab.all(&[queue("home", &[]), exchange("x", ExchangeKind::Fanout), binding("home", "x", "")]).await;
    for kind in KINDS {
        let [direct, by_exchange, gone] = ["direct", "by exchange", "gone"].map(|name| format!("{name} {kind}"));
        let waiting = dying(kind, "home", &[(TTL, Value::I32(100))]);
        let without_key = [(TYPE, text(kind)), (TTL, Value::I32(100)), (DLX, text("x"))];
        let into_nothing = dying(kind, "nowhere", &[(TTL, Value::I32(100))]);
        lab.all(&[queue(&direct, &waiting), queue(&by_exchange, &without_key), queue(&gone, &into_nothing)]).await;
        let mut home = lab.consumer("home", 10).await;
        for queue in [&direct, &by_exchange, &gone] {
            record.push(lab.fill(queue, &["1", "2"]).await);
        }
        let mut arrived: Record = home.take(4).await.iter().map(line).collect();
        arrived.sort();
        record.extend(arrived);
        tokio::time::sleep(Duration::from_millis(500)).await;
        for queue in [&gone, &direct] {
            record.extend(lab.empty(queue).await);
        }
        record.extend(bodies(&home.all().await));
        home.close().await;
        lab.empty("home").await;
    }
    record
}

pub async fn lifetimes_of_messages(lab: &Lab) -> Record {
    let mut record = Record::new();
    lab.all(&[queue("dead", &[])]).await;
    for kind in KINDS {
        lab.all(&[queue(kind, &dying(kind, "dead", &[]))]).await;
        // The short one has to wait for the long one in front of it.
        for (body, lifetime) in [("long", "700"), ("short", "50"), ("immortal", "3600000")] {
            let mut mortal = message("", kind, body);
            mortal.properties.expiration = Some(lifetime.to_owned());
            record.push(lab.send(mortal).await);
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut dead = lab.consumer("dead", 10).await;
        record.extend(dead.take(2).await.iter().map(line));
        dead.close().await;
        lab.empty("dead").await;
        record.extend(lab.empty(kind).await);
    }
    record
}

pub async fn circles(lab: &Lab) -> Record {
    let mut record = Record::new();
    for kind in KINDS {
        let [a, b, own] = ["a", "b", "own"].map(|name| format!("{name} {kind}"));
        let short = [(TTL, Value::I32(50))];
        lab.all(&[queue(&a, &dying(kind, &b, &short)), queue(&b, &dying(kind, &a, &short))]).await;
        lab.all(&[queue(&own, &dying(kind, &own, &short))]).await;
        for queue in [&a, &own] {
            record.push(lab.fill(queue, &["1"]).await);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        for queue in [&a, &b, &own] {
            record.extend(lab.empty(queue).await);
        }
    }
    record
}

pub async fn lifetime_of_zero(lab: &Lab) -> Record {
    let mut record = Record::new();
    for kind in KINDS {
        lab.all(&[queue(kind, &[(TYPE, text(kind)), (TTL, Value::I32(0))])]).await;
        record.push(lab.fill(kind, &["1"]).await);
        let mut consumer = lab.consumer(kind, 1).await;
        record.extend(bodies(&consumer.all().await));
        record.push(lab.fill(kind, &["2"]).await);
        record.extend(bodies(&consumer.all().await));
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

pub async fn delivery_limits(lab: &Lab) -> Record {
    let mut record = Record::new();
    lab.all(&[queue("dead", &[])]).await;
    let table = [("default", None), ("two", Some(2)), ("zero", Some(0)), ("none", Some(-1))];
    for (name, limit) in table {
        let limit: Vec<_> = limit.map(|limit| (LIMIT, Value::I32(limit))).into_iter().collect();
        lab.all(&[queue(name, &dying("quorum", "dead", &limit))]).await;
        record.push(lab.fill(name, &["1"]).await);
        let mut consumer = lab.consumer(name, 1).await;
        let mut dead = lab.consumer("dead", 1).await;
        for _ in 0..25 {
            let incoming = tokio::select! {
                Some(incoming) = consumer.next() => incoming,
                Some(letter) = dead.next() => {
                    dead.settle(&letter, Verdict::Requeue);
                    break;
                }
            };
            record.push(format!("redelivered={} {:?}", incoming.redelivered, incoming.properties.headers));
            consumer.settle(&incoming, Verdict::Requeue);
        }
        consumer.close().await;
        dead.close().await;
        record.extend(lab.empty("dead").await);
    }
    record
}

pub async fn records_of_death(lab: &Lab) -> Record {
    let mut record = Record::new();
    lab.all(&[exchange("x", ExchangeKind::Topic), queue("end", &[])]).await;
    for kind in KINDS {
        let [first, second] = ["first", "second"].map(|name| format!("{name} {kind}"));
        let short = (TTL, Value::I32(50));
        lab.all(&[queue(&first, &dying(kind, &second, std::slice::from_ref(&short)))]).await;
        lab.all(&[queue(&second, &[(TYPE, text(kind)), short, (DLX, text("x")), (DLRK, text("end"))])]).await;
        lab.all(&[binding(&first, "x", kind), binding("end", "x", "end")]).await;
        let mut claimed = message("x", kind, "m");
        claimed.properties.headers = Table::from([
            (
                "x-death".to_owned(),
                Value::Array(vec![Value::Table(Table::from([("queue".to_owned(), text("a lie"))]))]),
            ),
            ("x-first-death-queue".to_owned(), text("a lie")),
            ("CC".to_owned(), Value::Array(vec![text("copy")])),
            ("own".to_owned(), Value::I8(1)),
        ]);
        record.push(lab.send(claimed).await);
        let mut end = lab.consumer("end", 1).await;
        let incoming = end.take(1).await.remove(0);
        end.settle(&incoming, Verdict::Ack);
        record.push(line(&incoming));
        record.push(format!("{:?}", timeless(Value::Table(incoming.properties.headers))));
        end.close().await;
    }
    record
}
