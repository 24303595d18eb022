//! Consuming by script.

use super::publish::status;
use super::{Asked, Script};
use std::sync::Arc;
use std::time::Duration;
use tokio_stream::Empty;
use tonic::{Request, Response, Status, Streaming};
use weir_proto::server::consume_service_server::ConsumeService;
use weir_proto::server::{CompleteRequest, CompleteResponse, ConsumeRequest, ConsumeResponse, FetchResponse};
use weir_proto::v1::{
    BeginGranted, BeginRequest, BeginResponse, CompleteAccepted, ExtendOk, ExtendRequest, ExtendResponse, ExtendResult,
    FetchRequest, HeartbeatRequest, HeartbeatResponse, LeaseRef, LeaveRequest, LeaveResponse, SettleOk, SettleRequest,
    SettleResponse, SettleResult, begin_response, complete_response, extend_result, settle_result,
};

pub(super) struct Consuming(pub(super) Arc<Script>);

#[tonic::async_trait]
impl ConsumeService for Consuming {
    type ConsumeStream = Empty<Result<ConsumeResponse, Status>>;

    async fn consume(&self, _: Request<Streaming<ConsumeRequest>>) -> Result<Response<Self::ConsumeStream>, Status> {
        Err(Status::unimplemented("not in this script"))
    }

    async fn fetch(&self, request: Request<FetchRequest>) -> Result<Response<FetchResponse>, Status> {
        let request = request.into_inner();
        let session = request.session.unwrap();
        let held = session.held.map(|held| held.epochs);
        self.0.write_down(Asked::Fetch(session.session_id.to_vec(), held));
        if let Some(refusal) = self.0.stale.lock().pop_front() {
            return Err(status(&refusal));
        }
        let wait = tokio::time::sleep(Duration::from_millis(request.wait_ms));
        tokio::pin!(wait);
        let answer = self.0.held.lock().pop_front();
        while self.0.ready.lock().is_empty() && answer.is_none() {
            tokio::select! {
                () = self.0.grant.notified() => {}
                () = &mut wait => break,
            }
        }
        let mut ready = self.0.ready.lock();
        let count = ready.len().min(request.max_messages as usize);
        let deliveries = ready.drain(..count).collect();
        Ok(Response::new(FetchResponse { deliveries, held: answer, ..Default::default() }))
    }

    async fn settle(&self, request: Request<SettleRequest>) -> Result<Response<SettleResponse>, Status> {
        let mut results = Vec::new();
        for settlement in request.into_inner().settlements {
            let result = self.0.settles.lock().pop_front().unwrap_or(settle_result::Result::Ok(SettleOk {}));
            let (epoch, offset) = (settlement.epoch, settlement.offset);
            self.0.write_down(Asked::Settle(settlement));
            results.push(SettleResult { epoch, offset, result: Some(result) });
        }
        self.0.lose_answer().await;
        Ok(Response::new(SettleResponse { results }))
    }

    async fn extend(&self, request: Request<ExtendRequest>) -> Result<Response<ExtendResponse>, Status> {
        let mut results = Vec::new();
        for extension in request.into_inner().extensions {
            let (epoch, offset) = (extension.epoch, extension.offset);
            self.0.write_down(Asked::Extend(LeaseRef { epoch, offset }));
            results.push(ExtendResult { epoch, offset, result: Some(extend_result::Result::Ok(ExtendOk {})) });
        }
        Ok(Response::new(ExtendResponse { results }))
    }

    async fn heartbeat(&self, request: Request<HeartbeatRequest>) -> Result<Response<HeartbeatResponse>, Status> {
        let request = request.into_inner();
        let carries_held = request.held.is_some() || request.session.is_some_and(|session| session.held.is_some());
        let notices = std::mem::take(&mut *self.0.notices.lock());
        self.0.write_down(Asked::Heartbeat(carries_held));
        Ok(Response::new(HeartbeatResponse { notices, ..Default::default() }))
    }

    async fn begin(&self, request: Request<BeginRequest>) -> Result<Response<BeginResponse>, Status> {
        let request = request.into_inner();
        let granted = begin_response::Result::Granted(BeginGranted { fencing_token: request.epoch + 100 });
        let result = self.0.begins.lock().pop_front().unwrap_or(granted);
        self.0.write_down(Asked::Begin(LeaseRef { epoch: request.epoch, offset: request.offset }));
        self.0.lose_answer().await;
        Ok(Response::new(BeginResponse { result: Some(result) }))
    }

    async fn complete(&self, request: Request<CompleteRequest>) -> Result<Response<CompleteResponse>, Status> {
        let accepted = complete_response::Result::Accepted(CompleteAccepted::default());
        let result = self.0.completes.lock().pop_front().unwrap_or(accepted);
        self.0.write_down(Asked::Complete(Box::new(request.into_inner())));
        self.0.lose_answer().await;
        Ok(Response::new(CompleteResponse { result: Some(result) }))
    }

    async fn leave(&self, _: Request<LeaveRequest>) -> Result<Response<LeaveResponse>, Status> {
        self.0.write_down(Asked::Leave);
        Ok(Response::new(LeaveResponse {}))
    }
}
