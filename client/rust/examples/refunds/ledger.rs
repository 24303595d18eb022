//! What is asked of the broker: its group of workers, and what its ledger says of executions.

use crate::{GROUP, POLICY, TENANT};
use std::time::Duration;
use weir_client::v1::{self, ExecutionState};
use weir_client::{Client, ClientError};

/// How long a question is asked again while the broker does not answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Executions that are UNKNOWN.
pub(crate) async fn unknown(client: &Client) -> Result<Vec<v1::Execution>, ClientError> {
    let request = v1::ListExecutionsRequest {
        tenant: TENANT.into(),
        state: ExecutionState::Unknown.into(),
        ..Default::default()
    };
    let call = || {
        let (mut service, request) = (client.execution_service(), request.clone());
        async move { service.list_executions(request).await }
    };
    Ok(client.call(PATIENCE, call).await?.executions)
}

/// What the ledger says of one execution.
pub(crate) async fn execution(client: &Client, execution_id: &str) -> Result<v1::Execution, ClientError> {
    let request = v1::GetExecutionRequest { tenant: TENANT.into(), execution_id: execution_id.into() };
    let call = || {
        let (mut service, request) = (client.execution_service(), request.clone());
        async move { service.get_execution(request).await }
    };
    Ok(client.call(PATIENCE, call).await?.execution.unwrap_or_default())
}

/// The whole story of one execution, and the broker's verdict.
pub(crate) async fn explain(client: &Client, execution_id: &str) -> Result<v1::ExplainExecutionResponse, ClientError> {
    let request = v1::ExplainExecutionRequest { tenant: TENANT.into(), execution_id: execution_id.into() };
    let call = || {
        let (mut service, request) = (client.execution_service(), request.clone());
        async move { service.explain_execution(request).await }
    };
    client.call(PATIENCE, call).await
}

/// Makes the group of the workers.
pub(crate) async fn make_group(client: &Client) -> Result<(), ClientError> {
    let call = || {
        let mut service = client.group_service();
        async move { service.create_group(v1::CreateGroupRequest { group: Some(group()), settings: None }).await }
    };
    client.call(PATIENCE, call).await.map(drop)
}

/// Messages the group has still to settle.
pub(crate) async fn depth(client: &Client) -> Result<u64, ClientError> {
    let call = || {
        let mut service = client.group_service();
        async move { service.get_group(v1::GetGroupRequest { group: Some(group()) }).await }
    };
    Ok(client.call(PATIENCE, call).await?.group.unwrap_or_default().depth)
}

fn group() -> v1::GroupRef {
    v1::GroupRef { scope: TENANT.into(), policy: POLICY.into(), name: GROUP.into() }
}

/// The name of a state, as people write it.
pub(crate) fn name(state: ExecutionState) -> &'static str {
    state.as_str_name().trim_start_matches("EXECUTION_STATE_")
}
