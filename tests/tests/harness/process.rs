//! It reads what a program prints, and leaves nothing behind.

use std::path::Path;
use std::time::Duration;

use acemq_tests::process::Builder;
use acemq_tests::rabbitmq::{Node, Version};
use acemq_tests::{eventually, needs};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn the_lines_of_a_program_are_seen_as_they_come() {
    let script = "echo one; echo $WORD >&2; trap 'echo asked; exit 3' TERM; while :; do sleep 0.01; done";
    let mut program = Builder::new("/bin/sh").args(["-c", script]).env("WORD", "two").start();
    assert_eq!(program.line("on", SOON).await, "one");
    assert_eq!(program.line("two", SOON).await, "two");
    program.terminate();
    assert_eq!(program.exit_code(SOON).await, Some(3));
    assert_eq!(program.line("asked", SOON).await, "asked");
}

#[tokio::test]
async fn a_signal_that_ends_a_program_leaves_no_exit_code() {
    // Not SIGINT: a test that was started in the background hands it on as ignored.
    for signal in ["kill", "terminate"] {
        let mut program = Builder::new("sleep").args(["60"]).start();
        if signal == "kill" {
            program.kill();
        } else {
            program.terminate();
        }
        assert_eq!(program.exit_code(SOON).await, None, "{signal}");
    }
}

#[tokio::test]
#[should_panic(expected = "in vain for a program to print \"never\" (1); it printed:\nonce")]
async fn a_line_that_never_comes_fails_with_what_was_printed() {
    let program = Builder::new("/bin/sh").args(["-c", "echo once; sleep 60"]).start();
    program.line("once", SOON).await;
    program.line("never", Duration::from_millis(100)).await;
}

/// What [`nothing_outlives_a_killed_test`] runs in a process of its own.
#[tokio::test]
#[ignore = "the other half of nothing_outlives_a_killed_test"]
async fn starts_a_node_and_waits_to_be_killed() {
    let node = Node::start(Version::V4).await;
    let id = node.process_id().expect("it was started");
    println!("\nnode: {id} {}", node.directory().display());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn nothing_outlives_a_killed_test() {
    needs!(RabbitMq4);
    let mut test = Builder::test("process::starts_a_node_and_waits_to_be_killed").start();
    let line = test.line("node: ", Duration::from_mins(2)).await;
    let mut parts = line.split(' ').skip(1);
    let process = Path::new("/proc").join(parts.next().unwrap());
    let directory = Path::new(parts.next().unwrap());
    assert!(process.exists() && directory.exists());
    test.kill();
    test.ended(SOON).await;
    eventually(SOON, "the end of the node and of its directory", async || {
        match (process.exists(), directory.exists()) {
            (false, false) => Ok(()),
            left => Err(left),
        }
    })
    .await;
}
