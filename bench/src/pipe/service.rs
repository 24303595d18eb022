//! The publish calls, with messages left as the bytes they came as.

use super::answers::Answers;
use super::writer::{AnswerTo, Append};
use crate::codec::RawCodec;
use bytes::Bytes;
use std::convert::Infallible;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, StreamingService, UnaryService};
use tonic::{Request, Response, Status, Streaming};

/// Answers of one stream that may wait to be sent: more than any client has publishes in flight, so that the writer
/// never waits for one.
const ANSWERS_MAX: usize = 1024;
/// Largest request: the broker's.
const REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Both publish calls.
#[derive(Clone)]
pub(super) struct Pipe {
    appends: mpsc::Sender<Append>,
    answers: Answers,
}

impl Pipe {
    /// Over a writer, with answers of so many results.
    pub(super) fn new(appends: mpsc::Sender<Append>, results: usize) -> Self {
        Self { appends, answers: Answers::new(results) }
    }

    async fn forward(self, mut requests: Streaming<Bytes>, answers: mpsc::Sender<Result<Bytes, Status>>) {
        loop {
            let request = match requests.message().await {
                Ok(Some(request)) => request,
                Ok(None) => return,
                Err(status) => return drop(answers.send(Err(status)).await),
            };
            let answer = match self.answers.streamed(&request) {
                Ok(answer) => answer,
                Err(error) => return drop(answers.send(Err(Status::invalid_argument(error.to_string()))).await),
            };
            let append = Append { bytes: request, answer, to: AnswerTo::Stream(answers.clone()) };
            if self.appends.send(append).await.is_err() {
                return drop(answers.send(Err(ended())).await);
            }
        }
    }
}

impl StreamingService<Bytes> for Pipe {
    type Response = Bytes;
    type ResponseStream = ReceiverStream<Result<Bytes, Status>>;
    type Future = BoxFuture<Response<Self::ResponseStream>, Status>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        let pipe = self.clone();
        Box::pin(async move {
            let (answers, receive) = mpsc::channel(ANSWERS_MAX);
            tokio::spawn(pipe.forward(request.into_inner(), answers));
            Ok(Response::new(ReceiverStream::new(receive)))
        })
    }
}

impl UnaryService<Bytes> for Pipe {
    type Response = Bytes;
    type Future = BoxFuture<Response<Bytes>, Status>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let pipe = self.clone();
        Box::pin(async move {
            let (answered, answer) = oneshot::channel();
            let append =
                Append { bytes: request.into_inner(), answer: pipe.answers.unary(), to: AnswerTo::Call(answered) };
            pipe.appends.send(append).await.map_err(|_| ended())?;
            answer.await.map(Response::new).map_err(|_| ended())
        })
    }
}

impl Service<http::Request<Body>> for Pipe {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let pipe = self.clone();
        Box::pin(async move {
            let mut grpc = Grpc::new(RawCodec).max_decoding_message_size(REQUEST_BYTES_MAX);
            Ok(match request.uri().path().rsplit('/').next() {
                Some("PublishStream") => grpc.streaming(pipe, request).await,
                Some("Publish") => grpc.unary(pipe, request).await,
                _ => Status::unimplemented("the pipe takes publishes only").into_http(),
            })
        })
    }
}

impl NamedService for Pipe {
    const NAME: &'static str = "weir.v1.PublishService";
}

fn ended() -> Status {
    Status::unavailable("the writer ended")
}
