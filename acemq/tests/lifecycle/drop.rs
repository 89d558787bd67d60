//! Applications that are dropped, or that share a process.

use std::time::Duration;

use acemq::{App, Error, transport::memory::Memory};

use super::bench::{Bench, app, deaf, everyone, put, until, works};

fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

async fn no_more_tasks_than(before: usize) {
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while tasks() > before {
        assert!(std::time::Instant::now() < deadline, "{} tasks live, and {before} did before", tasks());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_application_gives_everything_back_at_once_and_leaves_no_task_behind() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let before = tasks();
    let running = everyone(app(&bench, &broker)).start().await.unwrap();
    let publisher = running.publisher();
    for queue in ["works", "obeys", "deaf", "fails", "queues", "queues"] {
        put(&broker, queue, "a");
    }
    bench.begun(5).await;
    until(&running, |now| now.left.held == 1 && now.left.waiting == 1).await;
    let dropped = tokio::time::Instant::now();
    drop(running);
    broker.wait_until(|view| view.connections() == 0).await;
    assert!(dropped.elapsed() < Duration::from_millis(100), "{:?}", dropped.elapsed());
    for (queue, count) in [("works", 1), ("obeys", 1), ("deaf", 1), ("fails", 1), ("queues", 2)] {
        assert_eq!(broker.ready(queue), count, "{queue}");
    }
    no_more_tasks_than(before).await;
    let refused = publisher.to_queue("works").send("late").await.unwrap_err();
    assert!(matches!(refused, acemq::SendError::Refused { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn after_a_close_no_task_and_no_connection_is_left() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let before = tasks();
    let running = everyone(app(&bench, &broker)).start().await.unwrap();
    put(&broker, "sleeps", "10");
    put(&broker, "deaf", "a");
    bench.begun(2).await;
    let _ = running.close().await;
    assert_eq!(broker.view(|view| view.connections()), 0);
    no_more_tasks_than(before).await;
}

#[tokio::test(start_paused = true)]
async fn a_close_whose_future_is_dropped_stops_waiting_and_still_closes() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let before = tasks();
    let running = app(&bench, &broker).consumer::<deaf>().start().await.unwrap();
    put(&broker, "deaf", "a");
    bench.begun(1).await;
    assert!(tokio::time::timeout(Duration::from_secs(1), running.close()).await.is_err());
    broker.wait_until(|view| view.connections() == 0).await;
    assert_eq!(broker.ready("deaf"), 1);
    no_more_tasks_than(before).await;
}

#[tokio::test(start_paused = true)]
async fn an_application_that_cannot_start_leaves_nothing_behind() {
    let (bench, broker) = (Bench::new(), Memory::private());
    let before = tasks();
    // Of another kind than the consumer declares.
    let wrong =
        acemq::topology::Declaration::Queue { name: "works".to_owned(), arguments: acemq::envelope::Table::new() };
    broker.declare(&wrong).unwrap();
    let error = app(&bench, &broker).consumer::<works>().start().await.unwrap_err();
    assert!(matches!(error, Error::Declare(_)), "{error}");
    broker.wait_until(|view| view.connections() == 0).await;
    no_more_tasks_than(before).await;
}

#[tokio::test(start_paused = true)]
async fn applications_of_one_process_know_nothing_of_each_other() {
    let (first, second) = (Bench::new(), Bench::new());
    let (here, there) = (Memory::private(), Memory::private());
    let one = app(&first, &here).consumer::<works>().start().await.unwrap();
    let two = app(&second, &there).consumer::<works>().start().await.unwrap();
    put(&here, "works", "here");
    put(&there, "works", "there");
    first.begun(1).await;
    second.begun(1).await;
    first.go(1);
    one.pause_consuming();
    let closed = one.close().await;
    assert_eq!((closed.totals.acked, two.in_flight(), two.health().await.consuming.paused), (1, 1, false));
    put(&there, "works", "there again");
    second.begun(2).await;
    second.go(2);
    assert_eq!(two.close().await.totals.acked, 2);
}

#[test]
fn outside_a_runtime_the_error_says_what_to_do() {
    let start = App::new().url("memory://nowhere").consumer::<works>().start();
    let error = futures_util::FutureExt::now_or_never(start).unwrap().unwrap_err();
    assert!(error.to_string().contains("#[tokio::main]"), "{error}");
}

#[test]
fn a_publish_from_a_thread_without_a_runtime_is_a_publish() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (bench, broker) = (Bench::new(), Memory::private());
    let running = runtime.block_on(app(&bench, &broker).consumer::<works>().start()).unwrap();
    let publisher = running.publisher();
    bench.go(1);
    let sent = std::thread::spawn(move || futures_executor(publisher.to_queue("works").send_raw("text/plain", "a")));
    sent.join().unwrap().unwrap();
    runtime.block_on(bench.begun(1));
    runtime.block_on(running.settled());
    assert_eq!(runtime.block_on(running.close()).totals.acked, 1);
}

/// Runs a future on a thread that knows no runtime.
fn futures_executor<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}
