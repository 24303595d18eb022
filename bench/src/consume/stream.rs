//! A member over one `Consume` stream.

use super::{ANSWER_BYTES_MAX, Member, done};
use crate::load::Seen;
use crate::stopwatch::Stopwatch;
use anyhow::{Context as _, bail};
use std::collections::VecDeque;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use weir_proto::server::consume_request::Frame as Asked;
use weir_proto::server::consume_response::Frame;
use weir_proto::server::consume_service_client::ConsumeServiceClient;
use weir_proto::server::{ConsumeRequest, ConsumeResponse, Deliveries};
use weir_proto::v1::{Credit, Join, SettleRequest, Settlement};

/// Credit in bytes: no bound, the window is in messages.
const BYTES: u64 = u64::MAX / 2;

/// The stream, once the member has joined.
struct Joined {
    send: mpsc::Sender<ConsumeRequest>,
    frames: Streaming<ConsumeResponse>,
    /// Settles sent and not answered.
    waiting: VecDeque<Stopwatch>,
    last_request: u64,
}

/// Settles what has come, all that is there already in one frame, until the run is over.
pub(super) async fn settle(member: Member) -> anyhow::Result<Seen> {
    let joined = Joined::open(&member).await;
    // Whatever came of it: the others wait here.
    member.start.wait().await;
    let mut joined = joined?;
    joined.send(Asked::Credit(Credit { messages: member.window, bytes: BYTES })).await?;
    let mut seen = Seen::default();
    let mut got = Vec::new();
    let mut over = std::pin::pin!(member.progress.over());
    loop {
        let nothing_to_settle = got.is_empty();
        let frame = tokio::select! {
            biased;
            frame = joined.frames.message() => frame?.context("the stream ended early")?,
            () = &mut over, if nothing_to_settle => return Ok(seen),
            () = std::future::ready(()), if !nothing_to_settle => {
                joined.give_back(std::mem::take(&mut got)).await?;
                continue;
            }
        };
        match frame.frame {
            Some(Frame::Deliveries(Deliveries { deliveries })) => {
                got.extend(deliveries.iter().map(|delivery| done(delivery.epoch, delivery.offset)));
            }
            Some(Frame::Settle(answer)) => {
                let sent = joined.waiting.pop_front().context("an answer to nothing")?;
                member.settled(&mut seen, &answer.results, sent)?;
            }
            Some(Frame::Notice(_)) => {}
            other => bail!("not expected: {other:?}"),
        }
    }
}

impl Joined {
    async fn open(member: &Member) -> anyhow::Result<Self> {
        // Each delivery leads to at most a settle and a credit.
        let (send, receive) = mpsc::channel(2 * member.window as usize + 2);
        let join = Join { session: Some(member.session.clone()), lease_ms: 0 };
        send.send(ConsumeRequest { request_id: 1, frame: Some(Asked::Join(join)) }).await?;
        let mut client = ConsumeServiceClient::new(member.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX);
        let mut frames = client.consume(ReceiverStream::new(receive)).await?.into_inner();
        loop {
            match frames.message().await?.context("the stream ended early")?.frame {
                Some(Frame::Joined(_)) => return Ok(Self { send, frames, waiting: VecDeque::new(), last_request: 1 }),
                Some(Frame::Notice(_)) => {}
                other => bail!("not joined: {other:?}"),
            }
        }
    }

    async fn send(&mut self, frame: Asked) -> anyhow::Result<()> {
        self.last_request += 1;
        let request = ConsumeRequest { request_id: self.last_request, frame: Some(frame) };
        self.send.send(request).await.context("the stream ended early")
    }

    /// Settles, and lets as many more come. Never more than the window at once, which one frame takes.
    async fn give_back(&mut self, settlements: Vec<Settlement>) -> anyhow::Result<()> {
        let messages = u32::try_from(settlements.len())?;
        self.waiting.push_back(Stopwatch::start());
        self.send(Asked::Settle(SettleRequest { session: None, settlements })).await?;
        self.send(Asked::Credit(Credit { messages, bytes: 0 })).await
    }
}
