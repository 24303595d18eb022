//! Fetch, settle, begin, complete, one by one.

use super::rig::{PATIENCE, Rig, event, fetch, of_size, session, task_request};
use tonic::Code;
use weir_proto::v1::{self, begin_response, complete_response, settle_result};

fn settlement(delivery: &v1::Delivery, outcome: v1::SettleOutcome) -> v1::Settlement {
    v1::Settlement { epoch: delivery.epoch, offset: delivery.offset, outcome: outcome.into(), ..Default::default() }
}

#[tokio::test]
async fn a_request_is_fetched_begun_and_completed_and_its_settle_is_then_a_repeat() {
    let rig = Rig::new().await;
    let me = session(1, rig.group("task_events", "workers").await);
    rig.publish("task_events", vec![task_request("t1", "m1", "x1")]).await;
    let mut client = rig.consuming();

    let fetched = client.fetch(fetch(me.clone(), 1, 5000)).await.unwrap().into_inner();
    let delivery = &fetched.deliveries[0];
    assert_eq!(delivery.message.as_ref().unwrap(), &task_request("t1", "m1", "x1"));
    assert_eq!((delivery.tenant.as_str(), delivery.agent_id.as_str(), delivery.attempt), ("acme", "desk", 1));
    let (epoch, offset) = (delivery.epoch, delivery.offset);
    let me = v1::Session { held: None, ..me };

    let begin = v1::BeginRequest { session: Some(me.clone()), epoch, offset };
    let begun = client.begin(begin).await.unwrap().into_inner().result;
    let Some(begin_response::Result::Granted(granted)) = begun else { panic!("{begun:?}") };

    let complete = v1::CompleteRequest {
        session: Some(me.clone()),
        epoch,
        offset,
        execution_id: "x1".into(),
        final_state: v1::FinalState::Completed.into(),
        artifact_ref: "s3://receipts/1".into(),
        fencing_token: granted.fencing_token,
        ..Default::default()
    };
    let completed = client.complete(complete).await.unwrap().into_inner().result;
    let Some(complete_response::Result::Accepted(accepted)) = completed else { panic!("{completed:?}") };
    assert!(!accepted.late && !accepted.contradiction && accepted.duplicate.is_none());

    let settles = vec![settlement(delivery, v1::SettleOutcome::Done)];
    let settle = v1::SettleRequest { session: Some(me), settlements: settles };
    let settled = client.settle(settle).await.unwrap().into_inner();
    assert!(matches!(settled.results[0].result, Some(settle_result::Result::AlreadySettled(_))), "{settled:?}");

    let ask = v1::GetExecutionRequest { tenant: "acme".into(), execution_id: "x1".into() };
    let mut ledger = v1::execution_service_client::ExecutionServiceClient::new(rig.wire.clone());
    let execution = ledger.get_execution(ask).await.unwrap().into_inner().execution.unwrap();
    assert_eq!(execution.state(), v1::ExecutionState::Completed);
    assert_eq!((execution.artifact_ref.as_str(), execution.begins), ("s3://receipts/1", 1));
    rig.stop().await;
}

#[tokio::test]
async fn a_stale_settle_is_answered_in_its_place_and_a_malformed_one_by_its_field() {
    let rig = Rig::new().await;
    let me = session(1, rig.group("task_events", "workers").await);
    rig.publish("task_events", vec![event("t1", "m1")]).await;
    let mut client = rig.consuming();
    let fetched = client.fetch(fetch(me.clone(), 1, 5000)).await.unwrap().into_inner();
    let delivery = &fetched.deliveries[0];
    let me = Some(v1::Session { held: None, ..me });

    let never = v1::Settlement { epoch: delivery.epoch + 100, ..settlement(delivery, v1::SettleOutcome::Done) };
    let settlements = vec![never, settlement(delivery, v1::SettleOutcome::Done)];
    let results =
        client.settle(v1::SettleRequest { session: me.clone(), settlements }).await.unwrap().into_inner().results;
    assert!(matches!(results[0].result, Some(settle_result::Result::LeaseLost(_))));
    assert!(matches!(results[1].result, Some(settle_result::Result::Ok(_))));

    let settlements = vec![settlement(delivery, v1::SettleOutcome::Unspecified)];
    let refused = client.settle(v1::SettleRequest { session: me, settlements }).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().starts_with("settlements[0].outcome"), "{refused}");
    rig.stop().await;
}

#[tokio::test]
async fn s15_what_was_accepted_is_fetched_and_an_answer_is_cut_by_bytes() {
    const MIB: usize = 1024 * 1024;
    let rig = Rig::new().await;
    let group = rig.group("large", "readers").await;
    for (n, bytes) in [0, 1, 4 * MIB + 1, 15 * MIB].into_iter().enumerate() {
        rig.publish("large", vec![of_size(&format!("t{n}"), "m", bytes)]).await;
    }
    for n in 0..10 {
        rig.publish("large", vec![of_size(&format!("one{n}"), "m", MIB)]).await;
    }
    let mut client = rig.consuming();
    let mut me = session(1, group);
    let mut seen = 0;
    while seen < 14 {
        let fetched = client.fetch(fetch(me.clone(), 10, 5000)).await.unwrap().into_inner();
        assert!(!fetched.deliveries.is_empty());
        let bytes: usize = fetched.deliveries.iter().map(|d| d.message.as_ref().unwrap().payload.len()).sum();
        assert!(fetched.deliveries.len() == 1 || bytes <= 8 * MIB, "{} with {bytes}", fetched.deliveries.len());
        seen += fetched.deliveries.len();
        let held = me.held.get_or_insert_default();
        held.epochs.extend(fetched.deliveries.iter().map(|delivery| delivery.epoch));
    }
    rig.stop().await;
}

#[tokio::test]
async fn s19_an_abandoned_fetch_gets_nothing() {
    let rig = Rig::new().await;
    let group = rig.group("task_events", "workers").await;
    let me = session(1, group.clone());
    for round in 0..20 {
        let mut client = rig.consuming();
        let waiting = tokio::spawn({
            let fetch = fetch(session(round + 2, group.clone()), 5, 30_000);
            async move { client.fetch(fetch).await }
        });
        rig.until(|status| status.waiting_fetches == 1).await;
        waiting.abort();
        rig.until(|status| status.waiting_fetches == 0).await;
    }

    rig.publish("task_events", vec![event("t1", "x1")]).await;
    let mut client = rig.consuming();
    let fetched = client.fetch(fetch(me, 5, 30_000));
    let fetched = tokio::time::timeout(PATIENCE, fetched).await.unwrap().unwrap().into_inner();
    assert_eq!((fetched.deliveries.len(), fetched.deliveries[0].attempt), (1, 1));
    assert_eq!(rig.status().await.leases, 1);
    rig.stop().await;
}

#[tokio::test]
async fn s19_when_publish_and_cancel_race_the_event_comes_back_with_the_next_fetch() {
    let rig = Rig::new().await;
    let me = session(1, rig.group("task_events", "workers").await);
    for round in 0..100 {
        let task = format!("t{round}");
        let mut client = rig.consuming();
        let mut publishing = rig.publishing();
        let waiting = client.fetch(fetch(me.clone(), 5, 30_000));
        let published = publishing.publish(super::rig::request("task_events", vec![event(&task, "m")]));
        // Whichever ends first drops the other one's caller: here the fetch is given up as the publish is answered.
        let raced = tokio::select! {
            biased;
            published = published => { published.unwrap(); None }
            fetched = waiting => Some(fetched.unwrap().into_inner()),
        };
        let fetched = match raced {
            Some(fetched) if !fetched.deliveries.is_empty() => fetched,
            _ => {
                let again = tokio::time::timeout(PATIENCE, client.fetch(fetch(me.clone(), 5, 30_000))).await;
                again.expect("the event waits for its lease").unwrap().into_inner()
            }
        };
        let tasks: Vec<_> = fetched.deliveries.iter().map(|d| d.message.as_ref().unwrap().task_id.as_str()).collect();
        assert_eq!(tasks, [task]);
        assert_eq!(fetched.deliveries[0].attempt, 1, "giving up a fetch costs no attempt");
        let settlements = vec![settlement(&fetched.deliveries[0], v1::SettleOutcome::Done)];
        let quiet = Some(v1::Session { held: None, ..me.clone() });
        let settled = client.settle(v1::SettleRequest { session: quiet, settlements }).await.unwrap().into_inner();
        assert!(matches!(settled.results[0].result, Some(settle_result::Result::Ok(_))), "{settled:?}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn s19_a_cut_connection_gives_its_fetches_up() {
    let rig = Rig::new().await;
    let group = rig.group("task_events", "workers").await;
    let address = rig.address.clone();
    // A runtime of its own holds the whole connection, so that dropping it cuts the connection.
    let other = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let wire = tonic::transport::Channel::from_shared(address).unwrap().connect().await.unwrap();
            let mut client = v1::consume_service_client::ConsumeServiceClient::new(wire);
            let waiting = client.fetch(fetch(session(1, group), 5, 30_000));
            tokio::time::timeout(std::time::Duration::from_millis(300), waiting).await.unwrap_err();
        });
    });
    other.join().unwrap();
    rig.until(|status| status.waiting_fetches == 0).await;
    rig.stop().await;
}

#[tokio::test]
async fn a_group_that_does_not_exist_is_not_found() {
    let rig = Rig::new().await;
    let me = session(1, super::rig::group("task_events", "nobody"));
    let refused = rig.consuming().fetch(fetch(me, 1, 0)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound, "{refused}");
    rig.stop().await;
}

#[tokio::test]
async fn s21_draining_ends_waiting_fetches_refuses_begins_and_takes_results() {
    let rig = Rig::new().await;
    let group = rig.group("task_events", "workers").await;
    rig.publish("task_events", vec![task_request("t1", "m1", "x1"), task_request("t2", "m2", "x2")]).await;
    let mut client = rig.consuming();
    let me = session(1, group.clone());
    let fetched = client.fetch(fetch(me.clone(), 2, 5000)).await.unwrap().into_inner();
    assert_eq!(fetched.deliveries.len(), 2);
    let mut other = rig.consuming();
    let waiting = tokio::spawn(async move { other.fetch(fetch(session(2, group), 1, 30_000)).await });
    rig.until(|status| status.waiting_fetches == 1).await;

    let broker = rig.broker.clone();
    let drained = tokio::spawn(async move { broker.drain(PATIENCE).await });
    // With an answer or a refusal; what matters is that it ends.
    drop(tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap());

    let me = Some(v1::Session { held: None, ..me });
    let [first, second] = &fetched.deliveries[..] else { panic!("{fetched:?}") };
    let begin = v1::BeginRequest { session: me.clone(), epoch: first.epoch, offset: first.offset };
    assert_eq!(client.begin(begin).await.unwrap_err().code(), Code::Unavailable);
    let new_work = super::rig::request("task_events", vec![event("t3", "m3")]);
    assert_eq!(rig.publishing().publish(new_work).await.unwrap_err().code(), Code::Unavailable);
    let result = v1::Message {
        final_state: v1::FinalState::Failed.into(),
        r#type: "task.result".into(),
        ..task_request("t1", "m1r", "x1")
    };
    rig.publish("task_events", vec![result]).await;
    let settlements = vec![settlement(first, v1::SettleOutcome::Done), settlement(second, v1::SettleOutcome::Release)];
    let results = client.settle(v1::SettleRequest { session: me, settlements }).await.unwrap().into_inner().results;
    for result in results {
        assert!(matches!(result.result, Some(settle_result::Result::Ok(_))), "{result:?}");
    }
    tokio::time::timeout(PATIENCE, drained).await.unwrap().unwrap().unwrap();
    rig.stop().await;
}
