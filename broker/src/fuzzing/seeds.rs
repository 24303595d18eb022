//! The seeds of every target, made by the encoders.

use crate::model::{ChannelNo, Offset, SegmentNo};
use crate::state::Family;
use crate::{journal, read, state};
use prost::Message as _;
use weir_proto::v1;

/// Target, name and bytes of each seed.
pub(super) fn all() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let targets = [
        ("segment", journal::fuzzing::seeds::segments()),
        ("group", journal::fuzzing::seeds::groups()),
        ("frame", journal::fuzzing::seeds::frames()),
        ("entry", journal::fuzzing::seeds::entries()),
        ("envelope", envelopes()),
        ("row", [state::fuzzing::seeds::all(), vec![("extents", extent())]].concat()),
        ("config", configs()),
    ];
    targets
        .into_iter()
        .flat_map(|(target, seeds)| seeds.into_iter().map(move |(name, bytes)| (target, name, bytes)))
        .collect()
}

fn extent() -> Vec<u8> {
    let (key, value) = read::fuzzing::row_of(ChannelNo(3), (Offset(4), Offset(9)), SegmentNo(2));
    state::fuzzing::seeds::row(Family::Extents, &key, &value)
}

fn envelopes() -> Vec<(&'static str, Vec<u8>)> {
    let text = |text: &str| text.to_owned();
    let request = v1::Message {
        message_id: text("m1"),
        task_id: text("t1"),
        agent_id: text("desk"),
        execution_id: text("x1"),
        r#type: text("task.request"),
        intent: text("refund"),
        compatible_with: vec![text("a/1"), text("a/2")],
        effect: v1::Effect::Unsafe.into(),
        retry_budget: Some(3),
        recipient: Some(v1::Recipient { mode: v1::RecipientMode::Direct.into(), agent_ids: vec![text("desk")] }),
        deadline_unix_ms: 1_700_000_000_000,
        requires_response: true,
        attributes: [(text("k"), text("v")), (text("l"), text(""))].into(),
        payload: b"{}".as_slice().into(),
        ..Default::default()
    };
    let result = v1::Message {
        message_id: text("m2"),
        task_id: text("t1"),
        agent_id: text("worker"),
        execution_id: text("x1"),
        r#type: text("task.result"),
        final_state: v1::FinalState::Completed.into(),
        artifact_ref: text("s3://bucket/receipt"),
        fencing_token: 302,
        parent_message_id: text("m1"),
        invalidates_message_ids: vec![text("m0")],
        created_at_unix_ms: 1_700_000_000_000,
        content_type: text("application/json"),
        ..Default::default()
    };
    let mut unknown = result.encode_to_vec();
    prost::encoding::uint64::encode(99, &7, &mut unknown);
    prost::encoding::double::encode(100, &1.5, &mut unknown);
    vec![("request", request.encode_to_vec()), ("result", result.encode_to_vec()), ("unknown_fields", unknown)]
}

fn configs() -> Vec<(&'static str, Vec<u8>)> {
    let planes = r#"communication_patterns:
  internal_plane:
    - { channel: task_events, semantic: S4, key: "{tenant}:{agent_id}", retention_h: 24, replay: true, backpressure: depth_alert_10000 }
    - channel: refund_events
      dedup_on: [execution_id, final_state]
      require_artifact: true
      max_depth: 20000
  contract:
    id: { agent_id, task_id, message_id }
    ordering: same_task_ordered
    delivery: at_least_once + receiver_dedup
    resumption: stream_checkpoint + handle_query
  capability_plane: &a { tools: [*a, !b c] }
"#;
    let broker = "# the server\nbroker:\n  listen: 127.0.0.1:7447\n  data_dir: './data'\n  sync: interval\n  interval_ms: 10\n  insecure: no\n";
    let faulty = "internal_plane:\n  - channel: A\n    retention_h: -1\n  - { chanel: x, key: [}\n";
    [("planes", planes), ("broker", broker), ("faulty", faulty)].map(|(name, text)| (name, text.into())).to_vec()
}
