//! Keeps the session alive from a thread of its own, with a connection of its own.

use crate::cli::Global;
use crate::connection::{Connection, within};
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;
use weir_proto::v1::{HeartbeatRequest, Session};

/// A beating heart. It stops when it is told to, or dropped.
#[derive(Debug)]
pub(super) struct Heart {
    end: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Heart {
    /// Beats for the newest of `session`, every third of its timeout.
    ///
    /// # Errors
    /// If there is no thread for it.
    pub(super) fn start(global: &Global, session: watch::Receiver<Session>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (end, ended) = oneshot::channel();
        let global = global.clone();
        let thread = std::thread::Builder::new().name("heartbeat".to_owned()).spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    _ = ended => {}
                    () = beat(&global, &session) => {}
                }
            });
        })?;
        Ok(Self { end, thread })
    }

    /// Stops, and waits until it has: nothing of the session is sent any more.
    pub(super) fn stop(self) {
        drop(self.end);
        if self.thread.join().is_err() {
            eprintln!("the thread of the heartbeats broke");
        }
    }
}

async fn beat(global: &Global, session: &watch::Receiver<Session>) {
    let connection = match Connection::open(global) {
        Ok(connection) => connection,
        Err(failure) => {
            eprintln!("no heartbeats: {failure}");
            return;
        }
    };
    let mut told = false;
    loop {
        let current = session.borrow().clone();
        let every = Duration::from_millis((current.session_timeout_ms / 3).max(1));
        sleep(every).await;
        let request = HeartbeatRequest { session: Some(session.borrow().clone()), held: None };
        match within(every, connection.consumer().heartbeat(request)).await {
            Ok(_) => told = false,
            Err(refused) if !told => {
                told = true;
                eprintln!("a heartbeat failed, trying on: {}", crate::output::escape::controls(&refused.to_string()));
            }
            Err(_) => {}
        }
    }
}
