//! Questions about executions, and operators' decisions.

use super::known;
use crate::model::{ExecutionFilter, ExecutionState, FinalState, Refusal, Resolve, limits, names};
use weir_proto::server as wire;

/// Which executions to list.
pub(crate) fn execution_filter(request: &wire::ListExecutionsRequest) -> Result<ExecutionFilter, Refusal> {
    let state = match known("state", request.state)? {
        wire::ExecutionState::Unspecified => None,
        wire::ExecutionState::Requested => Some(ExecutionState::Requested),
        wire::ExecutionState::Begun => Some(ExecutionState::Begun),
        wire::ExecutionState::Completed => Some(ExecutionState::Completed),
        wire::ExecutionState::Failed => Some(ExecutionState::Failed),
        wire::ExecutionState::Canceled => Some(ExecutionState::Canceled),
        wire::ExecutionState::Rejected => Some(ExecutionState::Rejected),
        wire::ExecutionState::Unknown => Some(ExecutionState::Unknown),
        wire::ExecutionState::Expired => Some(ExecutionState::Expired),
    };
    if !request.task_id.is_empty() {
        names::check_opaque("task_id", &request.task_id)?;
    }
    Ok(ExecutionFilter {
        tenant: request.tenant.clone(),
        state,
        unfinished: request.unfinished,
        task_id: request.task_id.clone(),
    })
}

/// An operator's word about an execution.
pub(crate) fn resolve(request: wire::ResolveExecutionRequest) -> Result<Resolve, Refusal> {
    let state = match known("resolution", request.resolution)? {
        wire::Resolution::Unspecified => return Err(Refusal::invalid("resolution", "required")),
        wire::Resolution::Completed => Some(FinalState::Completed),
        wire::Resolution::Failed => Some(FinalState::Failed),
        wire::Resolution::Canceled => Some(FinalState::Canceled),
        wire::Resolution::Rejected => Some(FinalState::Rejected),
        wire::Resolution::NotExecuted => None,
    };
    names::check_opaque("by", &request.by)?;
    names::check_at_most("artifact_ref", &request.artifact_ref, limits::ARTIFACT_REF_BYTES_MAX)?;
    Ok(Resolve {
        tenant: request.tenant,
        execution_id: request.execution_id,
        state,
        artifact_ref: request.artifact_ref,
        evidence: request.evidence,
        by: request.by,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolution_names_its_decision_and_who_took_it() {
        let request = wire::ResolveExecutionRequest {
            tenant: "acme".into(),
            execution_id: "x1".into(),
            resolution: wire::Resolution::NotExecuted.into(),
            evidence: "the bank has no such transfer".into(),
            by: "ops".into(),
            artifact_ref: String::new(),
        };
        assert_eq!(resolve(request.clone()).unwrap().state, None);
        let undecided = wire::ResolveExecutionRequest { resolution: 0, ..request.clone() };
        assert_eq!(resolve(undecided).unwrap_err().field, "resolution");
        let nobody = wire::ResolveExecutionRequest { by: String::new(), ..request };
        assert_eq!(resolve(nobody).unwrap_err().field, "by");
    }

    #[test]
    fn an_unspecified_state_filters_nothing() {
        let all = wire::ListExecutionsRequest { tenant: "acme".into(), ..Default::default() };
        assert_eq!(execution_filter(&all).unwrap().state, None);
        let odd = wire::ListExecutionsRequest { state: 99, ..all };
        assert_eq!(execution_filter(&odd).unwrap_err().field, "state");
    }
}
