//! Executions as records.

use crate::enums;
use crate::output::{Map, Tree};
use crate::verbs::reference;
use weir_proto::v1::{
    Execution, ExecutionBegin, ExecutionDelivery, ExecutionRemark, ExplainExecutionResponse, StoryLine,
};

/// The ledger's row.
pub(super) fn record(execution: Execution) -> Tree {
    Map::new()
        .with("tenant", execution.tenant)
        .with("execution_id", execution.execution_id)
        .with("task_id", execution.task_id)
        .with("task_mismatch", execution.task_mismatch)
        .with("state", enums::execution_state(execution.state))
        .with("reason", Tree::unless_empty(execution.reason))
        .with("since_unix_ms", execution.since_unix_ms)
        .with("first_seen_unix_ms", execution.first_seen_unix_ms)
        .with("artifact_ref", Tree::unless_empty(execution.artifact_ref))
        .with("no_artifact", execution.no_artifact)
        .with("contradiction", execution.contradiction)
        .with("effect", enums::effect(execution.effect))
        .with("request", reference::message(execution.request))
        .with("report", reference::message(execution.report))
        .with("standing_begin", execution.standing_begin.map(begin))
        .with("begins", execution.begins)
        .with("begins_withdrawn", execution.begins_withdrawn)
        .with("publish_attempts", execution.publish_attempts)
        .with("duplicates", execution.duplicates)
        .with("payload_mismatches", execution.payload_mismatches)
        .with("deliveries_total", execution.deliveries_total)
        .with("deliveries", execution.deliveries.into_iter().map(delivery).collect::<Vec<_>>())
        .with("remarks", execution.remarks.into_iter().map(remark).collect::<Vec<_>>())
        .done()
}

/// The whole story and its verdict.
pub(super) fn story(explained: ExplainExecutionResponse) -> Tree {
    Map::new()
        .with("verdict", enums::verdict(explained.verdict))
        .with("summary", explained.summary)
        .with("story", explained.story.into_iter().map(line).collect::<Vec<_>>())
        .with("execution", explained.execution.map(record))
        .done()
}

/// The verdict alone, in a word and in a line.
pub(super) fn judgement(explained: &ExplainExecutionResponse) -> Tree {
    Map::new().with("verdict", enums::verdict(explained.verdict)).with("summary", explained.summary.as_str()).done()
}

/// A line of a story.
pub(super) fn line(line: StoryLine) -> Tree {
    Map::new().with("at_unix_ms", line.at_unix_ms).with("text", line.text).done()
}

fn begin(begin: ExecutionBegin) -> Map {
    Map::new()
        .with("group", reference::group(begin.group))
        .with("member", begin.member)
        .with("epoch", begin.epoch)
        .with("fencing_token", begin.fencing_token)
        .with("at_unix_ms", begin.at_unix_ms)
        .with("live", begin.live)
}

fn delivery(delivery: ExecutionDelivery) -> Map {
    Map::new()
        .with("group", reference::group(delivery.group))
        .with("member", delivery.member)
        .with("epoch", delivery.epoch)
        .with("attempt", delivery.attempt)
        .with("at_unix_ms", delivery.at_unix_ms)
        .with("begun", delivery.begun)
        .with("end", enums::lease_end(delivery.end))
        .with("ended_unix_ms", Tree::unless_zero(delivery.ended_unix_ms))
}

fn remark(remark: ExecutionRemark) -> Map {
    Map::new()
        .with("at_unix_ms", remark.at_unix_ms)
        .with("kind", enums::remark_kind(remark.kind))
        .with("final_state", enums::final_state(remark.final_state))
        .with("text", remark.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_proto::v1::{ExecutionState, Verdict};

    #[test]
    fn a_story_tells_the_verdict_first() {
        let told = story(ExplainExecutionResponse {
            execution: Some(Execution {
                state: ExecutionState::Completed.into(),
                deliveries: vec![ExecutionDelivery::default()],
                ..Execution::default()
            }),
            verdict: Verdict::EffectOnce.into(),
            ..ExplainExecutionResponse::default()
        });
        assert_eq!(told.at("verdict"), &Tree::from("EFFECT_ONCE"));
        assert_eq!(told.at("execution.state"), &Tree::from("COMPLETED"));
        assert_eq!(told.at("execution.standing_begin"), &Tree::Null);
    }
}
