use super::*;
use crate::fake::{Asked, Fake, Fate, event};
use tonic::Code;
use weir_proto::v1::{ErrorReason, Refusal};

fn desk() -> ChannelRef {
    ChannelRef { policy: "task_events".into(), tenant: "acme".into(), agent_id: "desk".into() }
}

fn refused(reason: ErrorReason, field: &str, retry_after_ms: u64, retryable: bool) -> Fate {
    let (field, text) = (field.to_owned(), "no".to_owned());
    let reason = reason.into();
    Fate::Refused(Refusal { reason, text, field, retry_after_ms, retryable, ..Default::default() })
}

fn publishes(asked: &[Asked]) -> Vec<Vec<String>> {
    let ids = asked.iter().filter_map(|asked| match asked {
        Asked::Publish(ids) => Some(ids.clone()),
        _ => None,
    });
    ids.collect()
}

fn ids(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|n| format!("m{n}")).collect()
}

/// Hands over message 0, and the others behind it while its call is held up, so that they make one batch.
async fn send_behind_the_first(fake: &Fake, publisher: &Publisher, count: u64) -> Vec<Pending> {
    fake.gate.send_replace(true);
    let mut pending = vec![publisher.send(&desk(), &event(0)).await.unwrap()];
    fake.until(|asked| (!publishes(asked).is_empty()).then_some(())).await;
    for n in 1..count {
        pending.push(publisher.send(&desk(), &event(n)).await.unwrap());
    }
    fake.gate.send_replace(false);
    pending
}

#[tokio::test]
async fn what_arrives_during_a_call_makes_the_next_batch() {
    let fake = Fake::start();
    let options = PublisherOptions { batch_messages: 4, ..Default::default() };
    let publisher = fake.client().publisher(options).unwrap();

    for pending in send_behind_the_first(&fake, &publisher, 8).await {
        pending.wait().await.unwrap();
    }

    assert_eq!(publishes(&fake.asked()), [ids(0..1), ids(1..5), ids(5..8)]);
    assert_eq!(*fake.stored.lock(), ids(0..8));
}

#[tokio::test]
async fn a_repeat_after_a_broken_connection_keeps_order_and_ids() {
    let fake = Fake::start();
    let publisher = fake.client().publisher(PublisherOptions::default()).unwrap();
    fake.fates.lock().push_back(Fate::StoredThenCut);

    let mut published = Vec::new();
    for pending in send_behind_the_first(&fake, &publisher, 5).await {
        published.push(pending.wait().await.unwrap());
    }

    assert_eq!(publishes(&fake.asked()), [ids(0..1), ids(0..1), ids(1..5)]);
    assert_eq!(*fake.stored.lock(), ids(0..5));
    assert!(published[0].is_duplicate() && published[1..].iter().all(|result| !result.is_duplicate()));
    assert_eq!(published.iter().map(Published::offset).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn a_message_at_fault_is_refused_alone_and_not_repeated() {
    let fake = Fake::start();
    let publisher = fake.client().publisher(PublisherOptions::default()).unwrap();
    fake.gate.send_replace(true);
    let pending = send_behind_the_first(&fake, &publisher, 4);
    fake.fates.lock().extend([
        refused(ErrorReason::DepthExceeded, "", 1, true),
        refused(ErrorReason::InvalidArgument, "messages[0].task_id", 0, false),
        refused(ErrorReason::InvalidArgument, "messages[1].task_id", 0, false),
    ]);

    let mut results = Vec::new();
    for pending in pending.await {
        results.push(pending.wait().await);
    }

    let fields: Vec<_> = results.iter().map(|result| result.as_ref().err().map(|e| e.field.as_str())).collect();
    assert_eq!(fields, [Some("message.task_id"), None, Some("message.task_id"), None]);
    assert_eq!(*fake.stored.lock(), ["m1", "m3"]);
}

#[tokio::test]
async fn a_full_channel_is_offered_less_and_order_stays() {
    let fake = Fake::start();
    let publisher = fake.client().publisher(PublisherOptions::default()).unwrap();
    let pending = send_behind_the_first(&fake, &publisher, 1).await;
    for pending in pending {
        pending.wait().await.unwrap();
    }
    fake.fates.lock().push_back(refused(ErrorReason::RateLimited, "", 1, true));
    fake.fates.lock().extend((0..2).map(|_| refused(ErrorReason::DepthExceeded, "", 1, true)));
    fake.gate.send_replace(true);
    let first = publisher.send(&desk(), &event(1)).await.unwrap();
    fake.until(|asked| (publishes(asked).len() == 2).then_some(())).await;
    let mut pending = vec![first];
    for n in 2..10 {
        pending.push(publisher.send(&desk(), &event(n)).await.unwrap());
    }
    fake.gate.send_replace(false);

    for pending in pending {
        pending.wait().await.unwrap();
    }

    assert_eq!(*fake.stored.lock(), ids(0..10));
}

#[tokio::test]
async fn a_refusal_that_outlasts_the_deadline_is_told_at_once() {
    let fake = Fake::start();
    let publisher = fake.client().publisher(PublisherOptions::default()).unwrap();
    fake.fates.lock().push_back(refused(ErrorReason::DepthExceeded, "", 3_600_000, true));

    let error = publisher.publish_within(&desk(), &event(0), Duration::from_secs(600)).await.unwrap_err();
    let behind = publisher.publish_within(&desk(), &event(1), Duration::from_secs(600)).await.unwrap_err();

    for error in [error, behind] {
        assert_eq!((error.code, error.reason), (Code::ResourceExhausted, ErrorReason::DepthExceeded));
        assert_eq!(error.retry_after, Some(Duration::from_secs(3600)));
        assert!(!error.may_have_applied);
    }
    assert!(fake.stored.lock().is_empty());
}

#[tokio::test]
async fn what_no_broker_takes_is_not_sent() {
    let fake = Fake::start();
    let publisher = fake.client().publisher(PublisherOptions::default()).unwrap();
    let large = Message { payload: vec![0; PAYLOAD_BYTES_MAX + 1].into(), ..event(0) };

    let error = publisher.publish(&desk(), &large).await.unwrap_err();

    assert_eq!((error.reason, error.field.as_str()), (ErrorReason::TooLarge, "message.payload"));
    assert_eq!(error.metadata["limit"], PAYLOAD_BYTES_MAX.to_string());
    assert!(fake.asked().is_empty());
    publisher.publish(&desk(), &event(1)).await.unwrap();
}

#[tokio::test]
async fn bytes_in_flight_are_bounded_and_flush_waits_for_all() {
    let fake = Fake::start();
    let options = PublisherOptions { bytes_in_flight: 64, ..Default::default() };
    let publisher = fake.client().publisher(options).unwrap();
    fake.gate.send_replace(true);
    let large = Message { payload: vec![0; 100].into(), ..event(0) };
    let first = publisher.send(&desk(), &large).await.unwrap();

    let second = publisher.send_within(&desk(), &event(1), Duration::from_millis(5)).await.unwrap_err();

    assert_eq!(second.code, Code::DeadlineExceeded);
    assert!(!second.may_have_applied);
    fake.gate.send_replace(false);
    publisher.flush().await;
    assert_eq!(*fake.stored.lock(), ids(0..1));
    first.wait().await.unwrap();
}
