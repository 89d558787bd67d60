//! The embedded broker against RabbitMQ: the same script on both must leave the same record.
//!
//! What each step should give is asserted in the unit tests of the embedded broker; here it is enough that the two agree.

mod lab;
mod script;

use lab::Lab;

macro_rules! parity {
    ($($since:ident: $($script:ident),* $(,)?;)*) => {
        $($(mod $script {
            use super::*;

            async fn compare(real: Option<Lab>) {
                let Some(real) = real else { return };
                let embedded = Lab::embedded();
                let expected = script::$script(&embedded).await;
                real.await_as_many_as(&embedded);
                lab::same(&expected, &script::$script(&real).await);
            }

            parity!(@$since);

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn rabbitmq_4() {
                compare(Lab::rabbitmq_4().await).await;
            }
        })*)*
    };
    (@since_3) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn rabbitmq_3() {
            compare(Lab::rabbitmq_3().await).await;
        }
    };
    (@since_4) => {};
}

parity! {
    since_3:
        argument_differences,
        impossible_arguments,
        exchanges_and_bindings,
        routing,
        full_queues,
        prefetch_and_turns,
        cancelling,
        closing,
        waiting_in_a_queue,
        lifetimes_of_messages,
        circles,
        lifetime_of_zero;
    since_4:
        queue_types,
        carbon_copies,
        returns_to_a_quorum_queue,
        delivery_limits,
        records_of_death;
}
