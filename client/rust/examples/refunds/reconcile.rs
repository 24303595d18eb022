//! The reconciler: for each execution that is UNKNOWN it asks the one who knows, and tells the broker.

use crate::provider::Provider;
use crate::{Failure, TENANT, ledger};
use weir_client::Client;
use weir_client::v1::{Resolution, ResolveExecutionRequest};

/// Resolves what is UNKNOWN, once.
pub(crate) async fn run(endpoint: &str, provider: &str) -> Result<(), Failure> {
    let client = Client::connect(endpoint)?;
    let provider = Provider::at(provider);
    for execution in ledger::unknown(&client).await? {
        let id = execution.execution_id;
        let (resolution, artifact_ref, evidence) = match provider.lookup(&id).await? {
            Some(receipt) => (Resolution::Completed, receipt.clone(), format!("the provider paid it: {receipt}")),
            None => (Resolution::NotExecuted, String::new(), "the provider has no payment for it".to_owned()),
        };
        println!("{id}: {evidence} -> {}", resolution.as_str_name().trim_start_matches("RESOLUTION_"));
        let request = ResolveExecutionRequest {
            tenant: TENANT.into(),
            execution_id: id,
            resolution: resolution.into(),
            evidence,
            by: "reconciler".into(),
            artifact_ref,
        };
        client.execution_service().resolve_execution(request).await?;
    }
    Ok(())
}
