//! A broker in a folder of its own, served on a free port, and clients of it.

use crate::broker::Broker;
use crate::transport::serve_grpc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use weir_proto::v1::consume_service_client::ConsumeServiceClient;
use weir_proto::v1::publish_service_client::PublishServiceClient;
use weir_proto::v1::{self, admin_service_client::AdminServiceClient, group_service_client::GroupServiceClient};

/// Whatever a test waits for comes within this, or the test fails.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// A client that takes the largest answer.
const BYTES_MAX: usize = 20 * 1024 * 1024;

pub(super) struct Rig {
    pub(super) broker: Broker,
    pub(super) wire: Channel,
    /// Where it is served.
    pub(super) address: String,
    stop: CancellationToken,
    server: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Rig {
    /// A served broker with the built-in policies, and with `large`, whose payloads may have 15 MiB.
    pub(super) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut policies = crate::model::policy::ChannelPolicy::built_in();
        let mut large = crate::model::policy::ChannelPolicy::named("large");
        large.payload_bytes_max = crate::model::limits::PAYLOAD_BYTES_MAX;
        policies.push(large);
        let builder = Broker::builder(folder.path()).policies(policies).spares(0);
        let broker = tokio::task::spawn_blocking(|| builder.open()).await.unwrap().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let server = serve_grpc(broker.clone(), listener, stop.clone().cancelled_owned());
        let server = tokio::spawn(async move { server.await.unwrap() });
        let wire = Channel::from_shared(address.clone()).unwrap().connect().await.unwrap();
        Self { broker, wire, address, stop, server, _folder: folder }
    }

    /// Ends the server; whether all its streams ended is for the caller to see.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.server).await.unwrap().unwrap();
        self.broker.close().await.unwrap();
    }

    /// Tells the server to end, and lets it.
    pub(super) fn ask_to_stop(&self) {
        self.stop.cancel();
    }

    pub(super) fn publishing(&self) -> PublishServiceClient<Channel> {
        PublishServiceClient::new(self.wire.clone())
    }

    pub(super) fn consuming(&self) -> ConsumeServiceClient<Channel> {
        ConsumeServiceClient::new(self.wire.clone()).max_decoding_message_size(BYTES_MAX)
    }

    pub(super) async fn group(&self, policy: &str, name: &str) -> v1::GroupRef {
        let group = group(policy, name);
        let request = v1::CreateGroupRequest { group: Some(group.clone()), settings: None };
        GroupServiceClient::new(self.wire.clone()).create_group(request).await.unwrap();
        group
    }

    pub(super) async fn publish(&self, policy: &str, messages: Vec<v1::Message>) -> v1::PublishResponse {
        self.publishing().publish(request(policy, messages)).await.unwrap().into_inner()
    }

    pub(super) async fn status(&self) -> v1::GetStatusResponse {
        AdminServiceClient::new(self.wire.clone()).get_status(v1::GetStatusRequest {}).await.unwrap().into_inner()
    }

    /// Asks for the status until it is as it should be.
    pub(super) async fn until(&self, right: impl Fn(&v1::GetStatusResponse) -> bool) {
        let asked = async { while !right(&self.status().await) {} };
        tokio::time::timeout(PATIENCE, asked).await.expect("the status never became right");
    }
}

pub(super) fn group(policy: &str, name: &str) -> v1::GroupRef {
    v1::GroupRef { scope: "acme".into(), policy: policy.into(), name: name.into() }
}

pub(super) fn session(id: u8, group: v1::GroupRef) -> v1::Session {
    v1::Session {
        session_id: vec![id; 16].into(),
        group: Some(group),
        member: format!("member {id}"),
        instance_id: String::new(),
        held: Some(v1::Held::default()),
        session_timeout_ms: 0,
    }
}

pub(super) fn request(policy: &str, messages: Vec<v1::Message>) -> v1::PublishRequest {
    v1::PublishRequest { policy: policy.into(), tenant: "acme".into(), agent_id: "desk".into(), messages }
}

pub(super) fn event(task: &str, id: &str) -> v1::Message {
    v1::Message {
        message_id: id.into(),
        task_id: task.into(),
        agent_id: "planner".into(),
        r#type: "event".into(),
        ..Default::default()
    }
}

pub(super) fn of_size(task: &str, id: &str, bytes: usize) -> v1::Message {
    v1::Message { payload: vec![b'x'; bytes].into(), ..event(task, id) }
}

pub(super) fn task_request(task: &str, id: &str, execution: &str) -> v1::Message {
    v1::Message { r#type: "task.request".into(), execution_id: execution.into(), ..event(task, id) }
}

pub(super) fn fetch(session: v1::Session, max_messages: u32, wait_ms: u64) -> v1::FetchRequest {
    v1::FetchRequest { session: Some(session), max_messages, wait_ms, ..Default::default() }
}
