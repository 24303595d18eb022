//! The way to one broker.

use crate::backoff::BackoffBounds;
use crate::error::ClientError;
use crate::retry::Patience;
use std::future::Future;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};
use weir_proto::server;
use weir_proto::v1::admin_service_client::AdminServiceClient;
use weir_proto::v1::channel_service_client::ChannelServiceClient;
use weir_proto::v1::consume_service_client::ConsumeServiceClient;
use weir_proto::v1::execution_service_client::ExecutionServiceClient;
use weir_proto::v1::group_service_client::GroupServiceClient;
use weir_proto::v1::publish_service_client::PublishServiceClient;

/// Requests are at most 16 MiB, and what stands around the messages of an answer must fit beside them.
const MESSAGE_BYTES: usize = 20 << 20;
/// Receive window of one call: an answer of the largest usual size needs no second round trip.
const STREAM_WINDOW_BYTES: u32 = 8 << 20;
/// Receive window of all calls of a connection together.
const CONNECTION_WINDOW_BYTES: u32 = 32 << 20;

/// A handle to one broker; clones share its connection.
///
/// The connection opens with the first call, and again with the first call after it broke.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
    settings: Settings,
}

/// What [`ClientBuilder`] has settled.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    endpoint: Endpoint,
    message_bytes_max: usize,
    pub(crate) call_timeout: Duration,
    pub(crate) backoff: BackoffBounds,
}

impl Client {
    /// A client for the broker at `endpoint` (`http://HOST:PORT`) with default settings. It must be called within a tokio
    /// runtime, and its connection belongs to that runtime.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the endpoint is no such URL. Whether a broker answers there shows with the first call.
    pub fn connect(endpoint: impl Into<String>) -> Result<Self, ClientError> {
        Self::builder(endpoint).build()
    }

    /// Sets how to reach the broker at `endpoint`.
    pub fn builder(endpoint: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            endpoint: endpoint.into(),
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(30),
            keep_alive_interval: Duration::from_secs(10),
            keep_alive_timeout: Duration::from_secs(10),
            stream_window_bytes: STREAM_WINDOW_BYTES,
            connection_window_bytes: CONNECTION_WINDOW_BYTES,
            message_bytes_max: MESSAGE_BYTES,
            backoff: BackoffBounds::default(),
        }
    }

    /// Makes one call of a service, again after failures that may pass, for at most `limit`.
    ///
    /// The call must be safe to repeat: reads are, and so are writes under ids of the caller's choice.
    ///
    /// ```no_run
    /// # async fn demo(client: weir_client::Client) -> Result<(), weir_client::ClientError> {
    /// use std::time::Duration;
    /// use weir_client::v1::GetStatusRequest;
    ///
    /// let status = client
    ///     .call(Duration::from_secs(10), || {
    ///         let mut admin = client.admin_service();
    ///         async move { admin.get_status(GetStatusRequest::default()).await }
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The last failure, at the latest when `limit` is over.
    pub async fn call<T, F, Answer>(&self, limit: Duration, call: F) -> Result<T, ClientError>
    where
        F: FnMut() -> Answer,
        Answer: Future<Output = Result<Response<T>, Status>>,
    {
        let until = Instant::now() + limit;
        self.patience(Some(until), CancellationToken::new()).call(call).await
    }

    /// The connection itself, for services this crate does not name.
    #[must_use]
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// The plain service, one attempt a call.
    #[must_use]
    pub fn publish_service(&self) -> PublishServiceClient<Channel> {
        PublishServiceClient::new(self.channel())
            .max_decoding_message_size(self.settings.message_bytes_max)
            .max_encoding_message_size(self.settings.message_bytes_max)
    }

    /// The plain service for messages that are encoded already, one attempt a call.
    #[must_use]
    pub fn encoded_publish_service(&self) -> server::publish_service_client::PublishServiceClient<Channel> {
        server::publish_service_client::PublishServiceClient::new(self.channel())
            .max_decoding_message_size(self.settings.message_bytes_max)
            .max_encoding_message_size(self.settings.message_bytes_max)
    }

    /// The plain service, one attempt a call.
    #[must_use]
    pub fn consume_service(&self) -> ConsumeServiceClient<Channel> {
        ConsumeServiceClient::new(self.channel())
            .max_decoding_message_size(self.settings.message_bytes_max)
            .max_encoding_message_size(self.settings.message_bytes_max)
    }

    /// The plain service, one attempt a call.
    #[must_use]
    pub fn execution_service(&self) -> ExecutionServiceClient<Channel> {
        ExecutionServiceClient::new(self.channel()).max_decoding_message_size(self.settings.message_bytes_max)
    }

    /// The plain service, one attempt a call.
    #[must_use]
    pub fn channel_service(&self) -> ChannelServiceClient<Channel> {
        ChannelServiceClient::new(self.channel()).max_decoding_message_size(self.settings.message_bytes_max)
    }

    /// The plain service, one attempt a call.
    #[must_use]
    pub fn group_service(&self) -> GroupServiceClient<Channel> {
        GroupServiceClient::new(self.channel()).max_decoding_message_size(self.settings.message_bytes_max)
    }

    /// The plain service, one attempt a call.
    #[must_use]
    pub fn admin_service(&self) -> AdminServiceClient<Channel> {
        AdminServiceClient::new(self.channel()).max_decoding_message_size(self.settings.message_bytes_max)
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn patience(&self, until: Option<Instant>, stop: CancellationToken) -> Patience {
        Patience { backoff: self.settings.backoff, attempt: self.settings.call_timeout, until, stop }
    }
}

impl Settings {
    /// A client with a connection of its own, on the runtime this is called in.
    pub(crate) fn connect(&self) -> Client {
        Client { channel: self.endpoint.connect_lazy(), settings: self.clone() }
    }
}

/// How to reach a broker. Each setting has a default that suits one on the same network.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct ClientBuilder {
    endpoint: String,
    connect_timeout: Duration,
    call_timeout: Duration,
    keep_alive_interval: Duration,
    keep_alive_timeout: Duration,
    stream_window_bytes: u32,
    connection_window_bytes: u32,
    message_bytes_max: usize,
    backoff: BackoffBounds,
}

impl ClientBuilder {
    /// Longest wait for a connection to open; 5 s unless set.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Longest wait for the answer of one attempt, beside the time a call itself asks the broker to wait; 30 s unless
    /// set.
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.call_timeout = limit;
        self
    }

    /// How often a silent connection is tested, and how long its peer may take to answer; 10 s each unless set.
    pub fn keep_alive(mut self, interval: Duration, timeout: Duration) -> Self {
        self.keep_alive_interval = interval;
        self.keep_alive_timeout = timeout;
        self
    }

    /// HTTP/2 receive windows in bytes, of one call and of the whole connection; 8 MiB and 32 MiB unless set.
    pub fn windows(mut self, stream_bytes: u32, connection_bytes: u32) -> Self {
        self.stream_window_bytes = stream_bytes;
        self.connection_window_bytes = connection_bytes;
        self
    }

    /// Most bytes of one request or answer; 20 MiB unless set. Below 16 MiB not all that a broker stores can be read.
    pub fn message_bytes_max(mut self, bytes: usize) -> Self {
        self.message_bytes_max = bytes;
        self
    }

    /// Waits between the attempts of a call; 50 ms to 5 s unless set.
    pub fn backoff(mut self, bounds: BackoffBounds) -> Self {
        self.backoff = bounds;
        self
    }

    /// The client. It must be called within a tokio runtime, and its connection belongs to that runtime.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if the endpoint is not `http://HOST:PORT`.
    pub fn build(self) -> Result<Client, ClientError> {
        let wrong = |why: &str| {
            ClientError::invalid("endpoint", format!("`{}`: {why}; expected http://HOST:PORT", self.endpoint))
        };
        let endpoint = Endpoint::from_shared(self.endpoint.clone()).map_err(|error| wrong(&error.to_string()))?;
        // Asked of the text: tonic gives other ways to connect an http address of their own.
        if !self.endpoint.starts_with("http://") {
            return Err(wrong("the scheme is not http"));
        }
        if endpoint.uri().host().is_none_or(str::is_empty) {
            return Err(wrong("there is no host"));
        }
        let endpoint = endpoint
            .connect_timeout(self.connect_timeout)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(self.keep_alive_interval)
            .keep_alive_timeout(self.keep_alive_timeout)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(self.stream_window_bytes)
            .initial_connection_window_size(self.connection_window_bytes);
        let settings = Settings {
            endpoint,
            message_bytes_max: self.message_bytes_max,
            call_timeout: self.call_timeout,
            backoff: self.backoff,
        };
        Ok(settings.connect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Code;

    #[tokio::test]
    async fn only_an_http_url_is_an_endpoint() {
        for endpoint in ["", "localhost:7447", "https://localhost:7447", "unix:/tmp/x", "http://"] {
            let error = Client::connect(endpoint).unwrap_err();
            assert_eq!((error.code, error.field.as_str()), (Code::InvalidArgument, "endpoint"), "{endpoint}");
        }
        assert!(Client::connect("http://localhost:7447").is_ok());
    }
}
