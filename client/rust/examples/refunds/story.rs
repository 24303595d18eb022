//! The story itself, step by step.

use crate::process::{Process, until};
use crate::refund::{REFUNDS, Refund, channel, money, of_execution};
use crate::report::report;
use crate::worker::Mood;
use crate::{Failure, SESSION_TIMEOUT_MS, ledger};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};
use weir_client::v1::{Execution, ExecutionState, LeaseEnd};
use weir_client::{Client, PublisherOptions};

/// Tells the story in a fresh folder, and cleans up; after a failure the folder is kept and named.
pub(crate) async fn run() -> Result<(), Failure> {
    let folder = Folder::new()?;
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // Whichever way the story ends, its processes have ended before the folder goes.
    tokio::select! {
        told = tell(folder.path()) => told?,
        _ = interrupt.recv() => return Err("interrupted".into()),
        _ = terminate.recv() => return Err("terminated".into()),
    }
    folder.remove()
}

async fn tell(folder: &Path) -> Result<(), Failure> {
    println!("A shop owes {} refunds over three orders. Each must be paid once: not twice, not never.", REFUNDS.len());
    println!("The payment provider pays as often as it is told to. Workers pass refunds to it; weir is between.");
    println!("(A worker that is silent for {SESSION_TIMEOUT_MS} ms counts as lost here; by default it is 30 s.)");

    let stage = Stage::set(folder).await?;
    stage.publish().await?;
    let paid = stage.lose_a_worker("worker-1", Mood::HangsAfterPaying).await?;
    let unpaid = stage.lose_a_worker("worker-2", Mood::HangsBeforePaying).await?;
    let stage = stage.lose_the_broker(paid, unpaid).await?;
    let _worker = stage.work_on(paid, unpaid).await?;
    stage.reconcile().await?;
    stage.find_the_outcome(paid, unpaid).await?;
    stage.repeat_a_report().await?;
    report(&stage.client, &stage.provider_ledger, paid).await
}

fn step(number: u8, text: &str) {
    println!("\n{number}. {text}");
}

/// What the steps share: the provider, the broker and a way to it.
struct Stage<'a> {
    folder: &'a Path,
    provider_ledger: PathBuf,
    provider_address: String,
    _provider: Process,
    broker: Process,
    endpoint: String,
    client: Client,
}

impl<'a> Stage<'a> {
    async fn set(folder: &'a Path) -> Result<Self, Failure> {
        let provider_ledger = folder.join("payments");
        let words = ["provider", provider_ledger.to_str().ok_or("the folder's name is no text")?];
        let mut provider = Process::of_this_program(folder, "provider", &words)?;
        let provider_address = provider.hear("listening ").await?;
        let (broker, endpoint) = Process::broker(folder, "broker-1").await?;
        let client = Client::connect(&endpoint)?;
        ledger::make_group(&client).await?;
        Ok(Self { folder, provider_ledger, provider_address, _provider: provider, broker, endpoint, client })
    }

    async fn publish(&self) -> Result<(), Failure> {
        let publisher = self.client.publisher(PublisherOptions::default())?;
        for refund in REFUNDS {
            publisher.publish(&channel(), &refund.request()).await?;
        }
        step(1, "Six requests are published. Each is confirmed once it is on disk. An order is a task: its refunds");
        println!("   are handed out one after the other, while the orders do not wait for each other.");
        Ok(())
    }

    fn worker(&self, name: &str, mood: Mood) -> Result<Process, Failure> {
        let words = ["worker", &self.endpoint, &self.provider_address, name, mood.word()];
        Process::of_this_program(self.folder, name, &words)
    }

    /// A worker begins a refund, hangs in its mood, and is killed. Returns the refund.
    async fn lose_a_worker(&self, name: &str, mood: Mood) -> Result<Refund, Failure> {
        let mut worker = self.worker(name, mood)?;
        let pays = mood == Mood::HangsAfterPaying;
        let refund = of_execution(&worker.hear(if pays { "paid " } else { "begun " }).await?)?;
        worker.kill()?;
        if pays {
            step(
                2,
                &format!("{name} begins {refund}, pays {}, and is killed before it can report.", money(refund.cents)),
            );
        } else {
            step(3, &format!("{name} begins {refund}, and is killed before it pays."));
            println!("   Seen from outside, the two look the same: begun, and then silence.");
        }
        Ok(refund)
    }

    /// The broker is killed and starts again on the same folder.
    async fn lose_the_broker(self, paid: Refund, unpaid: Refund) -> Result<Self, Failure> {
        self.broker.kill()?;
        let (broker, endpoint) = Process::broker(self.folder, "broker-2").await?;
        let client = Client::connect(&endpoint)?;
        step(4, "The broker is killed too (SIGKILL), and starts again on the same folder. It still knows:");
        for refund in [paid, unpaid] {
            let execution = ledger::execution(&client, &refund.execution_id()).await?;
            let begin = execution.standing_begin.ok_or_else(|| format!("the begin of {refund} is gone"))?;
            println!("   {refund} was begun by {}", begin.member);
        }
        Ok(Self { broker, endpoint, client, ..self })
    }

    /// A third worker does what can be done, and returns; what was begun becomes UNKNOWN and is held.
    async fn work_on(&self, paid: Refund, unpaid: Refund) -> Result<Process, Failure> {
        let worker = self.worker("worker-3", Mood::Well)?;
        let free: Vec<Refund> =
            REFUNDS.into_iter().filter(|x| ![paid.order, unpaid.order].contains(&x.order)).collect();
        for refund in &free {
            self.until_state(*refund, ExecutionState::Completed).await?;
        }
        for refund in [paid, unpaid] {
            self.until_state(refund, ExecutionState::Unknown).await?;
        }
        let names: Vec<String> = free.iter().map(ToString::to_string).collect();
        step(5, &format!("worker-3 comes and pays what nobody has touched: {}.", names.join(" and ")));
        println!(
            "   The other two are UNKNOWN now. That is not FAILED: the money may have moved, so weir does not hand"
        );
        println!("   them out again, and holds what is behind them in their orders:");
        for refund in [paid, unpaid] {
            let behind = refund.next().ok_or("nothing is behind a refund that was begun first")?;
            let waits = ledger::execution(&self.client, &behind.execution_id()).await?;
            if waits.deliveries_total != 0 {
                return Err(format!("{behind} was handed out although {refund} is UNKNOWN").into());
            }
            println!("   {refund} is UNKNOWN, {behind} waits");
        }
        Ok(worker)
    }

    async fn reconcile(&self) -> Result<(), Failure> {
        step(6, "A reconciler asks the provider about each of them by its execution id, and tells weir:");
        let words = ["reconcile", &self.endpoint, &self.provider_address];
        let said = Process::of_this_program(self.folder, "reconciler", &words)?.finish().await?;
        said.lines().for_each(|line| println!("   {line}"));
        Ok(())
    }

    /// The orders go on: the paid refund is not paid again, the other one is.
    async fn find_the_outcome(&self, paid: Refund, unpaid: Refund) -> Result<(), Failure> {
        until("nothing is left to do", async || Ok((ledger::depth(&self.client).await? == 0).then_some(()))).await?;
        let found = self.last_delivery(paid, false).await?;
        let begun = self.last_delivery(unpaid, true).await?;
        step(7, &format!("Both orders go on. {paid} is handed to {found}, which finds the outcome and pays nothing."));
        println!("   {unpaid} is handed to {begun}, which begins it anew and pays.");
        Ok(())
    }

    /// The member to which it was delivered last and which settled it, beginning it or not.
    async fn last_delivery(&self, refund: Refund, begun: bool) -> Result<String, Failure> {
        let execution = ledger::execution(&self.client, &refund.execution_id()).await?;
        let last = execution.deliveries.last().ok_or_else(|| format!("{refund} was never delivered"))?;
        if execution.deliveries_total != 2 || last.begun != begun || last.end() != LeaseEnd::Done {
            return Err(format!("the second delivery of {refund} went otherwise: {last:?}").into());
        }
        Ok(last.member.clone())
    }

    /// A repeated report under a new message id is answered with the first one's place.
    async fn repeat_a_report(&self) -> Result<(), Failure> {
        let [.., refund] = REFUNDS;
        let execution = ledger::execution(&self.client, &refund.execution_id()).await?;
        let first = execution.report.ok_or("a completed refund has no report")?.offset;
        let report = refund.report(&format!("{refund}/reported-again"), &execution.artifact_ref);
        let publisher = self.client.publisher(PublisherOptions::default())?;
        let answer = publisher.publish(&channel(), &report).await?;
        if !answer.is_duplicate() || answer.offset() != first {
            return Err(format!("the repeated report was answered {answer:?}, the first is at {first}").into());
        }
        step(8, &format!("Somebody reports {refund} as COMPLETED once more, under a new message id."));
        println!("   weir answers: a duplicate of the report at offset {first}. Nothing is stored twice.");
        Ok(())
    }

    async fn until_state(&self, refund: Refund, state: ExecutionState) -> Result<Execution, Failure> {
        until(&format!("{refund} is {}", ledger::name(state)), async || {
            let execution = ledger::execution(&self.client, &refund.execution_id()).await?;
            Ok((execution.state() == state).then_some(execution))
        })
        .await
    }
}

/// The story's own folder: the broker's data, the provider's ledger, a log a process. Kept and named unless removed.
struct Folder(Option<TempDir>);

impl Folder {
    fn new() -> Result<Self, Failure> {
        Ok(Self(Some(tempfile::Builder::new().prefix("weir-refunds-").tempdir()?)))
    }

    fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), TempDir::path)
    }

    fn remove(mut self) -> Result<(), Failure> {
        self.0.take().map_or(Ok(()), TempDir::close).map_err(Into::into)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(folder) = self.0.take() {
            // Nobody may be there to read it.
            let _ = writeln!(std::io::stderr(), "refunds: logs and data are kept in {}", folder.keep().display());
        }
    }
}
