//! A connection as a client of much traffic sets it up.

use anyhow::Context as _;
use tonic::transport::{Channel, Endpoint};

/// Bytes that the server may send ahead on one stream.
const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// Bytes that the server may send ahead on one connection.
const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// Opens one to `address` (`127.0.0.1:7447`).
///
/// # Errors
/// If nobody listens there.
pub(crate) async fn connect(address: &str) -> anyhow::Result<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    endpoint.connect().await.with_context(|| format!("connecting to {address}"))
}
