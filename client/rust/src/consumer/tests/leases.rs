//! What is held, for how long, and how its loss is told.

use super::*;
use crate::CancelCause;
use weir_proto::v1::{Cancelled, HeldAnswer, LeaseLost, LeaseRef, Notice, Refusal, Revoked, notice, settle_result};

fn fetches(asked: &[Asked]) -> Vec<(Vec<u8>, Vec<u64>)> {
    let fetches = asked.iter().filter_map(|asked| match asked {
        Asked::Fetch(session, held) => Some((session.clone(), held.clone().unwrap())),
        _ => None,
    });
    fetches.collect()
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

#[tokio::test]
async fn work_that_was_called_off_hears_why_and_its_report_still_counts() {
    let fake = Fake::start();
    let worker = fake.client().worker(options(), |job| async move {
        job.cancel.cancelled().await;
        assert_eq!(job.cancel_cause(), Some(CancelCause::EndedElsewhere(FinalState::Failed)));
        Ok(Outcome::canceled())
    });
    let running = worker.start();
    fake.grant(delivery(7, &request(7)));
    fake.until(|asked| begun(asked).then_some(())).await;
    let lease = Some(LeaseRef { epoch: 7, offset: 7 });
    let ended = Cancelled { lease, final_state: FinalState::Failed.into() };
    fake.notices.lock().push(Notice { kind: Some(notice::Kind::Cancelled(ended)) });
    assert_eq!(fake.until(completed).await.2, FinalState::Canceled);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_lost_lease_is_not_listed_any_more_and_its_begun_work_is_reported_still() {
    let fake = Fake::start();
    let worker = fake.client().worker(options(), |job| async move {
        job.cancel.cancelled().await;
        assert_eq!(job.cancel_cause(), Some(CancelCause::LeaseLost));
        Ok(Outcome::completed("receipt"))
    });
    let running = worker.start();
    fake.grant(delivery(7, &request(7)));
    fake.until(|asked| begun(asked).then_some(())).await;
    fake.until(|asked| fetches(asked).iter().any(|(_, held)| held == &[7]).then_some(())).await;
    fake.held.lock().push_back(HeldAnswer { kept: vec![], lost_epochs: vec![7] });
    // Ends the fetch under way, so that the next one brings the answer.
    fake.grant(delivery(8, &event(8)));
    let (token, execution, _) = fake.until(completed).await;
    assert_eq!((token, execution.as_str()), (107, "x7"));
    fake.until(|asked| fetches(asked).iter().any(|(_, held)| held == &[8]).then_some(())).await;
    drop(running);
}

#[tokio::test]
async fn a_settle_that_comes_too_late_is_not_repeated() {
    let fake = Fake::start();
    fake.settles.lock().push_back(settle_result::Result::LeaseLost(LeaseLost { epoch: 7 }));
    let worker = fake.client().worker(options().concurrency(1), |_| async { Ok(Outcome::done()) });
    let running = worker.start();
    fake.grant(delivery(7, &event(7)));
    fake.grant(delivery(8, &event(8)));
    let settles = |asked: &[Asked]| -> Vec<u64> {
        let settles = asked.iter().filter_map(|asked| match asked {
            Asked::Settle(settlement) => Some(settlement.epoch),
            _ => None,
        });
        settles.collect()
    };
    fake.until(|asked| settles(asked).contains(&8).then_some(())).await;
    assert_eq!(settles(&fake.asked()), [7, 8]);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_session_the_broker_has_forgotten_goes_on_under_a_new_id() {
    let fake = Fake::start();
    let stale = Refusal { reason: v1::ErrorReason::StaleSession.into(), ..Default::default() };
    fake.stale.lock().push_back(stale);
    let running = fake.client().worker(options(), |_| async { Ok(Outcome::done()) }).start();
    let fetches = fake.until(|asked| Some(fetches(asked)).filter(|fetches| fetches.len() == 2)).await;
    assert_ne!(fetches[0].0, fetches[1].0);
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_static_member_that_was_replaced_ends() {
    let fake = Fake::start();
    let stale = Refusal { reason: v1::ErrorReason::StaleSession.into(), ..Default::default() };
    fake.stale.lock().push_back(stale);
    let options = ConsumerOptions { instance_id: "desk-1".into(), ..options() };
    let mut running = fake.client().worker(options, |_| async { Ok(Outcome::done()) }).start();
    assert_eq!(running.ended().await.unwrap_err().reason, v1::ErrorReason::StaleSession);
}
