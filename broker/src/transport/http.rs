//! The HTTP port: whether the server lives, whether it is ready, and its metrics.
//!
//! It is served from the first moment on, before the broker has recovered, so that whoever waits for the broker can see
//! that it is coming.

use super::accept::{Connection, Incoming};
use crate::broker::{Broker, Health};
use crate::telemetry::exposition;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Longest wait for the broker's numbers. Without them the rest is answered.
const STATUS_WAIT: Duration = Duration::from_secs(5);
/// How long a request's head may take to come, and a connection may be idle.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// Connections at a time: some probes and scrapers.
const CONNECTIONS_MAX: usize = 64;
/// Media type of the metrics.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the HTTP port tells. Clones share it.
#[derive(Clone)]
pub struct Front {
    inner: Arc<Inner>,
}

struct Inner {
    broker: OnceLock<Broker>,
    process_metrics: Box<dyn Fn() -> String + Send + Sync>,
}

/// Whether calls are taken, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Readiness {
    Ready,
    Starting,
    Draining,
    Failed(String),
    Closed,
}

impl Front {
    /// A front without a broker yet: alive, not ready. `process_metrics` renders what the process itself counts.
    #[must_use]
    pub fn new(process_metrics: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { inner: Arc::new(Inner { broker: OnceLock::new(), process_metrics: Box::new(process_metrics) }) }
    }

    /// The broker is open. The first one stays.
    pub fn opened(&self, broker: Broker) {
        self.inner.broker.get_or_init(|| broker);
    }

    fn readiness(&self) -> Readiness {
        match self.inner.broker.get().map(Broker::health) {
            None => Readiness::Starting,
            Some(Health::Serving) => Readiness::Ready,
            Some(Health::Draining) => Readiness::Draining,
            Some(Health::Failed(cause)) => Readiness::Failed(cause),
            Some(Health::Closed) => Readiness::Closed,
        }
    }

    async fn metrics(&self) -> String {
        let mut text = (self.inner.process_metrics)();
        if let Some(broker) = self.inner.broker.get() {
            // A broker that is closed, or has no time now, is told by its health alone.
            let status = tokio::time::timeout(STATUS_WAIT, broker.status()).await.ok().and_then(Result::ok);
            text.push_str(&exposition::render(&broker.health(), status.as_ref()));
        }
        text
    }
}

impl Readiness {
    fn answer(&self) -> (StatusCode, String) {
        match self {
            Self::Ready => (StatusCode::OK, "ready\n".to_owned()),
            Self::Starting => (StatusCode::SERVICE_UNAVAILABLE, "starting: the broker recovers\n".to_owned()),
            Self::Draining => (StatusCode::SERVICE_UNAVAILABLE, "draining: the broker is going down\n".to_owned()),
            Self::Failed(cause) => (StatusCode::SERVICE_UNAVAILABLE, format!("failed: {cause}\n")),
            Self::Closed => (StatusCode::SERVICE_UNAVAILABLE, "closed\n".to_owned()),
        }
    }
}

/// Serves the HTTP port until `shutdown` resolves; connections that are still open then are closed. At most 64 are served
/// at a time, each for as long as requests come within ten seconds of one another.
pub async fn serve_http(front: Front, listener: TcpListener, shutdown: impl Future<Output = ()> + Send) {
    let routes = routes(front);
    let mut incoming = Incoming::new(listener, "http", CONNECTIONS_MAX);
    let mut served = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        tokio::select! {
            connection = std::future::poll_fn(|cx| incoming.poll_connection(cx)) => {
                served.spawn(converse(connection, routes.clone()));
            }
            Some(_) = served.join_next() => {}
            () = &mut shutdown => return,
        }
    }
}

async fn converse(connection: Connection, routes: Router) {
    let conversation = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .serve_connection(TokioIo::new(connection), TowerToHyperService::new(routes));
    if let Err(error) = conversation.await {
        tracing::debug!(%error, "a connection of the HTTP port");
    }
}

fn routes(front: Front) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(front)
}

/// Alive, unless the broker has failed for good: then a restart is what helps.
async fn healthz(State(front): State<Front>) -> impl IntoResponse {
    match front.readiness() {
        failed @ Readiness::Failed(_) => failed.answer(),
        _ => (StatusCode::OK, "alive\n".to_owned()),
    }
}

async fn readyz(State(front): State<Front>) -> impl IntoResponse {
    front.readiness().answer()
}

async fn metrics(State(front): State<Front>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, EXPOSITION)], front.metrics().await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_serving_broker_is_ready_and_others_say_why_not() {
        assert_eq!(Readiness::Ready.answer().0, StatusCode::OK);
        let failed = Readiness::Failed("EIO".to_owned());
        for (readiness, word) in [
            (Readiness::Starting, "recovers"),
            (Readiness::Draining, "going down"),
            (failed, "EIO"),
            (Readiness::Closed, "closed"),
        ] {
            let (code, text) = readiness.answer();
            assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE);
            assert!(text.contains(word), "{text}");
        }
    }

    #[tokio::test]
    async fn before_the_broker_opens_the_port_is_alive_and_not_ready_and_has_the_process_metrics() {
        let front = Front::new(|| "weir_up 1\n".to_owned());
        assert_eq!(front.readiness(), Readiness::Starting);
        assert_eq!(front.metrics().await, "weir_up 1\n");
    }
}
