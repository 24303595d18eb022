//! Counters of calls and measurements of the journal, through the `metrics` facade: nothing is counted unless a recorder
//! is installed.

use super::catalogue as m;
use crate::model::{BeginResult, ChannelRef, CompleteResult, PublishResult, Published, Refusal, SettleResult};
use metrics::{counter, histogram};
use std::time::Duration;

const RESULT: &str = "result";
const LEASE_LOST: &str = "lease_lost";

/// A publish was taken.
pub(crate) fn published(channel: &ChannelRef, published: &Published) {
    let stored = published.results.iter().filter(|result| matches!(result, PublishResult::Stored(_))).count() as u64;
    let duplicates = published.results.len() as u64 - stored;
    if stored > 0 {
        counted(m::PUBLISH_MESSAGES, channel).increment(stored);
    }
    if duplicates > 0 {
        counted(m::DUPLICATES, channel).increment(duplicates);
    }
}

fn counted(metric: m::Metric, channel: &ChannelRef) -> metrics::Counter {
    counter!(metric.name, "tenant" => channel.tenant.clone(), "policy" => channel.policy.clone())
}

/// A message that was confirmed cannot be read.
pub(crate) fn data_lost() {
    counter!(m::DATA_LOSS.name).increment(1);
}

/// The journal was synced.
pub(crate) fn journal_synced(took: Duration) {
    histogram!(m::JOURNAL_SYNC.name).record(took.as_secs_f64());
}

/// A group of so many frames was written.
pub(crate) fn group_written(frames: u32) {
    histogram!(m::GROUP_COMMIT_FRAMES.name).record(f64::from(frames));
}

/// A connection to a port (`grpc`, `http`) was one too many.
pub(crate) fn connection_refused(port: &'static str) {
    counter!(m::CONNECTIONS_REFUSED.name, "port" => port).increment(1);
}

/// A publish was refused. Its names may be anybody's invention, so only the reason is a label.
pub(crate) fn publish_rejected(refusal: &Refusal) {
    counter!(m::PUBLISH_REJECTED.name, "reason" => refusal.reason.name()).increment(1);
}

/// Settlements were answered.
pub(crate) fn settled(results: &[SettleResult]) {
    let (mut taken, mut lost, mut repeated, mut refused) = (0, 0, 0, 0);
    for result in results {
        match result {
            SettleResult::Ok => taken += 1,
            SettleResult::LeaseLost => lost += 1,
            SettleResult::AlreadySettled(_) => repeated += 1,
            SettleResult::Refused(_) => refused += 1,
        }
    }
    for (result, count) in [("ok", taken), (LEASE_LOST, lost), ("already_settled", repeated), ("refused", refused)] {
        if count > 0 {
            counter!(m::SETTLES.name, RESULT => result).increment(count);
        }
    }
    fenced("settle", lost);
}

/// A begin was answered.
pub(crate) fn begun(result: &BeginResult) {
    let word = match result {
        BeginResult::Ok { .. } => "granted",
        BeginResult::AlreadyFinal { .. } => "already_final",
        BeginResult::InProgress { .. } => "in_progress",
        BeginResult::HeldUnknown { .. } => "held_unknown",
        BeginResult::Expired => "expired",
        BeginResult::Cancelled => "cancelled",
        BeginResult::LeaseLost => LEASE_LOST,
    };
    counter!(m::BEGINS.name, RESULT => word).increment(1);
    fenced("begin", u64::from(*result == BeginResult::LeaseLost));
}

/// An outcome was answered.
pub(crate) fn completed(result: &CompleteResult) {
    let (word, over) = match result {
        CompleteResult::Accepted { contradiction: true, .. } => ("contradiction", 0),
        CompleteResult::Accepted { duplicate: Some(_), .. } => ("duplicate", 0),
        CompleteResult::Accepted { late: true, .. } => ("late", 0),
        CompleteResult::Accepted { .. } => ("accepted", 0),
        CompleteResult::LeaseLost => (LEASE_LOST, 1),
        CompleteResult::Fenced => ("fenced", 1),
    };
    counter!(m::COMPLETES.name, RESULT => word).increment(1);
    fenced("complete", over);
}

fn fenced(call: &'static str, count: u64) {
    if count > 0 {
        counter!(m::FENCED_CALLS.name, "call" => call).increment(count);
    }
}
