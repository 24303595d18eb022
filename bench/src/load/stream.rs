//! One `PublishStream` with a window of publishes in flight.

use super::Seen;
use super::answer::{PUBLISH_STREAM, check_streamed};
use crate::codec::RawCodec;
use crate::stopwatch::Stopwatch;
use crate::workload::Lane;
use anyhow::{Context as _, ensure};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::{Barrier, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Request;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;

/// Sends a lane, a publish for each answer once the window is full.
pub(super) async fn drive(channel: Channel, lane: Lane, in_flight: usize, start: Arc<Barrier>) -> anyhow::Result<Seen> {
    let (send, receive) = mpsc::channel(in_flight);
    let mut client = Grpc::new(channel);
    client.ready().await?;
    let path = PathAndQuery::from_static(PUBLISH_STREAM);
    let opened = client.streaming(Request::new(ReceiverStream::new(receive)), path, RawCodec).await;
    // Whatever came of it: the others wait here.
    start.wait().await;
    let mut answers = opened?.into_inner();

    let mut seen = Seen { confirmed: 0, waits_us: Vec::with_capacity(lane.len()) };
    let mut waiting = VecDeque::with_capacity(in_flight);
    let mut sequence = 0;
    let mut requests = lane.into_iter();
    loop {
        while waiting.len() < in_flight
            && let Some(request) = requests.next()
        {
            waiting.push_back((request.messages, Stopwatch::start()));
            send.send(request.bytes).await.context("the stream ended early")?;
        }
        let Some((messages, sent)) = waiting.pop_front() else { break };
        let answer = answers.message().await?.context("the stream ended early")?;
        sequence += 1;
        check_streamed(answer, sequence, messages)?;
        seen.answered(messages, sent);
    }
    drop(send);
    ensure!(answers.message().await?.is_none(), "an answer to nothing");
    Ok(seen)
}
