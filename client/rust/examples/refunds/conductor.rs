//! The story itself.

use crate::stage::{Actor, until};
use crate::{Failure, POLICY, TENANT, bank, ledger};
use std::path::PathBuf;
use weir_client::v1;
use weir_client::{Client, PublisherOptions};

/// Refunds of the story: order and amount.
const REFUNDS: [(&str, u64); 6] =
    [("order-1", 40), ("order-2", 15), ("order-3", 99), ("order-4", 7), ("order-5", 23), ("order-6", 61)];

fn execution(order: &str) -> String {
    format!("{order}/refund")
}

fn tell(text: &str) {
    println!("\n{text}");
}

/// A folder of the story's own, removed at a happy end.
struct Folder(PathBuf);

pub(crate) async fn run() -> Result<(), Failure> {
    let folder = Folder(std::env::temp_dir().join(format!("weir-refunds-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0)?;
    let outcome = story(&folder).await;
    match &outcome {
        Ok(()) => std::fs::remove_dir_all(&folder.0)?,
        Err(_) => eprintln!("refunds: the folder {} is kept", folder.0.display()),
    }
    outcome
}

async fn story(folder: &Folder) -> Result<(), Failure> {
    let file = folder.0.join("payments");
    println!("A desk asks for six refunds. Each has to be paid once: not twice, not never.");
    println!("(The broker takes a silent worker for lost after 2 s here; 30 s is the default.)");

    let mut provider = Actor::of_this_program(&["provider", file.to_str().ok_or("odd folder name")?])?;
    let bank_at = provider.hear("listening ").await?.trim_start_matches("listening ").to_owned();
    let data = folder.0.join("data");
    let (broker, address) = Actor::broker(&data, "127.0.0.1:0").await?;
    let endpoint = format!("http://{address}");
    let client = Client::connect(&endpoint)?;
    ledger::make_group(&client).await?;

    publish_requests(&client).await?;
    tell("1. Six requests are published to acme:desk, and synced to disk before they are confirmed.");

    let mut first = Actor::of_this_program(&["worker", &endpoint, &bank_at, "worker-1", "hangs-after-paying"])?;
    let paid = first.hear("paid ").await?;
    first.kill().await?;
    tell(&format!("2. worker-1 begins, pays, and is killed before it can say so: {paid}."));

    let mut second = Actor::of_this_program(&["worker", &endpoint, &bank_at, "worker-2", "hangs-before-paying"])?;
    let begun = second.hear("begun ").await?;
    second.kill().await?;
    tell(&format!("3. worker-2 begins another one and is killed before it pays: {begun}."));

    broker.kill().await?;
    let (_broker, _) = Actor::broker(&data, &address).await?;
    tell("4. The broker is killed too (SIGKILL), and comes back on the same folder.");

    let mut third = Actor::of_this_program(&["worker", &endpoint, &bank_at, "worker-3", "well"])?;
    third.hear("begun ").await?;
    until("four refunds are done and two are held", || async {
        Ok(ledger::unknown(&client).await?.len() == 2 && bank::payments(&file)?.len() == 5)
    })
    .await?;
    tell(
        "5. worker-3 pays the four others. The two that were begun are UNKNOWN: the broker cannot know whether the money",
    );
    println!(
        "   moved, so it holds their tasks and hands them to nobody. It does not call them failed, and does not retry."
    );
    for row in ledger::unknown(&client).await? {
        println!("   {}  {}  begun by {}", row.execution_id, row.state().as_str_name(), begun_by(&row));
    }

    tell("6. A reconciler asks the provider by execution id, and tells the broker what it found:");
    Actor::of_this_program(&["reconciler", &endpoint, &bank_at])?.play_to_its_end("   ").await?;
    until("nothing is left to do", || async { Ok(ledger::group(&client).await?.depth == 0) }).await?;
    tell(
        "7. The tasks go on. For the paid refund worker-3 finds the outcome instead of paying; the other one it pays.",
    );

    let again = repeat_a_report(&client).await?;
    tell(&format!("8. A publisher sends the report of order-3 again, under a new message id: {again}."));

    judge(&client, &file).await
}

fn begun_by(execution: &v1::Execution) -> String {
    execution.standing_begin.as_ref().map(|begin| begin.member.clone()).unwrap_or_default()
}

async fn publish_requests(client: &Client) -> Result<(), Failure> {
    let publisher = client.publisher(PublisherOptions::default())?;
    for (order, amount) in REFUNDS {
        let request = v1::Message {
            message_id: format!("{order}/request"),
            task_id: order.into(),
            agent_id: "desk".into(),
            execution_id: execution(order),
            r#type: "task.request".into(),
            intent: "refund".into(),
            effect: v1::Effect::Unsafe.into(),
            payload: amount.to_string().into_bytes().into(),
            ..Default::default()
        };
        publisher.publish(&channel(), &request).await?;
    }
    Ok(())
}

fn channel() -> v1::ChannelRef {
    v1::ChannelRef { policy: POLICY.into(), tenant: TENANT.into(), agent_id: "desk".into() }
}

async fn repeat_a_report(client: &Client) -> Result<String, Failure> {
    let report = v1::Message {
        message_id: "order-3/another-id".into(),
        task_id: "order-3".into(),
        agent_id: "bank".into(),
        execution_id: execution("order-3"),
        r#type: "task.result".into(),
        final_state: v1::FinalState::Completed.into(),
        artifact_ref: format!("receipt:{}", execution("order-3")),
        ..Default::default()
    };
    let published = client.publisher(PublisherOptions::default())?.publish(&channel(), &report).await?;
    if published.is_duplicate() {
        Ok(format!("a duplicate of message {}, nothing was stored", published.offset()))
    } else {
        Err("the repeated report was stored".into())
    }
}

/// The table, one story in full, and the verdict.
async fn judge(client: &Client, file: &std::path::Path) -> Result<(), Failure> {
    let payments = bank::payments(file)?;
    println!("\n{:<10} {:>10} {:>10} {:>8}  {:<10} VERDICT", "REFUND", "DELIVERIES", "DUPLICATES", "PAYMENTS", "STATE");
    let mut once = true;
    for (order, _) in REFUNDS {
        let story = ledger::explain(client, &execution(order)).await?;
        let row = story.execution.clone().unwrap_or_default();
        let paid = payments.get(&execution(order)).copied().unwrap_or_default();
        once &= paid == 1 && row.state() == v1::ExecutionState::Completed;
        println!(
            "{order:<10} {:>10} {:>10} {paid:>8}  {:<10} {}",
            row.deliveries_total,
            row.duplicates,
            row.state().as_str_name().trim_start_matches("EXECUTION_STATE_"),
            story.verdict().as_str_name().trim_start_matches("VERDICT_"),
        );
    }
    let story = ledger::explain(client, &execution(REFUNDS[0].0)).await?;
    println!("\nThe whole story of the first one, as `weirctl execution explain` tells it:\n{}", story.summary);
    let start = story.story.first().map_or(0, |line| line.at_unix_ms);
    for line in &story.story {
        println!("  +{:>6} ms  {}", line.at_unix_ms.saturating_sub(start), line.text);
    }
    if !once {
        return Err("a refund was not paid exactly once".into());
    }
    println!("\nEach refund was paid once.");
    Ok(())
}
