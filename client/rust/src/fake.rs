//! A broker for tests: it answers by script, writes down what it was asked, and breaks connections at will.
//!
//! It runs on a thread of its own, so that it answers even while a test's own runtime is blocked on purpose.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]

mod consume;
mod publish;

use crate::{BackoffBounds, Client};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, broadcast, watch};
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::CancellationToken;
use weir_proto::server::consume_service_server::ConsumeServiceServer;
use weir_proto::server::publish_service_server::PublishServiceServer;
use weir_proto::server::{CompleteRequest, Delivery};
use weir_proto::v1::{
    HeldAnswer, LeaseRef, Message, Notice, Refusal, Settlement, begin_response, complete_response, settle_result,
};

/// What the broker was asked.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    /// A publish of these message ids.
    Publish(Vec<String>),
    /// A fetch under this session id, with this `held` list.
    Fetch(Vec<u8>, Option<Vec<u64>>),
    /// A begin.
    Begin(LeaseRef),
    /// One settlement.
    Settle(Settlement),
    /// A complete.
    Complete(Box<CompleteRequest>),
    /// An extension of this lease.
    Extend(LeaseRef),
    /// A heartbeat; whether it carried a `held` list.
    Heartbeat(bool),
    /// A leave.
    Leave,
}

/// What happens to one publish.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    /// It is stored, and the connection breaks before the answer.
    StoredThenCut,
    /// It is refused; nothing is stored.
    Refused(Refusal),
}

/// The script of a fake broker, and what it has seen.
#[derive(Debug)]
pub(crate) struct Script {
    asked: Mutex<Vec<Asked>>,
    changed: watch::Sender<()>,
    cut: broadcast::Sender<()>,
    /// What happens to the next publishes; those after it succeed.
    pub(crate) fates: Mutex<VecDeque<Fate>>,
    /// While set, a publish does not end.
    pub(crate) gate: watch::Sender<bool>,
    /// Ids of what was stored, in order.
    pub(crate) stored: Mutex<Vec<String>>,
    /// What the next fetches hand out.
    pub(crate) ready: Mutex<VecDeque<Delivery>>,
    grant: Notify,
    /// What the next fetches say of the `held` list.
    pub(crate) held: Mutex<VecDeque<HeldAnswer>>,
    /// What the next heartbeats tell.
    pub(crate) notices: Mutex<Vec<Notice>>,
    /// Answers of the next begins; those after it are granted with the epoch's number and 100.
    pub(crate) begins: Mutex<VecDeque<begin_response::Result>>,
    /// Answers of the next settlements; those after it are taken.
    pub(crate) settles: Mutex<VecDeque<settle_result::Result>>,
    /// Refusals of the next fetches.
    pub(crate) stale: Mutex<VecDeque<Refusal>>,
    /// The answers of so many begins, settles and completes are lost with their connection.
    pub(crate) lose_answers: AtomicU32,
    /// Answers of the next completes; those after it are taken.
    pub(crate) completes: Mutex<VecDeque<complete_response::Result>>,
}

/// A running fake broker; it ends when it is dropped.
pub(crate) struct Fake {
    pub(crate) script: Arc<Script>,
    address: SocketAddr,
    end: CancellationToken,
}

impl std::ops::Deref for Fake {
    type Target = Script;

    fn deref(&self) -> &Script {
        &self.script
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl Fake {
    pub(crate) fn start() -> Self {
        let script = Arc::new(Script::new());
        let end = CancellationToken::new();
        let (address_to, address) = std::sync::mpsc::channel();
        let (theirs, until) = (Arc::clone(&script), end.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let back = TcpListener::bind("127.0.0.1:0").await.unwrap();
                address_to.send(front.local_addr().unwrap()).unwrap();
                let way = relay(front, back.local_addr().unwrap(), theirs.cut.clone());
                tokio::select! {
                    () = way => {}
                    () = serve(back, theirs) => {}
                    () = until.cancelled() => {}
                }
            });
        });
        let address = address.recv().unwrap();
        Self { script, address, end }
    }

    /// A client that repeats quickly.
    pub(crate) fn client(&self) -> Client {
        Client::builder(format!("http://{}", self.address))
            .backoff(BackoffBounds { first: Duration::from_millis(1), longest: Duration::from_millis(10) })
            .build()
            .unwrap()
    }
}

impl Script {
    fn new() -> Self {
        Self {
            asked: Mutex::default(),
            changed: watch::Sender::new(()),
            cut: broadcast::Sender::new(1),
            fates: Mutex::default(),
            gate: watch::Sender::new(false),
            stored: Mutex::default(),
            ready: Mutex::default(),
            grant: Notify::new(),
            held: Mutex::default(),
            notices: Mutex::default(),
            begins: Mutex::default(),
            settles: Mutex::default(),
            stale: Mutex::default(),
            lose_answers: AtomicU32::new(0),
            completes: Mutex::default(),
        }
    }

    fn write_down(&self, asked: Asked) {
        self.asked.lock().push(asked);
        self.changed.send_replace(());
    }

    /// All that was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }

    /// Waits until something that was asked gives a value.
    pub(crate) async fn until<T>(&self, find: impl Fn(&[Asked]) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            if let Some(found) = find(&self.asked()) {
                return found;
            }
            changed.changed().await.unwrap();
        }
    }

    /// As [`until`](Self::until), for a caller who may not await: blocks its thread.
    pub(crate) fn block_until(self: &Arc<Self>, find: impl Fn(&[Asked]) -> Option<()> + Send + 'static) {
        let script = Arc::clone(self);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(script.until(find));
        })
        .join()
        .unwrap();
    }

    /// Hands a delivery to the next fetch.
    pub(crate) fn grant(&self, delivery: Delivery) {
        self.ready.lock().push_back(delivery);
        self.grant.notify_one();
    }

    /// Breaks the connections instead of answering, if the script says so.
    async fn lose_answer(&self) {
        let lose = self.lose_answers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if lose.is_ok() {
            self.cut_connections();
            std::future::pending().await
        }
    }

    /// Breaks all connections.
    pub(crate) fn cut_connections(&self) {
        let _ = self.cut.send(());
    }
}

/// A delivery of `message` under lease `epoch`, at the offset of the same number.
pub(crate) fn delivery(epoch: u64, message: &Message) -> Delivery {
    use prost::Message as _;
    Delivery {
        policy: "task_events".into(),
        tenant: "acme".into(),
        agent_id: "desk".into(),
        offset: epoch,
        message: message.encode_to_vec().into(),
        epoch,
        attempt: 1,
        acquired: 1,
        ..Default::default()
    }
}

/// A request for execution `x<n>`.
pub(crate) fn request(n: u64) -> Message {
    Message {
        message_id: format!("m{n}"),
        task_id: format!("t{n}"),
        agent_id: "desk".into(),
        execution_id: format!("x{n}"),
        r#type: "task.request".into(),
        ..Default::default()
    }
}

/// A message that asks for nothing.
pub(crate) fn event(n: u64) -> Message {
    Message {
        message_id: format!("m{n}"),
        task_id: "t".into(),
        agent_id: "desk".into(),
        r#type: "event".into(),
        ..Default::default()
    }
}

async fn serve(listener: TcpListener, script: Arc<Script>) {
    tonic::transport::Server::builder()
        .add_service(PublishServiceServer::new(publish::Publishing(Arc::clone(&script))))
        .add_service(ConsumeServiceServer::new(consume::Consuming(script)))
        .serve_with_incoming(TcpListenerStream::new(listener))
        .await
        .unwrap();
}

/// Passes bytes on until told to cut.
async fn relay(front: TcpListener, back: SocketAddr, cut: broadcast::Sender<()>) {
    loop {
        let (mut near, _) = front.accept().await.unwrap();
        let mut cut = cut.subscribe();
        tokio::spawn(async move {
            let mut far = TcpStream::connect(back).await.unwrap();
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                _ = cut.recv() => {}
            }
        });
    }
}
