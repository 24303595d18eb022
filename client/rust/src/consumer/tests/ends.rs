//! How leases end: repeats, refusals, stops.

use super::*;
use crate::{CancelCause, Report};
use weir_proto::v1::{ErrorReason, Refusal, complete_response, settle_result};

fn refusal(reason: ErrorReason) -> Refusal {
    Refusal { reason: reason.into(), text: "no".into(), ..Default::default() }
}

fn completes(asked: &[Asked]) -> Vec<server::CompleteRequest> {
    let completes = asked.iter().filter_map(|asked| match asked {
        Asked::Complete(complete) => Some(complete.as_ref().clone()),
        _ => None,
    });
    completes.collect()
}

fn settlements(asked: &[Asked]) -> Vec<v1::Settlement> {
    let settlements = asked.iter().filter_map(|asked| match asked {
        Asked::Settle(settlement) => Some(settlement.clone()),
        _ => None,
    });
    settlements.collect()
}

#[tokio::test]
async fn begin_and_complete_are_repeated_until_they_are_answered() {
    let fake = Fake::start();
    fake.lose_answers.store(1, Ordering::SeqCst);
    let script = Arc::clone(&fake.script);
    let worker = fake.client().worker(options(), move |_| {
        script.lose_answers.store(1, Ordering::SeqCst);
        async { Ok(Outcome::completed("receipt")) }
    });
    let running = worker.start();
    fake.grant(delivery(7, &request(7)));
    let completes = fake.until(|asked| Some(completes(asked)).filter(|all| all.len() == 2)).await;
    assert_eq!(completes[0], completes[1]);
    let begins = |asked: &[Asked]| asked.iter().filter(|asked| matches!(asked, Asked::Begin(_))).count();
    assert_eq!(begins(&fake.asked()), 2);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_settle_is_repeated_until_it_is_answered() {
    let fake = Fake::start();
    fake.lose_answers.store(1, Ordering::SeqCst);
    let running = fake.client().subscriber(options(), |_| async { Ok(Outcome::done()) }).start();
    fake.grant(delivery(7, &event(7)));
    let settlements = fake.until(|asked| Some(settlements(asked)).filter(|all| all.len() == 2)).await;
    assert_eq!(settlements[0], settlements[1]);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_report_names_its_execution_and_fills_in_its_result() {
    use prost::Message as _;
    let fake = Fake::start();
    let worker = fake.client().worker(options(), |_| async {
        let result = v1::Message { message_id: "r7".into(), agent_id: "desk".into(), ..Default::default() };
        Ok(Report::completed("receipt").with_result(result).into())
    });
    let running = worker.start();
    fake.grant(delivery(7, &request(7)));
    let complete = fake.until(|asked| completes(asked).pop()).await;
    assert_eq!((complete.tenant.as_str(), complete.execution_id.as_str(), complete.fencing_token), ("acme", "x7", 107));
    let follow_up = &complete.publishes[0];
    assert_eq!((follow_up.policy.as_str(), follow_up.agent_id.as_str()), ("task_events", "desk"));
    let result = v1::Message::decode(follow_up.message.clone()).unwrap();
    assert_eq!((result.task_id.as_str(), result.execution_id.as_str()), ("t7", "x7"));
    assert_eq!((result.final_state(), result.artifact_ref.as_str()), (FinalState::Completed, "receipt"));
    assert_eq!((result.r#type.as_str(), result.fencing_token), ("task.result", 107));
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_result_that_is_refused_is_left_out_but_the_outcome_is_not() {
    let fake = Fake::start();
    fake.completes.lock().push_back(complete_response::Result::Refused(refusal(ErrorReason::TooLarge)));
    let worker = fake.client().worker(options(), |_| async {
        let result = v1::Message { message_id: "r7".into(), ..Default::default() };
        Ok(Report::completed("receipt").with_result(result).into())
    });
    let running = worker.start();
    fake.grant(delivery(7, &request(7)));
    let completes = fake.until(|asked| Some(completes(asked)).filter(|all| all.len() == 2)).await;
    assert_eq!((completes[0].publishes.len(), completes[1].publishes.len()), (1, 0));
    assert_eq!((completes[1].final_state(), completes[1].artifact_ref.as_str()), (FinalState::Completed, "receipt"));
    running.stop().await.unwrap();
}

#[tokio::test]
async fn follow_ups_that_are_refused_leave_the_execution_unknown() {
    let fake = Fake::start();
    fake.completes.lock().push_back(complete_response::Result::Refused(refusal(ErrorReason::InvalidArgument)));
    let worker = fake.client().worker(options(), |_| async {
        Ok(Report::completed("receipt").with_follow_up(v1::ChannelRef::default(), v1::Message::default()).into())
    });
    let running = worker.start();
    fake.grant(delivery(7, &request(7)));
    let settlement = fake.until(settled).await;
    assert_eq!(settlement.outcome(), SettleOutcome::Unknown);
    assert!(settlement.reason.contains("INVALID_ARGUMENT"), "{}", settlement.reason);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_retry_of_what_is_unsafe_to_repeat_becomes_unknown() {
    let fake = Fake::start();
    fake.settles.lock().push_back(settle_result::Result::Refused(refusal(ErrorReason::ExecutionBegun)));
    let worker = fake
        .client()
        .worker(options(), |_| async { Ok(Outcome::Retry { delay: None, reason: "the provider hung up".into() }) });
    let running = worker.start();
    fake.grant(delivery(7, &request(7)));
    let settlements = fake.until(|asked| Some(settlements(asked)).filter(|all| all.len() == 2)).await;
    assert_eq!(settlements[1].outcome(), SettleOutcome::Unknown);
    assert_eq!(settlements[1].reason, "the provider hung up");
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_stop_lets_a_handler_end_before_it_leaves() {
    let fake = Fake::start();
    let gate = Arc::new(tokio::sync::Notify::new());
    let passes = Arc::clone(&gate);
    let worker = fake.client().worker(options(), move |_| {
        let passes = Arc::clone(&passes);
        async move {
            passes.notified().await;
            Ok(Outcome::completed("receipt"))
        }
    });
    let (stop, running) = (worker.stopper(), worker.start());
    fake.grant(delivery(7, &request(7)));
    fake.until(|asked| begun(asked).then_some(())).await;
    stop.cancel();
    gate.notify_one();
    running.stop().await.unwrap();
    let asked = fake.asked();
    assert!(completed(&asked).is_some());
    assert!(matches!(asked.last(), Some(Asked::Leave)));
}

#[tokio::test]
async fn what_does_not_end_in_time_hears_of_the_stop_and_is_unknown_if_begun() {
    let fake = Fake::start();
    let options = ConsumerOptions { drain: Duration::ZERO, ..options() };
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let worker = fake.client().worker(options, move |job| {
        let told = told.clone();
        async move {
            job.cancel.cancelled().await;
            told.send(job.cancel_cause()).unwrap();
            // Hears it, and yet does not end: it is given up after the grace.
            std::future::pending().await
        }
    });
    let running = worker.start();
    fake.grant(delivery(7, &request(7)));
    fake.grant(delivery(8, &event(8)));
    fake.until(|asked| begun(asked).then_some(())).await;
    running.stop().await.unwrap();
    assert_eq!(heard.recv().await, Some(Some(CancelCause::Stopping)));
    let mut outcomes: Vec<_> = settlements(&fake.asked()).iter().map(|s| (s.epoch, s.outcome())).collect();
    outcomes.sort_unstable_by_key(|(epoch, _)| *epoch);
    assert_eq!(outcomes, [(7, SettleOutcome::Unknown), (8, SettleOutcome::Release)]);
    assert!(matches!(fake.asked().last(), Some(Asked::Leave)));
}
