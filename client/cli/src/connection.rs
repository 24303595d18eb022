//! The way to the broker.

use crate::cli::Global;
use crate::exit::Failure;
use crate::refused::Refused;
use std::future::Future;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};
use weir_proto::server;
use weir_proto::v1::admin_service_client::AdminServiceClient;
use weir_proto::v1::channel_service_client::ChannelServiceClient;
use weir_proto::v1::consume_service_client::ConsumeServiceClient;
use weir_proto::v1::execution_service_client::ExecutionServiceClient;
use weir_proto::v1::group_service_client::GroupServiceClient;

/// Longest frame in either direction: the largest request there is (16 MiB), with room for what goes around it.
const FRAME_BYTES_MAX: usize = 32 << 20;
/// Longest wait for a TCP connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a silent connection is tested, and how long its answer may take.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// A connection that opens with its first call, and again when it broke.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    channel: Channel,
    endpoint: String,
    timeout: Duration,
}

impl Connection {
    /// Prepares a connection; must be called within a runtime, and belongs to it.
    ///
    /// # Errors
    /// If the endpoint is no URL this program can speak to.
    pub(crate) fn open(global: &Global) -> Result<Self, Failure> {
        let endpoint = Endpoint::from_shared(global.endpoint.clone())
            .map_err(|error| Failure::usage(format!("endpoint `{}`: {error}", global.endpoint)))?;
        if endpoint.uri().scheme_str() != Some("http") {
            return Err(Failure::usage(format!("endpoint `{}`: expected http://HOST:PORT", global.endpoint)));
        }
        let channel = endpoint
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .initial_stream_window_size(4 << 20)
            .initial_connection_window_size(16 << 20)
            .connect_lazy();
        Ok(Self { channel, endpoint: global.endpoint.clone(), timeout: global.timeout.0 })
    }

    /// Longest wait for an answer.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Waits for the answer of `call`, no longer than an answer may take.
    ///
    /// # Errors
    /// What the broker refused, or that it did not answer.
    pub(crate) async fn call<T>(&self, call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, Refused> {
        within(self.timeout, call).await.map_err(|refused| self.located(refused))
    }

    /// A refusal that is not the broker's names where the broker was looked for.
    pub(crate) fn located(&self, refused: Refused) -> Refused {
        if refused.reason.is_some() || !refused.is_away() {
            return refused;
        }
        let text = format!("{} (at {}, where weir's gRPC port should be)", refused.text, self.endpoint);
        Refused { text, ..refused }
    }

    /// Publishes messages that were encoded before.
    pub(crate) fn publisher(&self) -> server::publish_service_client::PublishServiceClient<Channel> {
        server::publish_service_client::PublishServiceClient::new(self.channel.clone())
            .max_decoding_message_size(FRAME_BYTES_MAX)
            .max_encoding_message_size(FRAME_BYTES_MAX)
    }

    /// Consumes.
    pub(crate) fn consumer(&self) -> ConsumeServiceClient<Channel> {
        ConsumeServiceClient::new(self.channel.clone()).max_decoding_message_size(FRAME_BYTES_MAX)
    }

    /// Groups.
    pub(crate) fn groups(&self) -> GroupServiceClient<Channel> {
        GroupServiceClient::new(self.channel.clone()).max_decoding_message_size(FRAME_BYTES_MAX)
    }

    /// Policies and channels.
    pub(crate) fn channels(&self) -> ChannelServiceClient<Channel> {
        ChannelServiceClient::new(self.channel.clone()).max_decoding_message_size(FRAME_BYTES_MAX)
    }

    /// Executions.
    pub(crate) fn executions(&self) -> ExecutionServiceClient<Channel> {
        ExecutionServiceClient::new(self.channel.clone()).max_decoding_message_size(FRAME_BYTES_MAX)
    }

    /// The broker as a whole.
    pub(crate) fn admin(&self) -> AdminServiceClient<Channel> {
        AdminServiceClient::new(self.channel.clone()).max_decoding_message_size(FRAME_BYTES_MAX)
    }
}

/// Waits for the answer of `call`, no longer than `limit`.
///
/// # Errors
/// What the broker refused, or that it did not answer.
pub(crate) async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Refused> {
    match tokio::time::timeout(limit, call).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(status.into()),
        Err(_) => Err(Refused::unanswered(limit)),
    }
}
