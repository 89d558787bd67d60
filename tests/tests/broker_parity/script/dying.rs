//! Time, limits, and what they leave of a message.

use std::time::Duration;

use acemq::{
    envelope::{Table, Value},
    topology::ExchangeKind,
    transport::Verdict,
};

use super::{DLRK, DLX, KINDS, LIMIT, Record, TTL, TYPE, mortal, text};
use crate::lab::{Lab, binding, bodies, exchange, line, message, queue, timeless};

pub async fn waiting_in_a_queue(lab: &Lab) -> Record {
    let mut record = Record::new();
    lab.all(&[queue("home", &[]), exchange("x", ExchangeKind::Fanout), binding("home", "x", "")]).await;
    for kind in KINDS {
        let [direct, by_exchange, gone] = ["direct", "by exchange", "gone"].map(|name| format!("{name} {kind}"));
        let waiting = mortal(kind, "home", &[(TTL, Value::I32(100))]);
        let without_key = [(TYPE, text(kind)), (TTL, Value::I32(100)), (DLX, text("x"))];
        let into_nothing = mortal(kind, "nowhere", &[(TTL, Value::I32(100))]);
        lab.all(&[queue(&direct, &waiting), queue(&by_exchange, &without_key), queue(&gone, &into_nothing)]).await;
        let mut home = lab.consumer("home", 10).await;
        for queue in [&direct, &by_exchange, &gone] {
            record.push(lab.fill(queue, &["1", "2"]).await);
        }
        let mut arrived: Record = home.take(4).await.iter().map(line).collect();
        arrived.sort();
        record.extend(arrived);
        tokio::time::sleep(Duration::from_secs(1)).await;
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
        lab.all(&[queue(kind, &mortal(kind, "dead", &[]))]).await;
        // The short one has to wait for the long one in front of it.
        for (body, lifetime) in [("long", "700"), ("short", "50"), ("immortal", "3600000")] {
            let mut short_lived = message("", kind, body);
            short_lived.properties.expiration = Some(lifetime.to_owned());
            record.push(lab.send(short_lived).await);
        }
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
        lab.all(&[queue(&a, &mortal(kind, &b, &short)), queue(&b, &mortal(kind, &a, &short))]).await;
        lab.all(&[queue(&own, &mortal(kind, &own, &short))]).await;
        for queue in [&a, &own] {
            record.push(lab.fill(queue, &["1"]).await);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
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

pub async fn delivery_limits(lab: &Lab) -> Record {
    let mut record = Record::new();
    lab.all(&[queue("dead", &[])]).await;
    let table = [("default", None), ("two", Some(2)), ("zero", Some(0)), ("none", Some(-1))];
    for (name, limit) in table {
        let limit: Vec<_> = limit.map(|limit| (LIMIT, Value::I32(limit))).into_iter().collect();
        lab.all(&[queue(name, &mortal("quorum", "dead", &limit))]).await;
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
        lab.all(&[queue(&first, &mortal(kind, &second, std::slice::from_ref(&short)))]).await;
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
