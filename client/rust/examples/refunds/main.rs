//! The refund story: workers are killed, the broker is killed, and each refund is paid once.
//!
//! `refunds` conducts it. The other words are its actors, each a process of its own that the conductor starts:
//! `provider FILE`, `worker ENDPOINT PROVIDER NAME MOOD`, `reconcile ENDPOINT PROVIDER`.

mod ledger;
mod process;
mod provider;
mod reconcile;
mod refund;
mod report;
mod story;
mod worker;

use std::process::ExitCode;

/// Tenant of the story.
const TENANT: &str = "acme";
/// Agent of the story; with the tenant it is the key of its channel.
const AGENT: &str = "desk";
/// Policy of its channel, one that `weir serve` has without any configuration.
const POLICY: &str = "task_events";
/// The group of its workers.
const GROUP: &str = "refunders";
/// Silence after which the broker takes a worker for lost, in milliseconds.
const SESSION_TIMEOUT_MS: u64 = 2_000;

const USAGE: &str = "refunds [run | provider FILE | worker ENDPOINT PROVIDER NAME MOOD | reconcile ENDPOINT PROVIDER]";

/// Why a part of the story failed, in words.
type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [] | ["run"] => story::run().await,
        ["provider", file] => provider::serve(file.as_ref()).await,
        ["worker", endpoint, provider, name, mood] => worker::run(endpoint, provider, name, mood).await,
        ["reconcile", endpoint, provider] => reconcile::run(endpoint, provider).await,
        _ => Err(format!("usage: {USAGE}").into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("refunds: {error}");
            ExitCode::FAILURE
        }
    }
}
