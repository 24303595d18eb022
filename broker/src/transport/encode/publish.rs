//! What became of a publish.

use super::execution_state;
use crate::model::{Duplicate, DuplicateKind, Level, PublishResult, Published};
use weir_proto::server as wire;

/// The answer to a publish. `durable` says whether the broker answers after the sync.
pub(crate) fn published(published: Published, durable: bool) -> wire::PublishResponse {
    wire::PublishResponse {
        results: published.results.into_iter().map(|result| publish_result(result, durable)).collect(),
        level: level(published.level).into(),
        depth: published.depth,
        limit: published.limit.unwrap_or(0),
        retry_after_ms: published.retry_after_ms.unwrap_or(0),
    }
}

pub(super) fn publish_result(result: PublishResult, durable: bool) -> wire::PublishResult {
    let outcome = match result {
        PublishResult::Stored(offset) => {
            wire::publish_result::Outcome::Stored(wire::Stored { offset: offset.get(), durable })
        }
        PublishResult::Duplicate(first) => wire::publish_result::Outcome::Duplicate(duplicate(*first)),
    };
    wire::PublishResult { outcome: Some(outcome) }
}

fn duplicate(first: Duplicate) -> wire::Duplicate {
    let kind = match first.kind {
        DuplicateKind::MessageId => wire::DuplicateKind::MessageId,
        DuplicateKind::Pair => wire::DuplicateKind::ExecutionPair,
    };
    wire::Duplicate {
        policy: first.channel.policy,
        tenant: first.channel.tenant,
        agent_id: first.channel.agent,
        offset: first.offset.get(),
        retained: first.retained,
        message_id: first.message_id,
        first_seen_unix_ms: first.first_seen.get(),
        payload_matches: first.payload_matches,
        kind: kind.into(),
        execution: first.execution.map(|execution| wire::ExecutionSummary {
            state: execution_state(execution.state).into(),
            execution_id: execution.execution_id,
            artifact_ref: execution.artifact_ref,
        }),
    }
}

const fn level(level: Level) -> wire::PublishLevel {
    match level {
        Level::Ok => wire::PublishLevel::Normal,
        Level::Warn => wire::PublishLevel::Warn,
        Level::Slow => wire::PublishLevel::Slow,
        Level::Full => wire::PublishLevel::Full,
    }
}
