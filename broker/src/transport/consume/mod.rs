//! `ConsumeService`: fetches, settles and begins one by one, or over one stream.

mod calls;
mod credit;
mod frames;
mod stream;

use super::ending::Ending;
use super::{decode, status};
use crate::broker::Broker;
use crate::model::Refusal;
use stream::Frames;
use tonic::{Request, Response, Status, Streaming};
use weir_proto::server::{self as wire, consume_service_server::ConsumeService};

#[derive(Clone)]
pub(super) struct Consuming {
    pub(super) broker: Broker,
    pub(super) ending: Ending,
}

/// Nothing here is spawned: a call that its caller drops is dropped with all it waits for, and the broker hears of it.
#[tonic::async_trait]
impl ConsumeService for Consuming {
    type ConsumeStream = Frames;

    async fn consume(&self, request: Request<Streaming<wire::ConsumeRequest>>) -> Result<Response<Frames>, Status> {
        Ok(Response::new(stream::open(self.broker.clone(), request.into_inner(), self.ending.clone())))
    }

    async fn fetch(&self, request: Request<wire::FetchRequest>) -> Result<Response<wire::FetchResponse>, Status> {
        answered(calls::fetch(&self.broker, request.into_inner()).await)
    }

    async fn settle(&self, request: Request<wire::SettleRequest>) -> Result<Response<wire::SettleResponse>, Status> {
        let request = request.into_inner();
        answered(
            async { calls::settle(&self.broker, decode::session(request.session)?, request.settlements).await }.await,
        )
    }

    async fn extend(&self, request: Request<wire::ExtendRequest>) -> Result<Response<wire::ExtendResponse>, Status> {
        let request = request.into_inner();
        answered(
            async { calls::extend(&self.broker, decode::session(request.session)?, &request.extensions).await }.await,
        )
    }

    async fn heartbeat(
        &self,
        request: Request<wire::HeartbeatRequest>,
    ) -> Result<Response<wire::HeartbeatResponse>, Status> {
        answered(calls::heartbeat(&self.broker, request.into_inner()).await)
    }

    async fn begin(&self, request: Request<wire::BeginRequest>) -> Result<Response<wire::BeginResponse>, Status> {
        let request = request.into_inner();
        let lease = decode::lease(request.epoch, request.offset);
        answered(async { calls::begin(&self.broker, decode::session(request.session)?, lease).await }.await)
    }

    async fn complete(
        &self,
        request: Request<wire::CompleteRequest>,
    ) -> Result<Response<wire::CompleteResponse>, Status> {
        let mut request = request.into_inner();
        let session = request.session.take();
        answered(async { calls::complete(&self.broker, decode::session(session)?, request).await }.await)
    }

    async fn leave(&self, request: Request<wire::LeaveRequest>) -> Result<Response<wire::LeaveResponse>, Status> {
        answered(async { calls::leave(&self.broker, decode::session(request.into_inner().session)?).await }.await)
    }
}

fn answered<T>(answer: Result<T, Refusal>) -> Result<Response<T>, Status> {
    answer.map(Response::new).map_err(|refusal| status::status(&refusal))
}
