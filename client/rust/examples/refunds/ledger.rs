//! What the story asks the broker.

use crate::{Failure, GROUP, POLICY, TENANT};
use std::time::Duration;
use weir_client::v1::{self, ExecutionState};
use weir_client::{Client, ClientError};

/// Longest time a question is asked again while the broker is away.
const PATIENCE: Duration = Duration::from_secs(20);

/// Executions that are UNKNOWN.
pub(crate) async fn unknown(client: &Client) -> Result<Vec<v1::Execution>, ClientError> {
    let request = v1::ListExecutionsRequest {
        tenant: TENANT.into(),
        state: ExecutionState::Unknown.into(),
        page_size: 100,
        ..Default::default()
    };
    let answer = client.call(PATIENCE, || {
        let (mut service, request) = (client.execution_service(), request.clone());
        async move { service.list_executions(request).await }
    });
    Ok(answer.await?.executions)
}

/// The whole story of an execution.
pub(crate) async fn explain(client: &Client, execution: &str) -> Result<v1::ExplainExecutionResponse, ClientError> {
    let request = v1::ExplainExecutionRequest { tenant: TENANT.into(), execution_id: execution.into() };
    client
        .call(PATIENCE, || {
            let (mut service, request) = (client.execution_service(), request.clone());
            async move { service.explain_execution(request).await }
        })
        .await
}

/// The group of the workers, as of now.
pub(crate) async fn group(client: &Client) -> Result<v1::Group, Failure> {
    let request = v1::GetGroupRequest { group: Some(group_ref()) };
    let answer = client.call(PATIENCE, || {
        let (mut service, request) = (client.group_service(), request.clone());
        async move { service.get_group(request).await }
    });
    answer.await?.group.ok_or_else(|| "the broker answered without a group".into())
}

/// Makes the group of the workers: they may begin.
pub(crate) async fn make_group(client: &Client) -> Result<(), Failure> {
    let settings = v1::GroupSettings { executes: Some(true), ..Default::default() };
    let request = v1::CreateGroupRequest { group: Some(group_ref()), settings: Some(settings) };
    client.group_service().create_group(request).await?;
    Ok(())
}

fn group_ref() -> v1::GroupRef {
    v1::GroupRef { scope: TENANT.into(), policy: POLICY.into(), name: GROUP.into() }
}
