//! Workers and subscribers against a broker that answers by script.

use super::*;
use crate::fake::{Asked, Fake, delivery, event, request};
use std::sync::atomic::{AtomicU64, Ordering};
use weir_proto::v1::{AlreadyFinal, FinalState, LeaseRef, Notice, Revoked, SettleOutcome, begin_response, notice};

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
    assert_eq!((settlement.outcome(), settlement.delay_ms), (SettleOutcome::Retry, 1_000));
    assert!(!begun(&fake.asked()));
    running.abort();
}

#[tokio::test]
async fn a_lost_lease_tells_its_handler_to_stop() {
    let fake = Fake::start();
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let worker = fake.client().worker(options(), move |job| {
        let told = told.clone();
        async move {
            job.cancel.cancelled().await;
            told.send(job.delivery.epoch).unwrap();
            Err(HandlerError::failed("stopped"))
        }
    });
    let running = tokio::spawn(worker.run());
    fake.grant(delivery(7, &request(7)));
    fake.until(|asked| begun(asked).then_some(())).await;
    let lease = Some(LeaseRef { epoch: 7, offset: 7 });
    fake.notices.lock().push(Notice { kind: Some(notice::Kind::Revoked(Revoked { lease })) });
    assert_eq!(heard.recv().await, Some(7));
    running.abort();
}

#[tokio::test]
async fn heartbeats_go_on_while_a_handler_blocks_its_thread() {
    let fake = Fake::start();
    let script = Arc::clone(&fake.script);
    let worker = fake.client().worker(options(), move |_| {
        let beats = |asked: &[Asked]| asked.iter().filter(|asked| matches!(asked, Asked::Heartbeat(_))).count();
        let before = beats(&script.asked());
        // This test's runtime has one thread: nothing else of it runs until two more heartbeats have come.
        script.block_until(move |asked| (beats(asked) >= before + 2).then_some(()));
        async { Ok(Outcome::completed("receipt")) }
    });
    let running = tokio::spawn(worker.run());
    fake.grant(delivery(7, &request(7)));
    fake.until(completed).await;
    running.abort();
}

#[tokio::test]
async fn a_fetch_lists_what_is_worked_on_and_nothing_else() {
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
    let running = tokio::spawn(worker.run());
    let lists = |asked: &[Asked]| -> Vec<Vec<u64>> {
        asked
            .iter()
            .filter_map(|asked| match asked {
                Asked::Fetch(_, held) => held.clone(),
                _ => None,
            })
            .collect()
    };
    fake.grant(delivery(7, &request(7)));
    fake.until(|asked| lists(asked).contains(&vec![7]).then_some(())).await;
    assert_eq!(lists(&fake.asked())[0], Vec::<u64>::new(), "the first fetch says that nothing is held");
    gate.notify_one();
    fake.until(completed).await;
    // The next fetches begin once the one under way is answered.
    fake.grant(delivery(8, &request(8)));
    fake.until(|asked| lists(asked).contains(&vec![8]).then_some(())).await;
    running.abort();
}

#[tokio::test]
async fn leases_of_their_own_are_extended_while_their_handler_works() {
    let fake = Fake::start();
    let options = ConsumerOptions { lease_ms: 600, ..options() };
    let worker = fake.client().worker(options, |job| async move {
        job.cancel.cancelled().await;
        Ok(Outcome::done())
    });
    let running = tokio::spawn(worker.run());
    fake.grant(delivery(7, &request(7)));
    fake.until(|asked| asked.iter().any(|a| matches!(a, Asked::Extend(lease) if lease.epoch == 7)).then_some(())).await;
    assert!(
        fake.asked().iter().all(|asked| !matches!(asked, Asked::Heartbeat(false))),
        "each heartbeat asks which of its leases are over"
    );
    running.abort();
}

#[tokio::test]
async fn the_session_stays_the_same_over_a_broken_connection() {
    let fake = Fake::start();
    let worker = fake.client().worker(options(), |_| async { Ok(Outcome::completed("receipt")) });
    let running = tokio::spawn(worker.run());
    let sessions = |asked: &[Asked]| -> Vec<Vec<u8>> {
        asked
            .iter()
            .filter_map(|asked| match asked {
                Asked::Fetch(session, _) => Some(session.clone()),
                _ => None,
            })
            .collect()
    };
    fake.until(|asked| (!sessions(asked).is_empty()).then_some(())).await;
    fake.cut_connections();
    fake.until(|asked| (sessions(asked).len() > 1).then_some(())).await;
    let sessions = sessions(&fake.asked());
    assert_eq!((sessions[0].len(), &sessions[0]), (16, &sessions[1]));
    running.abort();
}
