//! Publishing, as far as tests need it: known ids are answered as duplicates.

use super::{Asked, Fate, Script};
use prost::Message as _;
use std::sync::Arc;
use tokio_stream::Empty;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_types::{ErrorDetails, StatusExt as _};
use weir_proto::server::publish_service_server::PublishService;
use weir_proto::server::{PublishRequest, PublishStreamRequest};
use weir_proto::v1::publish_result::Outcome;
use weir_proto::v1::{
    Duplicate, Message, PublishLevel, PublishResponse, PublishResult, PublishStreamResponse, Refusal, Stored,
};

pub(super) struct Publishing(pub(super) Arc<Script>);

impl Publishing {
    fn store(&self, ids: &[String]) -> PublishResponse {
        let mut stored = self.0.stored.lock();
        let mut results = Vec::new();
        for id in ids {
            let known = stored.iter().position(|other| other == id);
            let outcome = match known {
                Some(offset) => Outcome::Duplicate(Duplicate {
                    offset: offset as u64,
                    message_id: id.clone(),
                    ..Default::default()
                }),
                None => {
                    stored.push(id.clone());
                    Outcome::Stored(Stored { offset: stored.len() as u64 - 1, durable: true })
                }
            };
            results.push(PublishResult { outcome: Some(outcome) });
        }
        PublishResponse { results, level: PublishLevel::Normal.into(), ..Default::default() }
    }
}

/// The status a refusal would come as.
pub(super) fn status(refusal: &Refusal) -> Status {
    let mut details = ErrorDetails::with_error_info(refusal.reason().name(), weir_proto::ERROR_DOMAIN, []);
    if !refusal.field.is_empty() {
        details.add_bad_request_violation(&refusal.field, &refusal.text);
    }
    if refusal.retry_after_ms > 0 {
        details.set_retry_info(Some(std::time::Duration::from_millis(refusal.retry_after_ms)));
    }
    let code = if refusal.retryable { Code::ResourceExhausted } else { Code::InvalidArgument };
    Status::with_error_details(code, &refusal.text, details)
}

#[tonic::async_trait]
impl PublishService for Publishing {
    type PublishStreamStream = Empty<Result<PublishStreamResponse, Status>>;

    async fn publish(&self, request: Request<PublishRequest>) -> Result<Response<PublishResponse>, Status> {
        let messages = request.into_inner().messages;
        let ids: Vec<_> = messages.into_iter().map(|bytes| Message::decode(bytes).unwrap().message_id).collect();
        self.0.write_down(Asked::Publish(ids.clone()));
        self.0.gate.subscribe().wait_for(|closed| !closed).await.unwrap();
        let fate = self.0.fates.lock().pop_front();
        match fate {
            None => Ok(Response::new(self.store(&ids))),
            Some(Fate::Refused(refusal)) => Err(status(&refusal)),
            Some(Fate::StoredThenCut) => {
                self.store(&ids);
                self.0.cut_connections();
                std::future::pending().await
            }
        }
    }

    async fn publish_stream(
        &self,
        _: Request<Streaming<PublishStreamRequest>>,
    ) -> Result<Response<Self::PublishStreamStream>, Status> {
        Err(Status::unimplemented("not in this script"))
    }
}
