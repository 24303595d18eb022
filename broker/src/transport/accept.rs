//! Taking connections, for both ports: how many there may be, and what one has to say to stay.
//!
//! A listener never ends for want of file handles: it waits and tries again. A connection beyond the bound is closed at
//! once, so that the peer knows, and those that are served keep their handles and their memory.

use crate::telemetry::metrics;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tokio_stream::Stream;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// How long nothing is accepted after the system has refused to.
const PAUSE: Duration = Duration::from_millis(100);
/// What a peer sends first in HTTP/2 (RFC 9113, section 3.4). Whoever has sent that much is watched by the protocol.
const PREFACE_BYTES: usize = 24;

/// Where connections come from.
pub(super) trait Listen: Send + Unpin + 'static {
    /// The next connection, or why there is none now.
    fn poll_next_peer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>>;
}

impl Listen for TcpListener {
    fn poll_next_peer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        self.poll_accept(cx)
    }
}

/// The connections of one port, without end.
pub(super) struct Incoming<L = TcpListener> {
    listener: L,
    port: &'static str,
    slots: Arc<Semaphore>,
    pause: Duration,
    pausing: Option<Pin<Box<Sleep>>>,
}

impl<L: Listen> Incoming<L> {
    /// Accepts from `listener`, at most `connections_max` at a time; `port` is its name in what is counted.
    pub(super) fn new(listener: L, port: &'static str, connections_max: usize) -> Self {
        Self { listener, port, slots: Arc::new(Semaphore::new(connections_max)), pause: PAUSE, pausing: None }
    }

    /// The next connection; pending while there is none.
    pub(super) fn poll_connection(&mut self, cx: &mut Context<'_>) -> Poll<Connection> {
        loop {
            if let Some(pausing) = &mut self.pausing {
                ready!(pausing.as_mut().poll(cx));
                self.pausing = None;
            }
            match ready!(self.listener.poll_next_peer(cx)) {
                Ok((stream, peer)) => match Arc::clone(&self.slots).try_acquire_owned() {
                    Ok(slot) => {
                        // Small frames are the rule here. A socket that cannot do it is slower, and no worse.
                        let _ = stream.set_nodelay(true);
                        return Poll::Ready(Connection { stream, greeting: None, _slot: slot });
                    }
                    Err(_) => {
                        tracing::debug!(port = self.port, %peer, "a connection too many was closed");
                        metrics::connection_refused(self.port);
                    }
                },
                Err(error) if is_of_the_peer(&error) => {}
                Err(error) => {
                    tracing::warn!(port = self.port, %error, "no connection can be accepted for now");
                    self.pausing = Some(Box::pin(tokio::time::sleep(self.pause)));
                }
            }
        }
    }

    /// As a stream in which each connection has to begin to talk within `patience`.
    pub(super) fn greeting_within(self, patience: Duration) -> Greeted<L> {
        Greeted { incoming: self, patience }
    }
}

/// The peer went away while it waited: nothing that a pause would help.
fn is_of_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionAborted | Kind::ConnectionReset | Kind::ConnectionRefused | Kind::Interrupted
    )
}

/// Connections that are closed if they stay silent at first.
pub(super) struct Greeted<L = TcpListener> {
    incoming: Incoming<L>,
    patience: Duration,
}

impl<L: Listen> Stream for Greeted<L> {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut connection = ready!(self.incoming.poll_connection(cx));
        let limit = Box::pin(tokio::time::sleep(self.patience));
        connection.greeting = Some(Greeting { limit, missing: PREFACE_BYTES });
        Poll::Ready(Some(Ok(connection)))
    }
}

/// An accepted connection; it takes up its place until it is dropped.
pub(super) struct Connection {
    stream: TcpStream,
    greeting: Option<Greeting>,
    _slot: OwnedSemaphorePermit,
}

struct Greeting {
    limit: Pin<Box<Sleep>>,
    missing: usize,
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let Some(greeting) = &mut self.greeting {
            greeting.missing = greeting.missing.saturating_sub(buffer.filled().len() - before);
            if greeting.missing == 0 {
                self.greeting = None;
            } else if greeting.limit.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio_stream::StreamExt as _;

    /// A listener whose system refuses some times before it gives what there is.
    struct Refusing {
        errors: VecDeque<io::Error>,
        listener: TcpListener,
    }

    impl Listen for Refusing {
        fn poll_next_peer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
            match self.errors.pop_front() {
                Some(error) => Poll::Ready(Err(error)),
                None => self.listener.poll_accept(cx),
            }
        }
    }

    async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    async fn next<L: Listen>(incoming: &mut Incoming<L>) -> Connection {
        std::future::poll_fn(|cx| incoming.poll_connection(cx)).await
    }

    #[tokio::test]
    async fn a_listener_that_has_no_handles_goes_on_once_it_has_some() {
        const EMFILE: i32 = 24;
        let (listener, address) = listener().await;
        let errors = [EMFILE, EMFILE].map(io::Error::from_raw_os_error);
        let errors = errors.into_iter().chain([io::ErrorKind::ConnectionAborted.into()]).collect();
        let mut incoming = Incoming::new(Refusing { errors, listener }, "grpc", 1);
        incoming.pause = Duration::from_millis(1);
        let _client = TcpStream::connect(address).await.unwrap();
        next(&mut incoming).await;
    }

    #[tokio::test]
    async fn a_connection_too_many_is_closed_and_a_place_that_gets_free_is_given_again() {
        let (listener, address) = listener().await;
        let mut incoming = Incoming::new(listener, "grpc", 1);
        let _first = TcpStream::connect(address).await.unwrap();
        let held = next(&mut incoming).await;
        let mut second = TcpStream::connect(address).await.unwrap();
        let accepting = tokio::spawn(async move {
            next(&mut incoming).await;
        });
        let ended = second.read(&mut [0; 1]).await;
        assert!(matches!(ended, Ok(0)) || ended.is_err(), "{ended:?}");
        drop(held);
        let _third = TcpStream::connect(address).await.unwrap();
        accepting.await.unwrap();
    }

    #[tokio::test]
    async fn whoever_does_not_begin_to_talk_is_closed_and_whoever_does_may_be_silent_then() {
        let (listener, address) = listener().await;
        let mut greeted = Incoming::new(listener, "grpc", 2).greeting_within(Duration::from_millis(20));
        let _silent = TcpStream::connect(address).await.unwrap();
        let mut served = greeted.next().await.unwrap().unwrap();
        let ended = served.read(&mut [0; 64]).await;
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);

        let mut talker = TcpStream::connect(address).await.unwrap();
        talker.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        let mut served = greeted.next().await.unwrap().unwrap();
        served.read_exact(&mut [0; PREFACE_BYTES]).await.unwrap();
        assert!(served.greeting.is_none());
    }
}
