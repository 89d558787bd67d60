//! What a delivery becomes, on every transport: the same cases on the embedded broker and on RabbitMQ 3.10 and 4.x.

mod cases;
mod consumers;
mod lab;
mod waits;

use lab::Lab;

macro_rules! suite {
    ($($module:ident: $($case:ident),* $(,)?;)*) => {
        mod embedded {
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$module::$case(&super::Lab::embedded()).await;
            })*)*
        }
        mod rabbitmq_3 {
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                if let Some(lab) = super::Lab::rabbitmq_3().await {
                    super::$module::$case(&lab).await;
                }
            })*)*
        }
        mod rabbitmq_4 {
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                if let Some(lab) = super::Lab::rabbitmq_4().await {
                    super::$module::$case(&lab).await;
                }
            })*)*
        }
    };
}

suite! {
    cases:
        an_accepted_message_is_handled_once_and_gone,
        a_short_wait_advances_the_attempt_and_keeps_everything_else,
        a_wait_in_the_broker_comes_back_through_its_rung,
        exhausted_attempts_end_in_the_dead_letter_queue_with_the_last_error,
        a_fatal_error_a_rejection_and_a_park_are_told_apart,
        a_released_message_comes_back_with_its_attempt,
        an_undecodable_body_is_parked_byte_for_byte_and_never_handled,
        without_a_policy_a_message_is_tried_on_and_on,
        an_old_message_is_given_up,
        a_panic_is_a_failed_attempt,
        a_handler_over_its_timeout_has_failed,
        a_message_of_a_stranger_is_a_first_attempt,
        an_attempt_is_understood_in_every_type,
        a_senseless_attempt_is_parked,
        a_bound_queue_receives_what_its_exchange_routes,
        handlers_publish_and_carry_the_correlation_on,
        an_unroutable_publish_is_an_error,
        a_paused_consumer_holds_and_resumes,
        a_close_waits_for_running_handlers_and_gives_the_rest_back,
        a_close_ends_held_waits_at_once_with_the_attempt_unchanged,
        a_thousand_messages_with_failures_balance;
    waits:
        a_short_wait_in_the_broker_is_not_held_up_by_a_long_one,
        another_delay_is_another_queue_and_what_waits_in_the_old_one_comes_home;
}
