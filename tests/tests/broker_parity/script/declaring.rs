//! Declaring, again and wrongly.

use acemq::{
    envelope::Value,
    topology::{Declaration, ExchangeKind},
};

use super::{Arguments, DLRK, DLX, LENGTH, LIMIT, OVERFLOW, Record, STRATEGY, TTL, TYPE, text};
use crate::lab::{Lab, binding, exchange, queue};

/// Declares each pair of queues one after the other under one name, and writes down the second answer.
async fn redeclare(lab: &Lab, pairs: &[(Arguments<'_>, Arguments<'_>)]) -> Record {
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
    let table: [Arguments<'_>; 17] = [
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
