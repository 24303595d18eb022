//! `weir serve`: opens the broker, serves it, and takes it down in order.
//!
//! The HTTP port answers from the first moment on, so that whoever waits can see the recovery; the gRPC port is reserved
//! then and listens only once the broker is open: until that a client is refused at once instead of left waiting.
//!
//! A first SIGTERM or SIGINT drains: nothing new is taken, results are, until the last lease is in or the limit is over.
//! Then streams are ended, the broker is closed, and the process ends with 0, at most a second after the limit. A second
//! signal ends it at once with 130. A disk that failed ends it with 70, after reads had their grace.

mod handles;
mod listeners;
mod stopping;

use anyhow::Context as _;
use listeners::Listeners;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;
use stopping::{Signals, failed};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use weir_broker::clock::{Clock, SystemClock};
use weir_broker::config::{Settings, Syncing};
use weir_broker::telemetry::{logging, recorder};
use weir_broker::transport::http::{Front, serve_http};
use weir_broker::transport::{GrpcServer, ServeError};
use weir_broker::{Broker, SyncPolicy};

/// Longest time between two checkpoints.
const CHECKPOINT_EVERY_MS: u64 = 60_000;
/// What ending streams and closing the broker may take beyond the drain limit. Less than the second that is promised.
const CLOSE_WITHIN: Duration = Duration::from_millis(900);
/// Exit code after a disk failure (`EX_SOFTWARE`).
const EXIT_FAILED: u8 = 70;
/// Exit code after a second signal (as a shell reports SIGINT).
const EXIT_INTERRUPTED: u8 = 130;

/// Runs the server until it is asked to stop; returns the exit code.
///
/// # Errors
/// If it cannot start, or has to stop unasked.
pub(crate) fn serve(settings: Settings) -> anyhow::Result<u8> {
    logging::init()?;
    let counters = recorder::install()?;
    let connections = handles::connections_max();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no threads")?;
    let front = Front::new(move || counters.render());
    let code = runtime.block_on(run(settings, front, connections));
    // A peer that does not close its connection, or a recovery that goes on, must not hold up the end.
    runtime.shutdown_background();
    code
}

async fn run(settings: Settings, front: Front, connections: usize) -> anyhow::Result<u8> {
    let mut signals = Signals::listen()?;
    let listeners = Listeners::bind(&settings).await?;
    let (grpc_addr, http_addr) = (listeners.grpc_addr, listeners.http_addr);
    let http_stop = CancellationToken::new();
    let mut http = tokio::spawn(serve_http(front.clone(), listeners.http, http_stop.clone().cancelled_owned()));

    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let began = clock.now();
    let opening = open(settings.clone(), Arc::clone(&clock));
    let broker = tokio::select! {
        opened = opening => opened?,
        // A recovery can be cut off at any point, as by a crash.
        () = signals.next() => return Ok(0),
    };
    front.opened(broker.clone());
    let recovery = Duration::from_millis(clock.now().since(began));
    let server = grpc_server(&settings, &broker, &clock, recovery).max_connections(connections);
    let grpc_stop = CancellationToken::new();
    let listener = listeners.grpc.listen(listeners::BACKLOG).context("gRPC port")?;
    let mut grpc = tokio::spawn(server.serve(listener, grpc_stop.clone().cancelled_owned()));
    writeln!(std::io::stderr(), "listening grpc={grpc_addr} http={http_addr}")?;

    tokio::select! {
        () = signals.next() => {}
        cause = failed(&broker) => return Ok(after_grace(&settings, &cause, &mut signals).await),
        ended = &mut grpc => {
            ended?.context("the gRPC server")?;
            anyhow::bail!("the gRPC server ended unasked");
        }
        ended = &mut http => {
            ended?;
            anyhow::bail!("the HTTP server ended unasked");
        }
    }
    let limit = Duration::from_millis(settings.drain_limit_ms);
    tracing::info!(limit_ms = settings.drain_limit_ms, "draining");
    let deadline = tokio::time::Instant::now() + limit + CLOSE_WITHIN;
    tokio::select! {
        () = take_down(&broker, limit, &grpc_stop, grpc) => {}
        () = tokio::time::sleep_until(deadline) => tracing::warn!("the broker did not close in time; its journal has all that was confirmed"),
        () = signals.next() => return Ok(EXIT_INTERRUPTED),
        cause = failed(&broker) => {
            tracing::error!(cause, "the disk failed while draining");
            return Ok(EXIT_FAILED);
        }
    }
    http_stop.cancel();
    Ok(0)
}

async fn open(settings: Settings, clock: Arc<dyn Clock>) -> anyhow::Result<Broker> {
    let sync = match settings.syncing {
        Syncing::Always => SyncPolicy::Always,
        Syncing::Interval { millis } => SyncPolicy::Interval(Duration::from_millis(millis)),
    };
    let builder = Broker::builder(settings.data_dir)
        .clock(clock)
        .policies(settings.policies)
        .session_timeout_ms(settings.session_timeout_ms)
        .sync(sync)
        .segment_bytes(settings.segment_bytes)
        .checkpoint_every(settings.checkpoint_bytes, CHECKPOINT_EVERY_MS);
    let opened = tokio::task::spawn_blocking(move || builder.open()).await?;
    opened.context("the broker did not open")
}

fn grpc_server(settings: &Settings, broker: &Broker, clock: &Arc<dyn Clock>, recovery: Duration) -> GrpcServer {
    tracing::info!(recovery_ms = recovery.as_millis(), "the broker is open");
    let server = GrpcServer::new(broker.clone()).max_attempts(settings.max_attempts).started(clock.now(), recovery);
    #[cfg(feature = "test-clock")]
    let server = server.test_clock(Arc::clone(clock));
    server
}

/// Drains, ends the streams, closes.
async fn take_down(
    broker: &Broker,
    limit: Duration,
    grpc_stop: &CancellationToken,
    grpc: JoinHandle<Result<(), ServeError>>,
) {
    if let Err(refusal) = broker.drain(limit).await {
        tracing::warn!(%refusal, "the drain ended early");
    }
    grpc_stop.cancel();
    match grpc.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "the gRPC server"),
        Err(error) => tracing::warn!(%error, "the gRPC server"),
    }
    match broker.close().await {
        Ok(()) => tracing::info!("closed"),
        Err(refusal) => tracing::error!(%refusal, "closing"),
    }
}

/// What is durable is still read for a while; a signal cuts that short.
async fn after_grace(settings: &Settings, cause: &str, signals: &mut Signals) -> u8 {
    tracing::error!(cause, grace_ms = settings.fail_grace_ms, "the disk failed; nothing new is taken");
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(settings.fail_grace_ms)) => {}
        () = signals.next() => {}
    }
    EXIT_FAILED
}
