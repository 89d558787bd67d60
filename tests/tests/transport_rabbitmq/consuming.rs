use acemq::transport::{Settled, Subscribe, Verdict};
use acemq_tests::{amqp::Client, eventually, on_each_rabbitmq, rabbitmq::Node, unique, wait::within};
use futures_util::{FutureExt, StreamExt};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};

use crate::bench::{Bench, SOON, is_open, next};

/// Waits until a queue holds this many messages that are ready.
async fn ready(client: &Client, queue: &str, count: u32) {
    eventually(SOON, "the messages of a queue", async || match client.ready(queue).await {
        Some(ready) if ready == count => Ok(()),
        other => Err(other),
    })
    .await;
}

on_each_rabbitmq! {
    async fn settlements_are_kept_and_the_rest_goes_back(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        bench.fill(&queue, 4).await;
        let mut subscription = bench.subscribe(&queue, 4).await;
        for number in 0..4_u64 {
            let delivery = next(&mut subscription).await;
            assert_eq!((delivery.tag, delivery.redelivered), (number + 1, false));
            assert_eq!((delivery.exchange.as_str(), delivery.routing_key.as_str()), ("", queue.as_str()));
            assert_eq!(delivery.body, number.to_string());
        }
        assert_eq!(subscription.channel.settle(1, Verdict::Ack), Settled::Done);
        assert_eq!(subscription.channel.settle(2, Verdict::Requeue), Settled::Done);
        let again = next(&mut subscription).await;
        assert_eq!((again.body.as_ref(), again.redelivered), (&b"1"[..], true));
        assert_eq!(subscription.channel.settle(again.tag, Verdict::Ack), Settled::Done);
        // 2 and 3 are not settled.
        within(SOON, "a close", subscription.channel.close()).await;
        assert_eq!(subscription.channel.settle(3, Verdict::Ack), Settled::Gone);
        assert!(within(SOON, "the end", subscription.deliveries.next()).await.is_none());
        let left = Client::connect(&node.url()).await.take_all(&queue).await;
        let left: Vec<_> = left.iter().map(|message| (message.text(), message.redelivered)).collect();
        assert_eq!(left, [("2".to_owned(), true), ("3".to_owned(), true)]);
    }

    async fn acks_right_before_a_close_are_kept(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        bench.fill(&queue, 2000).await;
        let mut subscription = bench.subscribe(&queue, 2000).await;
        for _ in 0..2000 {
            let tag = next(&mut subscription).await.tag;
            assert_eq!(subscription.channel.settle(tag, Verdict::Ack), Settled::Done);
        }
        subscription.channel.close().await;
        ready(&Client::connect(&node.url()).await, &queue, 0).await;
        bench.fill(&queue, 2000).await;
        // And right before the close of the connection.
        let mut subscription = bench.subscribe(&queue, 2000).await;
        for _ in 0..2000 {
            let tag = next(&mut subscription).await.tag;
            assert_eq!(subscription.channel.settle(tag, Verdict::Ack), Settled::Done);
        }
        bench.close().await;
        ready(&Client::connect(&node.url()).await, &queue, 0).await;
    }

    async fn twenty_thousand_in_any_order_never_confuse_the_broker(node: &'static Node) {
        const MESSAGES: usize = 20_000;
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        bench.fill(&queue, MESSAGES).await;
        let mut subscription = bench.subscribe(&queue, 1000).await;
        let mut random = StdRng::seed_from_u64(7);
        let mut held = Vec::new();
        let (mut acked, mut requeued) = (0, 0);
        while acked < MESSAGES {
            // Unless everything that is left is here already.
            if acked + held.len() < MESSAGES {
                held.push(next(&mut subscription).await.tag);
            }
            while let Some(Some(more)) = subscription.deliveries.next().now_or_never() {
                held.push(more.expect("no loss of the channel").tag);
            }
            held.shuffle(&mut random);
            let settled = random.random_range(1..=held.len());
            for tag in held.drain(..settled) {
                let verdict = if random.random_ratio(1, 20) { Verdict::Requeue } else { Verdict::Ack };
                match verdict {
                    Verdict::Ack => acked += 1,
                    Verdict::Requeue => requeued += 1,
                }
                assert_eq!(subscription.channel.settle(tag, verdict), Settled::Done);
            }
        }
        assert!(requeued > 0);
        within(SOON, "a close", subscription.channel.close()).await;
        assert!(is_open(&*bench.consume));
        ready(&Client::connect(&node.url()).await, &queue, 0).await;
    }

    async fn a_settlement_that_the_broker_would_not_know_is_dropped(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        bench.fill(&queue, 2).await;
        let mut subscription = bench.subscribe(&queue, 1).await;
        let tag = next(&mut subscription).await.tag;
        for wrong in [0, tag + 1, u64::MAX] {
            let _ = subscription.channel.settle(wrong, Verdict::Ack);
        }
        for verdict in [Verdict::Ack, Verdict::Ack, Verdict::Requeue] {
            let _ = subscription.channel.settle(tag, verdict);
        }
        assert_eq!(next(&mut subscription).await.body, "1");
        assert!(is_open(&*bench.consume));
    }

    async fn no_more_than_the_prefetch_is_out(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        bench.fill(&queue, 20).await;
        let mut subscription = bench.subscribe(&queue, 3).await;
        let client = Client::connect(&node.url()).await;
        ready(&client, &queue, 17).await;
        let tags = [next(&mut subscription).await.tag, next(&mut subscription).await.tag];
        let _ = subscription.channel.settle(tags[1], Verdict::Ack);
        ready(&client, &queue, 16).await;
    }

    async fn after_a_cancel_the_buffered_come_and_then_the_end(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        bench.fill(&queue, 30).await;
        let mut subscription = bench.subscribe(&queue, 10).await;
        let client = Client::connect(&node.url()).await;
        ready(&client, &queue, 20).await;
        within(SOON, "a cancel", subscription.channel.cancel()).await;
        for _ in 0..10 {
            let tag = next(&mut subscription).await.tag;
            assert_eq!(subscription.channel.settle(tag, Verdict::Requeue), Settled::Done);
        }
        assert!(within(SOON, "the end", subscription.deliveries.next()).await.is_none());
        ready(&client, &queue, 30).await;
        within(SOON, "a close", subscription.channel.close()).await;
    }

    async fn a_deleted_queue_ends_its_subscription_without_an_error(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        bench.fill(&queue, 1).await;
        let mut subscription = bench.subscribe(&queue, 10).await;
        let tag = next(&mut subscription).await.tag;
        Client::connect(&node.url()).await.delete(&queue).await;
        assert!(within(SOON, "the end", subscription.deliveries.next()).await.is_none());
        let _ = subscription.channel.settle(tag, Verdict::Ack);
        within(SOON, "a close", subscription.channel.close()).await;
        assert!(is_open(&*bench.consume));
    }

    async fn a_dropped_subscription_gives_everything_back(node: &'static Node) {
        let bench = Bench::new(node).await;
        let queue = bench.queue().await;
        bench.fill(&queue, 5).await;
        let mut subscription = bench.subscribe(&queue, 5).await;
        next(&mut subscription).await;
        drop(subscription);
        let client = Client::connect(&node.url()).await;
        ready(&client, &queue, 5).await;
        assert_eq!(client.consumers(&queue).await, Some(0));
    }

    async fn the_consumer_has_the_tag_that_was_asked_for(node: &'static Node) {
        let bench = Bench::new(node).await;
        let (queue, tag) = (bench.queue().await, unique("tag"));
        let wanted = Subscribe { queue, prefetch: 1, tag: tag.clone() };
        let _subscription = bench.consume.subscribe(&wanted).await.unwrap();
        let consumers = node.ctl(["list_consumers", "consumer_tag", "prefetch_count"]).await;
        assert!(consumers.lines().any(|line| line == format!("{tag}\t1")), "{consumers}");
    }
}
