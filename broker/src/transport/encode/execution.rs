//! The ledger's picture of an execution.

use super::{execution_state, final_state_or_none, group_ref, message_ref};
use crate::model::{
    BeginInfo, DeliveryInfo, Effect, EndedAs, Execution, Explanation, FinalState, Remark, RemarkKind, Verdict,
};
use weir_proto::server as wire;

/// An execution's row.
pub(crate) fn execution(execution: Execution) -> wire::Execution {
    wire::Execution {
        tenant: execution.tenant,
        execution_id: execution.execution_id,
        task_id: execution.task_id,
        task_mismatch: execution.task_mismatch,
        state: execution_state(execution.state).into(),
        reason: execution.unknown_reason.map(|reason| reason.name().to_owned()).unwrap_or_default(),
        since_unix_ms: execution.since.get(),
        first_seen_unix_ms: execution.first_seen.get(),
        artifact_ref: execution.artifact_ref,
        no_artifact: execution.no_artifact,
        contradiction: execution.contradiction,
        effect: effect(execution.effect).into(),
        request: execution.request.map(message_ref),
        report: execution.report.map(message_ref),
        standing_begin: execution.begin.map(begin),
        begins: execution.begins,
        begins_withdrawn: execution.begins_withdrawn,
        publish_attempts: execution.publish_attempts,
        duplicates: execution.duplicates,
        payload_mismatches: execution.payload_mismatches,
        deliveries: execution.deliveries.into_iter().map(delivery).collect(),
        deliveries_total: execution.deliveries_total,
        remarks: execution.remarks.into_iter().map(remark).collect(),
    }
}

/// An execution's story.
pub(crate) fn explanation(explanation: Explanation) -> wire::ExplainExecutionResponse {
    let story = explanation.story.into_iter();
    wire::ExplainExecutionResponse {
        execution: Some(execution(explanation.execution)),
        story: story.map(|(at, text)| wire::StoryLine { at_unix_ms: at.get(), text }).collect(),
        verdict: verdict(explanation.verdict).into(),
        summary: explanation.summary,
    }
}

fn begin(begin: BeginInfo) -> wire::ExecutionBegin {
    wire::ExecutionBegin {
        group: Some(group_ref(begin.group)),
        member: begin.member,
        epoch: begin.epoch.get(),
        fencing_token: begin.token.get(),
        at_unix_ms: begin.at.get(),
        live: begin.live,
    }
}

fn delivery(delivery: DeliveryInfo) -> wire::ExecutionDelivery {
    wire::ExecutionDelivery {
        group: Some(group_ref(delivery.group)),
        member: delivery.member,
        epoch: delivery.epoch.get(),
        attempt: delivery.attempt,
        at_unix_ms: delivery.at.get(),
        begun: delivery.begun,
        end: delivery.ended.map_or(wire::LeaseEnd::Unspecified, |(how, _)| lease_end(how)).into(),
        ended_unix_ms: delivery.ended.map_or(0, |(_, at)| at.get()),
    }
}

const fn lease_end(ended: EndedAs) -> wire::LeaseEnd {
    match ended {
        EndedAs::Done => wire::LeaseEnd::Done,
        EndedAs::Released => wire::LeaseEnd::Released,
        EndedAs::Retried => wire::LeaseEnd::Retried,
        EndedAs::Rejected => wire::LeaseEnd::Rejected,
        EndedAs::Unknown => wire::LeaseEnd::Unknown,
        EndedAs::Lost => wire::LeaseEnd::Lost,
    }
}

fn remark(remark: Remark) -> wire::ExecutionRemark {
    let (kind, state, reason) = remark_kind(remark.kind);
    let text = match (reason, remark.text.is_empty()) {
        ("", _) => remark.text,
        (reason, true) => reason.to_owned(),
        (reason, false) => format!("{reason}: {}", remark.text),
    };
    wire::ExecutionRemark {
        at_unix_ms: remark.at.get(),
        kind: kind.into(),
        final_state: final_state_or_none(state).into(),
        text,
    }
}

/// The kind, the state it is about, and the word its text begins with.
const fn remark_kind(kind: RemarkKind) -> (wire::ExecutionRemarkKind, Option<FinalState>, &'static str) {
    use wire::ExecutionRemarkKind as Kind;
    match kind {
        RemarkKind::BecameUnknown(reason) => (Kind::BecameUnknown, None, reason.name()),
        RemarkKind::Late(state) => (Kind::Late, Some(state), ""),
        RemarkKind::Fenced(state) => (Kind::Fenced, Some(state), ""),
        RemarkKind::Contradicting(state) => (Kind::Contradicting, Some(state), ""),
        RemarkKind::Ignored(state) => (Kind::Ignored, Some(state), ""),
        RemarkKind::Resolved(state) => (Kind::Resolved, state, ""),
        RemarkKind::NotExecuted => (Kind::NotExecuted, None, ""),
        RemarkKind::Expired => (Kind::Expired, None, ""),
    }
}

const fn effect(effect: Effect) -> wire::Effect {
    match effect {
        Effect::Unspecified => wire::Effect::Unspecified,
        Effect::None => wire::Effect::None,
        Effect::Idempotent => wire::Effect::Idempotent,
        Effect::Unsafe => wire::Effect::Unsafe,
    }
}

const fn verdict(verdict: Verdict) -> wire::Verdict {
    match verdict {
        Verdict::EffectOnce => wire::Verdict::EffectOnce,
        Verdict::EffectRepeated => wire::Verdict::EffectRepeated,
        Verdict::ReportedOnly => wire::Verdict::ReportedOnly,
        Verdict::NoEffectReported => wire::Verdict::NoEffectReported,
        Verdict::EffectUnknown => wire::Verdict::EffectUnknown,
        Verdict::Contradiction => wire::Verdict::Contradiction,
        Verdict::NeverBegun => wire::Verdict::NeverBegun,
        Verdict::InProgress => wire::Verdict::InProgress,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{UnixMillis, UnknownReason};

    #[test]
    fn a_remark_about_an_unknown_begins_with_its_reason() {
        let at = UnixMillis(5);
        let kind = RemarkKind::BecameUnknown(UnknownReason::LeaseLost);
        let bare = remark(Remark { at, kind, text: String::new() });
        assert_eq!((bare.text.as_str(), bare.final_state()), ("lease_lost", wire::FinalState::Unspecified));
        let told = remark(Remark { at, kind, text: "member m".into() });
        assert_eq!(told.text, "lease_lost: member m");
        let resolved = remark(Remark { at, kind: RemarkKind::Resolved(Some(FinalState::Failed)), text: "ops".into() });
        assert_eq!((resolved.text.as_str(), resolved.final_state()), ("ops", wire::FinalState::Failed));
    }
}
