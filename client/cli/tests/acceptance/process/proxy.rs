//! A connection that can be cut.

use crate::process::Server;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tonic::transport::{Channel, Endpoint};

/// Carries connections to a server until it is cut, which closes all of them without a word of HTTP/2.
pub(crate) struct Proxy {
    port: u16,
    carrying: JoinHandle<()>,
}

impl Proxy {
    /// A way to the server.
    pub(crate) async fn to(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let there = server.grpc.clone();
        let carrying = tokio::spawn(async move {
            // Cutting drops the set, and with it both sides of each connection.
            let mut connections = JoinSet::new();
            while let Ok((mut here, _)) = listener.accept().await {
                let there = there.clone();
                connections.spawn(async move {
                    if let Ok(mut there) = TcpStream::connect(there).await {
                        // However it ends, both sides are closed then.
                        let _ = copy_bidirectional(&mut here, &mut there).await;
                    }
                });
            }
        });
        Self { port, carrying }
    }

    /// A gRPC channel through it.
    pub(crate) fn wire(&self) -> Channel {
        Endpoint::from_shared(format!("http://127.0.0.1:{}", self.port)).unwrap().connect_lazy()
    }

    /// Cuts all connections.
    pub(crate) fn cut(self) {
        self.carrying.abort();
    }
}
