//! The two ports.

use anyhow::Context as _;
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpSocket};
use weir_broker::config::Settings;

/// Connections that may wait to be accepted.
pub(super) const BACKLOG: u32 = 1024;

/// The ports, both taken, so that a clash shows before the data folder is touched. The gRPC one does not listen yet.
pub(super) struct Listeners {
    pub(super) grpc: TcpSocket,
    pub(super) grpc_addr: SocketAddr,
    pub(super) http: TcpListener,
    pub(super) http_addr: SocketAddr,
}

impl Listeners {
    pub(super) async fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let http = TcpListener::bind(settings.http_listen).await;
        let http = http.with_context(|| format!("the HTTP address {}", settings.http_listen))?;
        let grpc = reserve(settings.listen).with_context(|| format!("the gRPC address {}", settings.listen))?;
        Ok(Self { grpc_addr: grpc.local_addr()?, http_addr: http.local_addr()?, grpc, http })
    }
}

fn reserve(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart must not wait for connections of the last run to fade.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}
