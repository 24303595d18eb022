//! Workers and subscribers against a broker that answers by script.

mod ends;
mod leases;

use crate::fake::{Asked, Fake, delivery, event, request};
use crate::{ConsumerOptions, HandlerError, Outcome};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use weir_proto::server;
use weir_proto::v1::{self, AlreadyFinal, FinalState, InProgress, SettleOutcome, begin_response};

fn options() -> ConsumerOptions {
    ConsumerOptions::new("acme", "task_events", "g", "me").session_timeout_ms(1_000)
}

fn completed(asked: &[Asked]) -> Option<(u64, String, FinalState)> {
    asked.iter().find_map(|asked| match asked {
        Asked::Complete(complete) => {
            Some((complete.fencing_token, complete.execution_id.clone(), complete.final_state()))
        }
        _ => None,
    })
}

fn settled(asked: &[Asked]) -> Option<v1::Settlement> {
    asked.iter().find_map(|asked| match asked {
        Asked::Settle(settlement) => Some(settlement.clone()),
        _ => None,
    })
}

fn begun(asked: &[Asked]) -> bool {
    asked.iter().any(|asked| matches!(asked, Asked::Begin(_)))
}

#[tokio::test]
async fn a_request_is_begun_handled_and_completed_with_its_token() {
    let fake = Fake::start();
    let worker = fake.client().worker(options(), |job| async move {
        assert_eq!(job.fencing_token, Some(107));
        Ok(Outcome::completed("receipt"))
    });
    let stop = worker.stopper();
    let running = tokio::spawn(worker.run());
    fake.grant(delivery(7, &request(7)));
    let (token, execution, state) = fake.until(completed).await;
    assert_eq!((token, execution.as_str(), state), (107, "x7", FinalState::Completed));
    assert!(fake.asked().iter().any(|asked| matches!(asked, Asked::Begin(lease) if lease.epoch == 7)));
    stop.cancel();
    running.await.unwrap().unwrap();
    assert!(matches!(fake.asked().last(), Some(Asked::Leave)), "it leaves when it is stopped");
}

#[tokio::test]
async fn an_error_or_a_panic_after_begin_is_unknown() {
    for panics in [false, true] {
        let fake = Fake::start();
        let worker = fake.client().worker(options(), move |_| async move {
            assert!(!panics, "on purpose");
            Err(HandlerError::failed("the connection broke"))
        });
        let running = tokio::spawn(worker.run());
        fake.grant(delivery(7, &request(7)));
        let settlement = fake.until(settled).await;
        assert_eq!((settlement.outcome(), settlement.not_executed), (SettleOutcome::Unknown, false));
        running.abort();
    }
}

#[tokio::test]
async fn not_executed_withdraws_the_begin_and_tries_again() {
    let fake = Fake::start();
    let worker = fake.client().worker(options(), |_| async {
        Err(HandlerError::not_executed("the provider is closed", Duration::from_secs(3)))
    });
    let running = tokio::spawn(worker.run());
    fake.grant(delivery(7, &request(7)));
    let settlement = fake.until(settled).await;
    assert_eq!((settlement.outcome(), settlement.not_executed), (SettleOutcome::Retry, true));
    assert_eq!(settlement.delay_ms, 3_000);
    running.abort();
}

#[tokio::test]
async fn what_has_ended_before_is_not_done_again() {
    let fake = Fake::start();
    let already = AlreadyFinal { final_state: FinalState::Completed.into(), ..Default::default() };
    fake.begins.lock().push_back(begin_response::Result::AlreadyFinal(already));
    let runs = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&runs);
    let worker = fake.client().worker(options(), move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(Outcome::done()) }
    });
    let running = tokio::spawn(worker.run());
    fake.grant(delivery(7, &request(7)));
    assert_eq!(fake.until(settled).await.outcome(), SettleOutcome::Done);
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    running.abort();
}

#[tokio::test]
async fn a_subscriber_never_begins() {
    let fake = Fake::start();
    let subscriber = fake.client().subscriber(options(), |_| async { Ok(Outcome::done()) });
    let running = tokio::spawn(subscriber.run());
    fake.grant(delivery(7, &request(7)));
    assert_eq!(fake.until(settled).await.outcome(), SettleOutcome::Done);
    assert!(!begun(&fake.asked()));
    running.abort();
}

#[tokio::test]
async fn a_failed_event_comes_again() {
    let fake = Fake::start();
    let worker = fake.client().worker(options(), |_| async { Err(HandlerError::failed("not now")) });
    let running = tokio::spawn(worker.run());
    fake.grant(delivery(7, &event(7)));
    let settlement = fake.until(settled).await;
    assert_eq!(settlement.outcome(), SettleOutcome::Retry);
    assert!((500..=1_000).contains(&settlement.delay_ms), "{}", settlement.delay_ms);
    assert!(!begun(&fake.asked()));
    running.abort();
}

#[tokio::test]
async fn no_leave_to_act_runs_nothing_and_settles_nothing() {
    let fake = Fake::start();
    let elsewhere = begin_response::Result::InProgress(InProgress::default());
    fake.begins.lock().push_back(elsewhere);
    let worker = fake.client().worker(options().concurrency(1), |job| async move {
        assert_eq!(job.delivery.epoch, 8);
        Ok(Outcome::completed("receipt"))
    });
    let running = worker.start();
    fake.grant(delivery(7, &request(7)));
    // One place: that the second is taken shows that the first has ended.
    fake.grant(delivery(8, &request(8)));
    assert_eq!(fake.until(completed).await.1, "x8");
    assert_eq!(settled(&fake.asked()), None);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn the_first_result_is_told_where_an_execution_has_ended_before() {
    let fake = Fake::start();
    let already = AlreadyFinal { artifact_ref: "receipt 1".into(), ..Default::default() };
    fake.begins.lock().push_back(begin_response::Result::AlreadyFinal(already));
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let worker = fake.client().worker(options(), |_| async { Err(HandlerError::failed("not to be run")) });
    let worker = worker.on_already_final(move |delivery, first| {
        told.send((delivery.epoch, first.artifact_ref.clone())).unwrap();
    });
    let running = worker.start();
    fake.grant(delivery(7, &request(7)));
    assert_eq!(heard.recv().await, Some((7, "receipt 1".to_owned())));
    assert_eq!(fake.until(settled).await.outcome(), SettleOutcome::Done);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_worker_leaves_replays_alone() {
    let fake = Fake::start();
    let worker = fake.client().worker(options(), |_| async { Err(HandlerError::failed("not to be run")) });
    let running = worker.start();
    fake.grant(server::Delivery { replay: true, ..delivery(7, &request(7)) });
    assert_eq!(fake.until(settled).await.outcome(), SettleOutcome::Done);
    assert!(!begun(&fake.asked()));
    running.stop().await.unwrap();
}

#[tokio::test]
async fn one_task_after_the_other_is_not_needed_tasks_run_side_by_side() {
    let fake = Fake::start();
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let worker = fake.client().worker(options(), move |_| {
        let both = Arc::clone(&both);
        async move {
            both.wait().await;
            Ok(Outcome::done())
        }
    });
    let running = worker.start();
    fake.grant(delivery(7, &event(7)));
    fake.grant(delivery(8, &event(8)));
    let done = |asked: &[Asked]| asked.iter().filter(|asked| matches!(asked, Asked::Settle(_))).count();
    fake.until(|asked| (done(asked) == 2).then_some(())).await;
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_group_that_is_refused_for_good_ends_the_run() {
    let fake = Fake::start();
    let gone = v1::Refusal { reason: v1::ErrorReason::NotFound.into(), text: "no group".into(), ..Default::default() };
    fake.stale.lock().push_back(gone);
    let mut running = fake.client().worker(options(), |_| async { Ok(Outcome::done()) }).start();
    assert_eq!(running.ended().await.unwrap_err().reason, v1::ErrorReason::NotFound);
    assert!(matches!(fake.asked().last(), Some(Asked::Leave)));
    assert_eq!(running.ended().await.unwrap_err().reason, v1::ErrorReason::NotFound);
}
