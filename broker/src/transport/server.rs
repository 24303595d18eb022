//! The gRPC server: every service over one broker handle.

use super::accept::Incoming;
use super::admin::{Admin, Started};
use super::channel::Channels;
use super::consume::Consuming;
use super::ending::Ending;
use super::execution::Executions;
use super::group::Groups;
use super::health;
use super::publish::Publishing;
use crate::broker::Broker;
use crate::model::{UnixMillis, limits};
use std::time::Duration;
use tokio::net::TcpListener;
use tonic::service::Routes;
use tonic::transport::Server;
use weir_proto::server::admin_service_server::AdminServiceServer;
use weir_proto::server::channel_service_server::ChannelServiceServer;
use weir_proto::server::consume_service_server::ConsumeServiceServer;
use weir_proto::server::execution_service_server::ExecutionServiceServer;
use weir_proto::server::group_service_server::GroupServiceServer;
use weir_proto::server::publish_service_server::PublishServiceServer;

/// Largest message that is decoded. Well above what the broker admits (16 MiB a request), so that a request that is too
/// large is refused by the broker, which names the limit; above this the transport cuts it off.
const DECODE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Streams that one connection may have open.
const STREAMS_PER_CONNECTION_MAX: u32 = 2048;
/// Bytes that a peer may send ahead on one stream. A publish of ordinary size fits, so it is never sent in instalments.
const STREAM_WINDOW_BYTES: u32 = 2 * 1024 * 1024;
/// Bytes that a peer may send ahead on one connection.
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
/// Size of a frame of HTTP/2, beside the smallest the protocol allows: fewer headers a megabyte.
const FRAME_BYTES: u32 = 128 * 1024;
/// Silence after which a peer is asked whether it is there, and how long it may take to answer.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);
const KEEPALIVE_ANSWER: Duration = Duration::from_secs(10);
/// How long a new connection may take to begin to talk HTTP/2.
const GREETING_WITHIN: Duration = Duration::from_secs(10);
/// How long calls that are still open may take once streams have been ended.
const GRACE: Duration = Duration::from_millis(500);

/// Why the gRPC server ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The transport could not go on.
    #[error("the gRPC server ended: {0}")]
    Transport(#[from] tonic::transport::Error),
    /// The descriptors for reflection do not hold together.
    #[error("reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// Serves all of gRPC from a broker handle, until `shutdown` resolves; the handle stays open. See [`GrpcServer`] for
/// settings.
///
/// # Errors
/// [`ServeError`].
pub async fn serve_grpc(
    broker: Broker,
    listener: TcpListener,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    GrpcServer::new(broker).serve(listener, shutdown).await
}

/// A gRPC server over a broker handle: the services of `weir.v1`, health checks and reflection.
pub struct GrpcServer {
    broker: Broker,
    attempts: u32,
    connections: usize,
    started: Started,
    #[cfg(feature = "test-clock")]
    clock: Option<std::sync::Arc<dyn crate::clock::Clock>>,
}

impl GrpcServer {
    /// A server with every setting at its default.
    #[must_use]
    pub fn new(broker: Broker) -> Self {
        Self {
            broker,
            attempts: limits::ATTEMPTS_DEFAULT,
            connections: limits::CONNECTIONS_MAX,
            started: Started::default(),
            #[cfg(feature = "test-clock")]
            clock: None,
        }
    }

    /// Attempts at a message for groups that are made without a number of their own.
    #[must_use]
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Connections at a time (1,024 if this is not called). One beyond that is closed at once.
    #[must_use]
    pub const fn max_connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// When the broker was opened, in broker time, and how long it took: for its status.
    #[must_use]
    pub const fn started(mut self, at: UnixMillis, recovery: Duration) -> Self {
        self.started = Started { at, recovery };
        self
    }

    /// Lets callers move this clock, which has to be the broker's.
    #[cfg(feature = "test-clock")]
    #[must_use]
    pub fn test_clock(mut self, clock: std::sync::Arc<dyn crate::clock::Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Serves until `shutdown` resolves. Then no connection is accepted any more, every stream is ended with
    /// UNAVAILABLE after what it has taken is answered, and calls still open have half a second.
    ///
    /// # Errors
    /// [`ServeError`].
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let (reporter, health) = tonic_health::server::health_reporter();
        health::set_not_serving(&reporter).await;
        let ending = Ending::default();
        let broker = self.broker.clone();
        let connections = Incoming::new(listener, "grpc", self.connections).greeting_within(GREETING_WITHIN);
        let routes = self.routes(&ending)?.add_service(health);
        let stopping = tokio_util::sync::CancellationToken::new();
        let serving =
            http2().add_routes(routes).serve_with_incoming_shutdown(connections, stopping.clone().cancelled_owned());
        let mut serving = std::pin::pin!(serving);
        let mut follow = std::pin::pin!(health::follow(broker, reporter));
        tokio::select! {
            ended = &mut serving => return Ok(ended?),
            () = &mut follow => {}
            () = shutdown => {}
        }
        ending.begin();
        stopping.cancel();
        match tokio::time::timeout(GRACE, serving).await {
            Ok(ended) => Ok(ended?),
            // Peers that do not close are left alone; what they waited for is dropped with this.
            Err(_) => Ok(()),
        }
    }

    fn routes(self, ending: &Ending) -> Result<Routes, ServeError> {
        let Self { broker, attempts, started, .. } = &self;
        let broker = || broker.clone();
        let publishing = Publishing { broker: broker(), ending: ending.clone() };
        let consuming = Consuming { broker: broker(), ending: ending.clone() };
        let routes = Routes::new(PublishServiceServer::new(publishing).max_decoding_message_size(DECODE_BYTES_MAX))
            .add_service(ConsumeServiceServer::new(consuming).max_decoding_message_size(DECODE_BYTES_MAX))
            .add_service(ExecutionServiceServer::new(Executions { broker: broker() }))
            .add_service(ChannelServiceServer::new(Channels { broker: broker() }))
            .add_service(GroupServiceServer::new(Groups { broker: broker(), attempts: *attempts }))
            .add_service(AdminServiceServer::new(Admin { broker: broker(), started: *started }))
            .add_service(reflection().build_v1()?);
        Ok(self.with_test_clock(routes))
    }

    #[cfg(feature = "test-clock")]
    fn with_test_clock(self, routes: Routes) -> Routes {
        use super::test_clock::TestClock;
        use weir_proto::test::test_clock_service_server::TestClockServiceServer;
        match self.clock {
            Some(clock) => routes.add_service(TestClockServiceServer::new(TestClock { broker: self.broker, clock })),
            None => routes,
        }
    }

    #[cfg(not(feature = "test-clock"))]
    fn with_test_clock(self, routes: Routes) -> Routes {
        drop(self);
        routes
    }
}

fn http2() -> Server {
    Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_EVERY))
        .http2_keepalive_timeout(Some(KEEPALIVE_ANSWER))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .concurrency_limit_per_connection(STREAMS_PER_CONNECTION_MAX as usize)
}

fn reflection() -> tonic_reflection::server::Builder<'static> {
    let builder = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(weir_proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET);
    if cfg!(feature = "test-clock") {
        builder.register_encoded_file_descriptor_set(weir_proto::TEST_FILE_DESCRIPTOR_SET)
    } else {
        builder
    }
}
