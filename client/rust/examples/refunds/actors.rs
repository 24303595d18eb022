//! The worker and the reconciler.

use crate::{Failure, GROUP, POLICY, TENANT, bank, ledger};
use std::future::pending;
use weir_client::v1::{self, Resolution};
use weir_client::{Client, ConsumerOptions, HandlerError, Job, Outcome};

/// What the story has a worker do at its first refund.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// Work.
    Well,
    /// Begin, and hang before it pays.
    HangsBeforePaying,
    /// Pay, and hang before it completes.
    HangsAfterPaying,
}

/// A worker: begins (which the client library does), pays, completes (which the library does again).
pub(crate) async fn worker(endpoint: &str, provider: &str, name: &str, mood: &str) -> Result<(), Failure> {
    let mood = match mood {
        "well" => Mood::Well,
        "hangs-before-paying" => Mood::HangsBeforePaying,
        "hangs-after-paying" => Mood::HangsAfterPaying,
        other => return Err(format!("no such mood: {other}").into()),
    };
    let options = ConsumerOptions::new(TENANT, POLICY, GROUP, name).session_timeout_ms(2_000).concurrency(1);
    let provider = provider.to_owned();
    let worker = Client::connect(endpoint)?.worker(options, move |job| refund(job, provider.clone(), mood));
    Ok(worker.run().await?)
}

async fn refund(job: Job, provider: String, mood: Mood) -> Result<Outcome, HandlerError> {
    // Without a token nobody was told to act: this is an event of the task, such as the result weir stored.
    if job.fencing_token.is_none() {
        return Ok(Outcome::done());
    }
    let execution = job.message().execution_id.clone();
    println!("begun {execution}");
    if mood == Mood::HangsBeforePaying {
        return pending().await;
    }
    let amount = std::str::from_utf8(&job.message().payload).ok().and_then(|text| text.parse().ok());
    let amount = amount.ok_or_else(|| HandlerError::failed("the request names no amount"))?;
    let receipt = bank::pay(&provider, &execution, amount).await.map_err(HandlerError::failed)?;
    println!("paid {execution}");
    if mood == Mood::HangsAfterPaying {
        return pending().await;
    }
    Ok(Outcome::completed(receipt))
}

/// The reconciler: for each execution that is UNKNOWN it asks the provider by execution id, and tells the broker.
pub(crate) async fn reconciler(endpoint: &str, provider: &str) -> Result<(), Failure> {
    let client = Client::connect(endpoint)?;
    for execution in ledger::unknown(&client).await? {
        let id = execution.execution_id;
        let (resolution, artifact_ref, evidence) = match bank::find(provider, &id).await? {
            Some(receipt) => (Resolution::Completed, receipt, "the provider has a payment for it"),
            None => (Resolution::NotExecuted, String::new(), "the provider knows of no payment"),
        };
        let request = v1::ResolveExecutionRequest {
            tenant: TENANT.into(),
            execution_id: id.clone(),
            resolution: resolution.into(),
            evidence: evidence.into(),
            by: "reconciler".into(),
            artifact_ref,
        };
        client.execution_service().resolve_execution(request).await?;
        println!("{id}: {evidence} -> {}", resolution.as_str_name().trim_start_matches("RESOLUTION_"));
    }
    Ok(())
}
