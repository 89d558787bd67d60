//! The end of a queue into a task.

use tokio::sync::mpsc::UnboundedReceiver;

/// Closes a queue and takes what is left in it, what is just being sent included.
///
/// A receiver that is dropped does not wait for that: it would lie in the queue for as long as its sender lives, and with
/// it the answer that the sender waits for.
pub(super) async fn rest<T>(queue: &mut UnboundedReceiver<T>) -> Vec<T> {
    queue.close();
    let mut rest = Vec::new();
    while let Some(item) = queue.recv().await {
        rest.push(item);
    }
    rest
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use futures_util::future::join_all;
    use tokio::{
        runtime::Handle,
        sync::{mpsc, oneshot},
        time::timeout,
    };

    use super::*;

    /// How often both sides meet. A receiver that is dropped leaves somebody waiting within a small part of that.
    const ROUNDS: usize = 2_000;

    #[tokio::test]
    async fn whoever_sends_while_the_queue_ends_is_not_left_waiting() {
        let (hand_over, ends) = std::sync::mpsc::channel::<UnboundedReceiver<oneshot::Sender<()>>>();
        let runtime = Handle::current();
        let ending = thread::spawn(move || {
            for mut queue in ends {
                drop(runtime.block_on(rest(&mut queue)));
            }
        });
        for round in 0..ROUNDS {
            let (sender, queue) = mpsc::unbounded_channel();
            let mut asked = Vec::new();
            hand_over.send(queue).unwrap();
            // Until the other side ends it.
            while !sender.is_closed() {
                let (answer, answered) = oneshot::channel();
                if sender.send(answer).is_err() {
                    break;
                }
                asked.push(answered);
            }
            let told = timeout(Duration::from_secs(10), join_all(asked)).await;
            assert!(told.is_ok(), "somebody waits since round {round}");
        }
        drop(hand_over);
        ending.join().unwrap();
    }
}
