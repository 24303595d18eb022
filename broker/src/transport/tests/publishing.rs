//! Publishing: sizes, names, streams.

use super::rig::{Rig, event, of_size, request};
use tokio_stream::StreamExt as _;
use tonic::Code;
use tonic_types::StatusExt as _;
use weir_proto::v1::publish_result::Outcome;
use weir_proto::v1::{self, publish_stream_response::Outcome as StreamOutcome};

const MIB: usize = 1024 * 1024;

#[tokio::test]
async fn s15_one_byte_more_than_the_limit_is_refused_by_name_and_the_connection_stays_usable() {
    let rig = Rig::new().await;
    let too_large = request("large", vec![of_size("t", "m1", 15 * MIB + 1)]);
    let refused = rig.publishing().publish(too_large).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    let info = refused.get_details_error_info().unwrap();
    assert_eq!((info.reason.as_str(), info.metadata["retryable"].as_str()), ("TOO_LARGE", "false"));
    assert_eq!(info.metadata["limit"], (15 * MIB).to_string());
    let field = &refused.get_details_bad_request().unwrap().field_violations[0].field;
    assert_eq!(field, "messages[0].payload");

    rig.publish("large", vec![of_size("t", "m1", 15 * MIB)]).await;
    rig.stop().await;
}

#[tokio::test]
async fn s15_a_batch_beyond_the_largest_request_is_refused_by_the_broker_not_cut_off_by_the_transport() {
    let rig = Rig::new().await;
    let messages = (0..18).map(|n| of_size("t", &format!("m{n}"), MIB)).collect();
    let refused = rig.publishing().publish(request("large", messages)).await.unwrap_err();
    assert_eq!(refused.get_details_error_info().unwrap().reason, "TOO_LARGE", "{refused}");
    rig.publish("large", vec![event("t", "m")]).await;
    rig.stop().await;
}

#[tokio::test]
async fn s14_a_name_that_is_none_is_refused_by_its_field_and_leaves_no_trace() {
    let rig = Rig::new().await;
    let good = request("task_events", vec![event("t", "m")]);
    let bad_task = v1::Message { task_id: "a\0b".into(), ..event("t", "m") };
    let faults = [
        ("tenant", v1::PublishRequest { tenant: "a:b".into(), ..good.clone() }),
        ("tenant", v1::PublishRequest { tenant: String::new(), ..good.clone() }),
        ("agent_id", v1::PublishRequest { agent_id: "../x".into(), ..good.clone() }),
        ("agent_id", v1::PublishRequest { agent_id: "*".into(), ..good.clone() }),
        ("policy", v1::PublishRequest { policy: "Task Events".into(), ..good.clone() }),
        ("messages[1].task_id", request("task_events", vec![event("t", "m"), bad_task])),
        ("messages", request("task_events", vec![])),
    ];
    for (field, faulty) in faults {
        let refused = rig.publishing().publish(faulty).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert_eq!(refused.get_details_bad_request().unwrap().field_violations[0].field, field);
    }
    let status = rig.status().await;
    assert_eq!((status.published, status.channels), (0, 0));
    rig.stop().await;
}

#[tokio::test]
async fn a_stream_answers_in_order_and_a_refused_request_does_not_end_it() {
    let rig = Rig::new().await;
    let requests = (0..50).map(|n| v1::PublishStreamRequest {
        sequence: n,
        policy: if n == 20 { "no_such_policy" } else { "task_events" }.into(),
        tenant: "acme".into(),
        agent_id: "desk".into(),
        messages: vec![event("t", &format!("m{n}"))],
    });
    let requests: Vec<_> = requests.collect();
    let answers = rig.publishing().publish_stream(tokio_stream::iter(requests)).await.unwrap().into_inner();
    let answers: Vec<_> = answers.map(Result::unwrap).collect().await;
    assert_eq!(answers.iter().map(|answer| answer.sequence).collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
    let mut offset = 0;
    for answer in answers {
        match answer.outcome.unwrap() {
            StreamOutcome::Published(published) => {
                let Some(Outcome::Stored(stored)) = &published.results[0].outcome else { panic!("{published:?}") };
                assert_eq!((stored.offset, stored.durable), (offset, true));
                offset += 1;
            }
            StreamOutcome::Refused(refusal) => {
                assert_eq!((answer.sequence, refusal.reason()), (20, v1::ErrorReason::NotFound));
            }
        }
    }
    rig.stop().await;
}
