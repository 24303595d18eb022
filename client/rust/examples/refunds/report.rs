//! How it ended: a table, the story of one refund, and whether each was paid exactly once.

use crate::provider::{Payment, payments};
use crate::refund::{REFUNDS, Refund, money};
use crate::{Failure, ledger};
use std::path::Path;
use weir_client::Client;
use weir_client::v1::{ExecutionState, Verdict};

/// Prints the table, and the whole story of `told`.
///
/// # Errors
/// Unless the provider's ledger has each refund exactly once with its amount and nothing else, and the broker knows it.
pub(crate) async fn report(client: &Client, provider_ledger: &Path, told: Refund) -> Result<(), Failure> {
    let payments = payments(provider_ledger)?;
    println!();
    println!("REFUND           AMOUNT  DELIVERIES  DUPLICATES  PAYMENTS  STATE      VERDICT");
    let mut wrong = Vec::new();
    for refund in REFUNDS {
        let id = refund.execution_id();
        let story = ledger::explain(client, &id).await?;
        let verdict = story.verdict();
        let execution = story.execution.unwrap_or_default();
        let paid: Vec<&Payment> = payments.iter().filter(|payment| payment.execution_id == id).collect();
        println!(
            "{id:<15}  {:>6}  {:>10}  {:>10}  {:>8}  {:<9}  {}",
            money(refund.cents),
            execution.deliveries_total,
            execution.duplicates,
            paid.len(),
            ledger::name(execution.state()),
            verdict.as_str_name().trim_start_matches("VERDICT_"),
        );
        let once = matches!(paid.as_slice(), [payment] if payment.cents == refund.cents);
        if !once || execution.state() != ExecutionState::Completed || verdict != Verdict::EffectOnce {
            wrong.push(id);
        }
    }
    let asked: u64 = REFUNDS.iter().map(|refund| refund.cents).sum();
    let moved: u64 = payments.iter().map(|payment| payment.cents).sum();
    println!("PAYMENTS and the sum below are the provider's own ledger; the other columns are the broker's.");
    println!("Asked for: {}. Money that moved: {}.", money(asked), money(moved));

    tell_all(client, told).await?;
    if !wrong.is_empty() {
        return Err(format!("not paid exactly once: {}", wrong.join(", ")).into());
    }
    if moved != asked || payments.len() != REFUNDS.len() {
        return Err("the provider paid something nobody asked for".into());
    }
    println!();
    println!("Each of the {} refunds was paid exactly once.", REFUNDS.len());
    Ok(())
}

async fn tell_all(client: &Client, refund: Refund) -> Result<(), Failure> {
    let story = ledger::explain(client, &refund.execution_id()).await?;
    println!();
    println!("The broker can tell what became of any execution (`weirctl execution explain`). Here is {refund}:");
    let start = story.story.first().map_or(0, |line| line.at_unix_ms);
    for line in &story.story {
        println!("  {:>6} ms  {}", line.at_unix_ms.saturating_sub(start), line.text);
    }
    println!("  {}", story.summary);
    Ok(())
}
