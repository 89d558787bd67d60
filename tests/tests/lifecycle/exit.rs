//! What is left of a process, and of its acknowledgements, at its end.

use std::time::Duration;

use acemq_tests::{
    amqp::{Client, table, text},
    needs,
    process::Builder,
    rabbitmq::{self, Version},
    unique,
};

const SOON: Duration = Duration::from_secs(90);

async fn url(version: Version) -> String {
    let node = rabbitmq::shared(version).await;
    let vhost = unique("exit");
    node.add_vhost(&vhost).await;
    node.url_for("guest", "guest", &vhost)
}

#[tokio::test]
async fn after_a_close_or_a_drop_no_task_no_thread_and_no_socket_is_left() {
    needs!(RabbitMq4);
    let url = url(Version::V4).await;
    let mut program = Builder::test("child::leaves_nothing_behind").env("ACEMQ_URL", &url).start();
    let code = program.exit_code(SOON).await;
    assert_eq!(code, Some(0), "{}", program.lines().join("\n"));
    program.line("nothing left", SOON).await;
}

#[tokio::test]
async fn what_a_process_accepted_before_it_exited_is_not_delivered_again() {
    needs!(RabbitMq4);
    let url = url(Version::V4).await;
    let client = Client::connect(&url).await;
    client
        .declare(
            "counts",
            table([
                ("x-queue-type", text("quorum")),
                ("x-dead-letter-exchange", text("acemq.dlx")),
                ("x-dead-letter-routing-key", text("counts.dlq")),
            ]),
        )
        .await;
    for _ in 0..20 {
        for _ in 0..20 {
            let properties = lapin::BasicProperties::default().with_content_type("text/plain".into());
            client.publish("", "counts", b"a", properties).await;
        }
        let child = Builder::test("child::accepts_and_exits");
        let mut program = child.env("ACEMQ_URL", &url).env("ACEMQ_ACTUATOR", "off").env("WANTED", "20").start();
        assert_eq!(program.exit_code(SOON).await, Some(0), "{}", program.lines().join("\n"));
        assert_eq!(client.take_all("counts").await, []);
    }
}
