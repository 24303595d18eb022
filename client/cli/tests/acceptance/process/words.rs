//! Short words for the messages and calls the tests are made of. Where nothing else is said: policy `task_events`, tenant
//! `acme`, agent `desk`.

use crate::process::Server;
use tonic::Status;
use weir_proto::v1::channel_service_client::ChannelServiceClient;
use weir_proto::v1::execution_service_client::ExecutionServiceClient;
use weir_proto::v1::group_service_client::GroupServiceClient;
use weir_proto::v1::publish_result::Outcome;
use weir_proto::v1::publish_service_client::PublishServiceClient;
use weir_proto::v1::{self, FinalState};

/// The policy of the tests.
pub(crate) const POLICY: &str = "task_events";
/// Their tenant.
pub(crate) const TENANT: &str = "acme";

/// An event that is about no execution.
pub(crate) fn event(task: &str, id: &str) -> v1::Message {
    v1::Message {
        message_id: id.into(),
        task_id: task.into(),
        agent_id: "planner".into(),
        r#type: "event".into(),
        ..Default::default()
    }
}

/// A request whose effect must not happen twice.
pub(crate) fn request(task: &str, id: &str, execution: &str) -> v1::Message {
    v1::Message {
        r#type: "task.request".into(),
        execution_id: execution.into(),
        effect: v1::Effect::Unsafe.into(),
        ..event(task, id)
    }
}

/// A report of how an execution ended.
pub(crate) fn report(task: &str, id: &str, execution: &str, state: FinalState) -> v1::Message {
    v1::Message {
        r#type: "task.result".into(),
        execution_id: execution.into(),
        final_state: state.into(),
        ..event(task, id)
    }
}

/// A publish to agent `desk`.
pub(crate) fn to_desk(messages: Vec<v1::Message>) -> v1::PublishRequest {
    v1::PublishRequest { policy: POLICY.into(), tenant: TENANT.into(), agent_id: "desk".into(), messages }
}

/// Publishes.
pub(crate) async fn try_publish(server: &Server, request: v1::PublishRequest) -> Result<v1::PublishResponse, Status> {
    let mut publishing = PublishServiceClient::new(server.wire()).max_encoding_message_size(32 << 20);
    publishing.publish(request).await.map(tonic::Response::into_inner)
}

/// Publishes to agent `desk`; where each message lies, and whether it was stored now.
pub(crate) async fn publish(server: &Server, messages: Vec<v1::Message>) -> Vec<Placed> {
    placed(try_publish(server, to_desk(messages)).await.unwrap())
}

/// Where a message lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It was stored there.
    Stored(u64),
    /// It is a duplicate of what lies there.
    Duplicate(u64),
}

impl Placed {
    /// The offset.
    pub(crate) fn offset(self) -> u64 {
        match self {
            Self::Stored(offset) | Self::Duplicate(offset) => offset,
        }
    }
}

/// Where the messages of an answer lie.
pub(crate) fn placed(answer: v1::PublishResponse) -> Vec<Placed> {
    let place = |result: v1::PublishResult| match result.outcome.expect("an outcome") {
        Outcome::Stored(stored) => Placed::Stored(stored.offset),
        Outcome::Duplicate(duplicate) => Placed::Duplicate(duplicate.offset),
    };
    answer.results.into_iter().map(place).collect()
}

/// The reference of a group of the tenant.
pub(crate) fn group(name: &str) -> v1::GroupRef {
    v1::GroupRef { scope: TENANT.into(), policy: POLICY.into(), name: name.into() }
}

/// Makes a group.
pub(crate) async fn try_make_group(
    server: &Server,
    group: v1::GroupRef,
    settings: v1::GroupSettings,
) -> Result<v1::CreateGroupResponse, Status> {
    let request = v1::CreateGroupRequest { group: Some(group), settings: Some(settings) };
    GroupServiceClient::new(server.wire()).create_group(request).await.map(tonic::Response::into_inner)
}

/// Makes a group of the tenant that executes, with all defaults.
pub(crate) async fn make_group(server: &Server, name: &str) -> v1::GroupRef {
    try_make_group(server, group(name), v1::GroupSettings::default()).await.unwrap();
    group(name)
}

/// A group as it is now.
pub(crate) async fn group_now(server: &Server, group: &v1::GroupRef) -> v1::Group {
    let request = v1::GetGroupRequest { group: Some(group.clone()) };
    GroupServiceClient::new(server.wire()).get_group(request).await.unwrap().into_inner().group.unwrap()
}

/// The ledger's row of an execution of the tenant.
pub(crate) async fn execution(server: &Server, id: &str) -> v1::Execution {
    let request = v1::GetExecutionRequest { tenant: TENANT.into(), execution_id: id.into() };
    ExecutionServiceClient::new(server.wire()).get_execution(request).await.unwrap().into_inner().execution.unwrap()
}

/// Declares a policy.
pub(crate) async fn put_policy(server: &Server, policy: v1::Policy) {
    let request = v1::PutPolicyRequest { policy: Some(policy) };
    ChannelServiceClient::new(server.wire()).put_policy(request).await.unwrap();
}
