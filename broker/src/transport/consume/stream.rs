//! One consume stream: a member's frames in, deliveries, answers and notices out.

use super::credit::CreditLine;
use super::frames::{self, Answer, Taken, unasked};
use crate::broker::{Broker, ConsumeStream, Health, Joined, SessionEvent};
use crate::model::{Reason, Refusal, SessionRef};
use crate::transport::ending::Ending;
use crate::transport::in_flight::{Call, InFlight};
use crate::transport::{decode, encode, status};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};
use weir_proto::server as wire;
use wire::consume_response::Frame;

/// What the RPC answers with.
pub(super) type Frames = ReceiverStream<Result<wire::ConsumeResponse, Status>>;

/// How long the first frame may take.
const JOIN_WAIT: Duration = Duration::from_secs(10);
/// Frames that wait for the connection to take them.
const FRAMES_OUT_MAX: usize = 8;
/// Calls of one stream on their way at a time.
const CALLS_MAX: usize = 256;
/// Bytes of messages in these calls; a call is let in below it.
const CALL_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Opens the stream. Its task ends with the connection, the session, the member's leave, or the server.
pub(super) fn open(broker: Broker, requests: Streaming<wire::ConsumeRequest>, ending: Ending) -> Frames {
    let (out, frames) = mpsc::channel(FRAMES_OUT_MAX);
    tokio::spawn(async move {
        let gone = out.clone();
        tokio::select! {
            () = gone.closed() => {}
            end = serve(broker, requests, ending, &out) => if let Err(status) = end {
                // If the member is gone there is nobody left to tell.
                let _ = out.send(Err(status)).await;
            },
        }
    });
    ReceiverStream::new(frames)
}

type Out = mpsc::Sender<Result<wire::ConsumeResponse, Status>>;

async fn serve(
    broker: Broker,
    mut requests: Streaming<wire::ConsumeRequest>,
    ending: Ending,
    out: &Out,
) -> Result<(), Status> {
    let first = tokio::time::timeout(JOIN_WAIT, requests.message());
    let Some(first) = first.await.map_err(|_| refused(&no_join()))?? else { return Ok(()) };
    let (id, session, lease_ms) = join(first).map_err(|refusal| refused(&refusal))?;
    let said = session.held.is_some();
    let joined = broker.consume(session.clone(), lease_ms).await;
    let (joined, deliveries) = joined.map_err(|refusal| refused(&refusal))?;
    let session = SessionRef { held: None, ..session };
    let mut member = Member {
        broker,
        session,
        deliveries,
        credit: CreditLine::default(),
        calls: InFlight::new(CALLS_MAX, CALL_BYTES_MAX),
        waiting: VecDeque::new(),
        taking: true,
        last: None,
    };
    member.greet(id, said, joined);
    member.run(requests, ending, out).await
}

fn join(first: wire::ConsumeRequest) -> Result<(u64, SessionRef, u64), Refusal> {
    match first.frame {
        Some(wire::consume_request::Frame::Join(join)) => {
            Ok((first.request_id, decode::session(join.session)?, join.lease_ms))
        }
        _ => Err(no_join()),
    }
}

fn no_join() -> Refusal {
    Refusal::invalid("join", "the first frame joins, within 10 s")
}

fn refused(refusal: &Refusal) -> Status {
    status::status(refusal)
}

/// A member at the other end of a stream.
struct Member {
    broker: Broker,
    session: SessionRef,
    deliveries: ConsumeStream,
    credit: CreditLine,
    calls: InFlight<Answer>,
    /// Frames for the member. Nothing is added from the broker while some are here, so they stay few.
    waiting: VecDeque<wire::ConsumeResponse>,
    /// Whether frames of the member are still taken.
    taking: bool,
    /// What the stream ends with, once it is known that it ends.
    last: Option<Result<(), Status>>,
}

impl Member {
    fn greet(&mut self, id: u64, said: bool, joined: Joined) {
        let frame = Frame::Joined(wire::Joined {
            session_timeout_ms: joined.timeout_ms,
            session_expires_unix_ms: joined.expires.get(),
            held: encode::held(said, joined.held),
        });
        self.waiting.push_back(wire::ConsumeResponse { request_id: id, frame: Some(frame) });
        self.tell(joined.notices.into_iter().map(encode::notice));
    }

    fn tell(&mut self, notices: impl Iterator<Item = wire::Notice>) {
        self.waiting.extend(notices.map(|notice| unasked(Frame::Notice(notice))));
    }

    async fn run(
        mut self,
        mut requests: Streaming<wire::ConsumeRequest>,
        ending: Ending,
        out: &Out,
    ) -> Result<(), Status> {
        let mut ended = std::pin::pin!(ending.reached());
        loop {
            if self.calls.is_empty()
                && self.waiting.is_empty()
                && let Some(last) = self.last.take()
            {
                return last;
            }
            let ends = self.last.is_some();
            tokio::select! {
                permit = out.reserve(), if !self.waiting.is_empty() => {
                    let Ok(permit) = permit else { return Ok(()) };
                    if let Some(frame) = self.waiting.pop_front() {
                        permit.send(Ok(frame));
                    }
                }
                answer = poll_fn(|cx| self.calls.poll_next(cx)), if !self.calls.is_empty() && self.waiting.len() < CALLS_MAX => {
                    if let Some(answer) = answer {
                        self.waiting.push_back(answer.frame);
                        self.tell(answer.notices.into_iter());
                    }
                }
                event = self.deliveries.next(), if self.waiting.is_empty() && !ends => self.take_event(event),
                frame = requests.message(), if self.taking && self.calls.has_room() => self.take_frame(frame).await,
                status = &mut ended, if !ends => self.end(Err(status)),
            }
        }
    }

    /// Nothing more is taken; what was taken is answered, then the stream ends.
    fn end(&mut self, last: Result<(), Status>) {
        self.taking = false;
        self.last.get_or_insert(last);
    }

    fn take_event(&mut self, event: Option<Result<SessionEvent, Refusal>>) {
        match event {
            Some(Ok(SessionEvent::Deliveries(deliveries))) => {
                let messages = u32::try_from(deliveries.len()).unwrap_or(u32::MAX);
                let bytes = deliveries.iter().map(|delivery| delivery.message.len() as u64).sum();
                self.waiting.extend(frames::deliveries(deliveries));
                self.credit.used(messages, bytes);
                self.hand_on_credit();
            }
            Some(Ok(SessionEvent::Notice(notice))) => self.tell(std::iter::once(encode::notice(notice))),
            Some(Err(refusal)) => self.end(Err(refused(&refusal))),
            None => self.end(Err(refused(&self.why_over()))),
        }
    }

    async fn take_frame(&mut self, frame: Result<Option<wire::ConsumeRequest>, Status>) {
        match frame {
            Ok(Some(request)) => match frames::take(&self.broker, &self.session, request) {
                Taken::Credit(messages, bytes) => {
                    self.credit.give(messages, bytes);
                    self.hand_on_credit();
                }
                Taken::Call(call, bytes) => self.push(call, bytes).await,
                Taken::Leave(call) => {
                    self.push(call, 0).await;
                    self.end(Ok(()));
                }
            },
            Ok(None) => self.end(Ok(())),
            Err(status) => self.end(Err(status)),
        }
    }

    async fn push(&mut self, call: Call<Answer>, bytes: usize) {
        let mut call = Some(call);
        poll_fn(|cx| {
            if let Some(call) = call.take() {
                self.calls.push(bytes, call, cx);
            }
            Poll::Ready(())
        })
        .await;
    }

    fn hand_on_credit(&mut self) {
        if let Some((messages, bytes)) = self.credit.portion() {
            self.deliveries.credit(messages, bytes);
        }
    }

    /// Why the broker ended the stream.
    fn why_over(&self) -> Refusal {
        match self.broker.health() {
            Health::Serving => Refusal::new(
                Reason::StaleSession,
                "the session is over, or goes on in another stream or by fetches; join again",
            ),
            Health::Draining => Refusal::new(Reason::Draining, "the broker is going down"),
            Health::Failed(cause) => Refusal::new(Reason::JournalFailed, cause),
            Health::Closed => Refusal::new(Reason::Closed, "the broker is closed"),
        }
    }
}
