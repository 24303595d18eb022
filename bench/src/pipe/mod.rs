//! The bare pipe: what any broker that answers after a sync has to do at the least. It takes the bytes of each publish
//! off the same gRPC calls, appends them as they are to one file, syncs all that waits together, and answers.
//!
//! Nothing of weir is in it but the answers' encoding and the transport's settings. It does not look into a request.

mod answers;
mod file;
mod service;
mod writer;

use anyhow::Context as _;
use clap::Args;
use service::Pipe;
use std::io::Write as _;
use std::path::PathBuf;
use tokio::net::TcpListener;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use writer::Syncing;

/// Settings of the transport: those of `weir serve`.
const STREAMS_PER_CONNECTION_MAX: u32 = 2048;
const STREAM_WINDOW_BYTES: u32 = 2 * 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
const FRAME_BYTES: u32 = 128 * 1024;

/// How a pipe is set up.
#[derive(Clone, Debug, Args)]
pub(crate) struct PipeArgs {
    /// File that is written; made anew
    #[arg(long)]
    pub(crate) file: PathBuf,
    /// Results in each answer
    #[arg(long)]
    pub(crate) results: usize,
    /// Answers at once, without writing anything
    #[arg(long)]
    pub(crate) bare_call: bool,
}

/// Serves until the process is ended. Says on standard error where it listens, as `weir serve` does.
///
/// # Errors
/// If it cannot start, or the file cannot be written.
pub(crate) async fn serve(arguments: PipeArgs) -> anyhow::Result<()> {
    let syncing = if arguments.bare_call { Syncing::Nothing } else { Syncing::File(arguments.file) };
    let (appends, ended) = writer::start(syncing)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    writeln!(std::io::stderr(), "listening grpc={}", listener.local_addr()?)?;
    let server = Server::builder()
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .concurrency_limit_per_connection(STREAMS_PER_CONNECTION_MAX as usize)
        .add_routes(Routes::new(Pipe::new(appends, arguments.results)))
        .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)));
    tokio::select! {
        served = server => served.context("the transport"),
        error = ended => Err(error.context("the writer ended")?).context("writing"),
    }
}
