//! `ExecutionService`: what became of executions.

use super::paging::{Paging, token};
use super::{decode, encode, status};
use crate::broker::Broker;
use crate::model::Refusal;
use tonic::{Request, Response, Status};
use weir_proto::server::{self as wire, execution_service_server::ExecutionService};

#[derive(Clone)]
pub(super) struct Executions {
    pub(super) broker: Broker,
}

#[tonic::async_trait]
impl ExecutionService for Executions {
    async fn get_execution(
        &self,
        request: Request<wire::GetExecutionRequest>,
    ) -> Result<Response<wire::GetExecutionResponse>, Status> {
        let request = request.into_inner();
        let found = self.broker.execution(&request.tenant, &request.execution_id).await.map_err(refused)?;
        Ok(Response::new(wire::GetExecutionResponse { execution: Some(encode::execution(found)) }))
    }

    async fn list_executions(
        &self,
        request: Request<wire::ListExecutionsRequest>,
    ) -> Result<Response<wire::ListExecutionsResponse>, Status> {
        let request = request.into_inner();
        let paging = Paging::read(request.page_size, &request.page_token).map_err(refused)?;
        let filter = decode::execution_filter(&request).map_err(refused)?;
        let page = self.broker.executions(filter, paging.size, paging.after).await.map_err(refused)?;
        Ok(Response::new(wire::ListExecutionsResponse {
            executions: page.items.into_iter().map(encode::execution).collect(),
            next_page_token: page.next.map(|key| token(&key)).unwrap_or_default(),
        }))
    }

    async fn explain_execution(
        &self,
        request: Request<wire::ExplainExecutionRequest>,
    ) -> Result<Response<wire::ExplainExecutionResponse>, Status> {
        let request = request.into_inner();
        let story = self.broker.explain(&request.tenant, &request.execution_id).await.map_err(refused)?;
        Ok(Response::new(encode::explanation(story)))
    }

    async fn resolve_execution(
        &self,
        request: Request<wire::ResolveExecutionRequest>,
    ) -> Result<Response<wire::ResolveExecutionResponse>, Status> {
        let resolve = decode::resolve(request.into_inner()).map_err(refused)?;
        let execution = self.broker.resolve(resolve).await.map_err(refused)?;
        Ok(Response::new(wire::ResolveExecutionResponse { execution: Some(encode::execution(execution)) }))
    }
}

fn refused(refusal: Refusal) -> Status {
    status::status(&refusal)
}
