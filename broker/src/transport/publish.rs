//! `PublishService`: unary, and a pipelined stream.

use super::ending::Ending;
use super::in_flight::{Call, InFlight};
use super::{decode, encode, status};
use crate::broker::Broker;
use crate::model::{Publish, Published, Refusal};
use crate::telemetry::metrics;
use bytes::Bytes;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};
use weir_proto::server::{self as wire, publish_service_server::PublishService};

/// Requests of one stream on their way at a time.
const STREAM_REQUESTS_MAX: usize = 256;
/// Bytes of messages of one stream on their way at a time; a request is let in below it.
const STREAM_BYTES_MAX: usize = 16 * 1024 * 1024;

#[derive(Clone)]
pub(super) struct Publishing {
    pub(super) broker: Broker,
    pub(super) ending: Ending,
}

#[tonic::async_trait]
impl PublishService for Publishing {
    type PublishStreamStream = Answers;

    async fn publish(&self, request: Request<wire::PublishRequest>) -> Result<Response<wire::PublishResponse>, Status> {
        let request = request.into_inner();
        let channel = decode::channel(request.policy, request.tenant, request.agent_id);
        let published = publish(&self.broker, Publish { channel, messages: request.messages }).await;
        let published = published.map_err(|refusal| status::status(&refusal))?;
        Ok(Response::new(encode::published(published, self.broker.publishes_durably())))
    }

    async fn publish_stream(
        &self,
        request: Request<Streaming<wire::PublishStreamRequest>>,
    ) -> Result<Response<Answers>, Status> {
        Ok(Response::new(Answers {
            broker: self.broker.clone(),
            requests: Some(request.into_inner()),
            ended: Box::pin(self.ending.clone().reached()),
            calls: InFlight::new(STREAM_REQUESTS_MAX, STREAM_BYTES_MAX),
            last: None,
        }))
    }
}

/// The answers of one publish stream. It takes requests only while its answers are read, and holds no task: dropping it
/// drops what it waits for.
pub(super) struct Answers {
    broker: Broker,
    /// `None` once no more are taken.
    requests: Option<Streaming<wire::PublishStreamRequest>>,
    ended: Pin<Box<dyn Future<Output = Status> + Send>>,
    calls: InFlight<wire::PublishStreamResponse>,
    /// What the stream ends with once all is answered.
    last: Option<Status>,
}

impl Answers {
    fn take_requests(&mut self, cx: &mut Context<'_>) {
        if self.requests.is_some()
            && let Poll::Ready(status) = self.ended.as_mut().poll(cx)
        {
            self.requests = None;
            self.last = Some(status);
        }
        while self.calls.has_room() {
            let Some(requests) = &mut self.requests else { return };
            match Pin::new(requests).poll_next(cx) {
                Poll::Ready(Some(Ok(request))) => {
                    let bytes = request.messages.iter().map(Bytes::len).sum();
                    self.calls.push(bytes, answer(self.broker.clone(), request), cx);
                }
                Poll::Ready(Some(Err(status))) => {
                    self.requests = None;
                    self.last = Some(status);
                }
                Poll::Ready(None) => self.requests = None,
                Poll::Pending => return,
            }
        }
    }
}

impl Stream for Answers {
    type Item = Result<wire::PublishStreamResponse, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        this.take_requests(cx);
        match this.calls.poll_next(cx) {
            Poll::Ready(Some(answer)) => Poll::Ready(Some(Ok(answer))),
            Poll::Ready(None) if this.requests.is_none() => Poll::Ready(this.last.take().map(Err)),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

fn answer(broker: Broker, request: wire::PublishStreamRequest) -> Call<wire::PublishStreamResponse> {
    use wire::publish_stream_response::Outcome;
    Box::pin(async move {
        let channel = decode::channel(request.policy, request.tenant, request.agent_id);
        let outcome = match publish(&broker, Publish { channel, messages: request.messages }).await {
            Ok(published) => Outcome::Published(encode::published(published, broker.publishes_durably())),
            Err(refusal) => Outcome::Refused(status::in_band(refusal)),
        };
        wire::PublishStreamResponse { sequence: request.sequence, outcome: Some(outcome) }
    })
}

async fn publish(broker: &Broker, publish: Publish) -> Result<Published, Refusal> {
    let channel = publish.channel.clone();
    let published = broker.publish(publish).await;
    match &published {
        Ok(published) => metrics::published(&channel, published),
        Err(refusal) => metrics::publish_rejected(refusal),
    }
    published
}
