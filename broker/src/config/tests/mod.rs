#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]

mod faults;
mod good_files;
mod layers;
mod schema;
mod shapes;

use super::*;

/// The example of the design, as it stands there.
const EXAMPLE: &str = r#"communication_patterns:
  internal_plane:
    - { channel: task_events, semantic: S4, key: "{tenant}:{agent_id}", retention_h: 24, replay: true, backpressure: depth_alert_10000 }
    - { channel: refund_events, semantic: S4, key: "{tenant}:{agent_id}", replay: true, retention_h: 24, dedup_on: [execution_id, final_state] }
  contract:
    id: { agent_id, task_id, message_id }
    ordering: same_task_ordered
    delivery: at_least_once + receiver_dedup
    resumption: stream_checkpoint + handle_query
"#;
