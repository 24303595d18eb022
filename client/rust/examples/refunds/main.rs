//! The refund story: workers die, the broker dies, and each refund is paid once.
//!
//! `refunds` alone conducts it; the other words are its actors, each a process of its own:
//! `provider FILE`, `worker ENDPOINT PROVIDER NAME MOOD`, `reconciler ENDPOINT PROVIDER`.

mod actors;
mod bank;
mod conductor;
mod ledger;
mod stage;

use std::process::ExitCode;

/// Tenant of the story.
const TENANT: &str = "acme";
/// The policy its channel is of; the channel is `acme:desk`.
const POLICY: &str = "task_events";
/// The group of its workers.
const GROUP: &str = "refunders";

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [] => conductor::run().await,
        ["provider", file] => bank::serve(file).await,
        ["worker", endpoint, provider, name, mood] => actors::worker(endpoint, provider, name, mood).await,
        ["reconciler", endpoint, provider] => actors::reconciler(endpoint, provider).await,
        _ => Err("refunds | provider FILE | worker ENDPOINT PROVIDER NAME MOOD | reconciler ENDPOINT PROVIDER".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("refunds: {error}");
            ExitCode::FAILURE
        }
    }
}
