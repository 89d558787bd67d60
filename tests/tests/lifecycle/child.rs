//! A program of its own with consumers that behave well, badly, or not at all.

use std::{
    fs,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use acemq::{Ack, App, Context, Text, consumer};

/// How long its handlers may take at a shutdown, and how long after they were told to stop.
pub const DRAIN: Duration = Duration::from_secs(2);
pub const GRACE: Duration = Duration::from_secs(1);

fn begin(what: &str, context: &Context) {
    println!("\nbegun {} {what} attempt {}", context.queue(), context.attempt());
}

#[consumer(queue = "sleeps", declare = classic, name = "sleeps")]
async fn sleeps(Text(millis): Text, context: Context) {
    begin(&millis, &context);
    tokio::time::sleep(Duration::from_millis(millis.parse().unwrap())).await;
    println!("\nended {millis}");
}

#[consumer(queue = "obeys", declare = classic, name = "obeys")]
async fn obeys(Text(what): Text, context: Context) -> Result<(), String> {
    begin(&what, &context);
    context.cancelled().await;
    Err("stopped".to_owned())
}

#[consumer(queue = "deaf", declare = classic, name = "deaf")]
async fn deaf(Text(what): Text, context: Context) {
    begin(&what, &context);
    std::future::pending::<()>().await;
}

/// An `async` handler that never lets its thread go.
#[consumer(queue = "spins", declare = classic, name = "spins")]
async fn spins(Text(what): Text, context: Context) {
    begin(&what, &context);
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[allow(clippy::needless_pass_by_value, reason = "as handlers take them")]
#[consumer(queue = "blocks", declare = classic, name = "blocks", blocking)]
fn blocks(Text(what): Text, context: Context) {
    begin(&what, &context);
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[consumer(queue = "fails", declare = classic, name = "fails", retry = fixed(5, "5m", wait_in_broker_from = "10m"))]
async fn fails(Text(what): Text, context: Context) -> Result<(), String> {
    begin(&what, &context);
    Err("no".to_owned())
}

#[consumer(queue = "queues", declare = classic, name = "queues", concurrency = 1)]
async fn queues(Text(millis): Text, context: Context) {
    begin(&millis, &context);
    tokio::time::sleep(Duration::from_millis(millis.parse().unwrap())).await;
}

/// The second message of one id is in progress for a minute.
#[consumer(queue = "claims", declare = classic, name = "claims", idempotent(in_progress_delay = "1m"))]
async fn claims(Text(millis): Text, context: Context) {
    begin(&millis, &context);
    tokio::time::sleep(Duration::from_millis(millis.parse().unwrap())).await;
}

#[consumer(queue = "rejects", declare = classic, name = "rejects")]
async fn rejects(Text(what): Text, context: Context) -> Ack {
    begin(&what, &context);
    tokio::time::sleep(Duration::from_millis(500)).await;
    Ack::dead_letter("never")
}

pub const QUEUES: [&str; 9] = ["sleeps", "obeys", "deaf", "spins", "blocks", "fails", "queues", "claims", "rejects"];

fn app() -> App {
    App::from_env()
        .unwrap()
        .grace(GRACE)
        .consumer::<sleeps>()
        .consumer::<obeys>()
        .consumer::<deaf>()
        .consumer::<spins>()
        .consumer::<blocks>()
        .consumer::<fails>()
        .consumer::<queues>()
        .consumer::<claims>()
        .consumer::<rejects>()
        .on_started(async |_| println!("\nstarted"))
}

/// What `#[tokio::main]` makes of `acemq::run().await`, with the account on the standard output.
#[test]
#[ignore = "the program of the other tests"]
fn runs_until_a_signal() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let drained = runtime.block_on(app().run()).unwrap();
    let (totals, returned) = (&drained.totals, &drained.totals.returned);
    assert_eq!(totals.delivered, totals.settled() + u64::try_from(drained.left.total()).unwrap(), "{drained:?}");
    println!(
        "\naccount: delivered {} acked {} set aside {} unstarted {} waiting {} stopped {} abandoned {} lost {} finished {}",
        totals.delivered,
        totals.acked,
        totals.set_aside(),
        returned.unstarted,
        returned.waiting,
        returned.stopped,
        drained.abandoned,
        totals.lost,
        drained.finished
    );
    // Waits for every thread, as the end of `main` does.
    drop(runtime);
    std::process::exit(i32::from(!drained.finished));
}

static HANDLED: AtomicUsize = AtomicUsize::new(0);

#[consumer(queue = "counts", declare = quorum, name = "counts")]
async fn counts(_: Text) {
    HANDLED.fetch_add(1, Ordering::SeqCst);
}

/// Accepts as many messages as it is told and ends without another word.
#[test]
#[ignore = "the program of the other tests"]
fn accepts_and_exits() {
    let wanted: usize = std::env::var("WANTED").unwrap().parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let drained = runtime.block_on(async {
        let running = App::from_env().unwrap().consumer::<counts>().start().await.unwrap();
        while HANDLED.load(Ordering::SeqCst) < wanted {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        running.close().await
    });
    std::process::exit(i32::from(!drained.finished));
}

/// The threads and sockets of this process.
fn alive() -> (Vec<String>, usize) {
    let mut threads: Vec<String> = fs::read_dir("/proc/self/task")
        .unwrap()
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .map(|name| name.trim().to_owned())
        .collect();
    threads.sort_unstable();
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    let sockets = descriptors
        .filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok())
        .filter(|target| target.to_string_lossy().starts_with("socket:"))
        .count();
    (threads, sockets)
}

/// Starts and closes twice, and looks at what is alive between.
#[test]
#[ignore = "the program of the other tests"]
fn leaves_nothing_behind() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        // A thread has the name of its parent at first.
        while alive().0.iter().filter(|name| *name == "tokio-rt-worker").count() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let before = (alive(), tokio::runtime::Handle::current().metrics().num_alive_tasks());
        for round in 0..3 {
            let running = App::from_env().unwrap().actuator("127.0.0.1:0").consumer::<counts>().start().await.unwrap();
            let publisher = running.publisher();
            publisher.to_queue("counts").send_raw("text/plain", "a").await.unwrap();
            while HANDLED.load(Ordering::SeqCst) <= round {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert!(alive().1 > before.0.1, "this test sees no sockets");
            if round == 2 {
                // As one that was forgotten.
                drop(running);
            } else {
                let _ = running.close().await;
            }
            drop(publisher);
            let started = std::time::Instant::now();
            loop {
                let now = (alive(), tokio::runtime::Handle::current().metrics().num_alive_tasks());
                if now == before {
                    break;
                }
                let took = started.elapsed();
                assert!(took < Duration::from_secs(20), "round {round}: {now:?} after {took:?}; before: {before:?}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            println!("\nround {round}: nothing left after {:?}", started.elapsed());
        }
    });
    println!("\nnothing left");
}
