//! Sessions, settles, completes.

use super::{channel, final_state, group_ref, known, required};
use crate::model::names::EVERY_TENANT;
use crate::model::{Complete, Epoch, LeaseRef, Offset, Outcome, Refusal, SessionId, SessionRef, Settle};
use weir_proto::server as wire;

/// Who is calling.
pub(crate) fn session(session: Option<wire::Session>) -> Result<SessionRef, Refusal> {
    let session = required("session", session)?;
    let id = <[u8; 16]>::try_from(session.session_id.as_ref())
        .map_err(|_| Refusal::invalid("session.session_id", "16 random bytes"))?;
    Ok(SessionRef {
        id: SessionId(u128::from_be_bytes(id)),
        group: group_ref("session.group", session.group)?,
        member: session.member,
        instance: session.instance_id,
        timeout_ms: session.session_timeout_ms,
        held: held(session.held),
    })
}

/// The epochs that a process says it works on; `None` if it says nothing.
pub(crate) fn held(held: Option<wire::Held>) -> Option<Vec<Epoch>> {
    held.map(|held| held.epochs.into_iter().map(Epoch).collect())
}

/// The settlements of a call: at least one.
pub(crate) fn settlements(settlements: Vec<wire::Settlement>) -> Result<Vec<Settle>, Refusal> {
    if settlements.is_empty() {
        return Err(Refusal::invalid("settlements", "at least one"));
    }
    settlements.into_iter().enumerate().map(|(n, settlement)| settle(n, settlement)).collect()
}

fn settle(n: usize, settlement: wire::Settlement) -> Result<Settle, Refusal> {
    let field = |name: &str| format!("settlements[{n}].{name}");
    let reason = settlement.reason;
    let outcome = match known(&field("outcome"), settlement.outcome)? {
        wire::SettleOutcome::Unspecified => return Err(Refusal::invalid(field("outcome"), "required")),
        wire::SettleOutcome::Done => Outcome::Done,
        wire::SettleOutcome::Release => Outcome::Release,
        wire::SettleOutcome::Retry => Outcome::Retry { delay_ms: settlement.delay_ms, reason },
        wire::SettleOutcome::Reject => Outcome::Reject { reason },
        wire::SettleOutcome::Unknown => Outcome::Unknown { reason },
    };
    if settlement.delay_ms != 0 && !matches!(outcome, Outcome::Retry { .. }) {
        return Err(Refusal::invalid(field("delay_ms"), "only a retry waits"));
    }
    Ok(Settle { lease: lease(settlement.epoch, settlement.offset), outcome, not_executed: settlement.not_executed })
}

/// The extensions of a call: at least one.
pub(crate) fn extensions(extensions: &[wire::Extension]) -> Result<Vec<(LeaseRef, u64)>, Refusal> {
    if extensions.is_empty() {
        return Err(Refusal::invalid("extensions", "at least one"));
    }
    Ok(extensions.iter().map(|x| (lease(x.epoch, x.offset), x.lease_ms)).collect())
}

/// An outcome with its follow-ups. `scope` is that of the session's group.
pub(crate) fn complete(complete: wire::CompleteRequest, scope: &str) -> Result<Complete, Refusal> {
    let state = required("final_state", final_state("final_state", complete.final_state)?)?;
    let tenant = match complete.tenant {
        tenant if !tenant.is_empty() => tenant,
        _ if scope == EVERY_TENANT => {
            return Err(Refusal::invalid("tenant", "required in a group over all tenants"));
        }
        _ => scope.to_owned(),
    };
    let publishes = complete
        .publishes
        .into_iter()
        .map(|follow_up| (channel(follow_up.policy, follow_up.tenant, follow_up.agent_id), follow_up.message));
    Ok(Complete {
        lease: lease(complete.epoch, complete.offset),
        tenant,
        execution_id: complete.execution_id,
        fencing_token: Epoch(complete.fencing_token),
        final_state: state,
        artifact_ref: complete.artifact_ref,
        publishes: publishes.collect(),
    })
}

/// A lease's message.
pub(crate) const fn lease(epoch: u64, offset: u64) -> LeaseRef {
    LeaseRef { epoch: Epoch(epoch), offset: Offset(offset) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire_session() -> wire::Session {
        wire::Session {
            session_id: vec![7; 16].into(),
            group: Some(wire::GroupRef { scope: "acme".into(), policy: "task_events".into(), name: "g".into() }),
            member: "m".into(),
            instance_id: String::new(),
            held: None,
            session_timeout_ms: 0,
        }
    }

    #[test]
    fn an_absent_held_list_says_nothing_and_an_empty_one_says_none() {
        assert_eq!(session(Some(wire_session())).unwrap().held, None);
        let none = wire::Session { held: Some(wire::Held::default()), ..wire_session() };
        assert_eq!(session(Some(none)).unwrap().held, Some(vec![]));
    }

    #[test]
    fn what_is_missing_or_misshapen_is_named() {
        assert_eq!(session(None).unwrap_err().field, "session");
        let short = wire::Session { session_id: vec![7; 15].into(), ..wire_session() };
        assert_eq!(session(Some(short)).unwrap_err().field, "session.session_id");
        let lost = wire::Session { group: None, ..wire_session() };
        assert_eq!(session(Some(lost)).unwrap_err().field, "session.group");
    }

    #[test]
    fn a_settlement_says_how_the_lease_ends() {
        let good =
            wire::Settlement { epoch: 3, offset: 4, outcome: wire::SettleOutcome::Done.into(), ..Default::default() };
        let settles = settlements(vec![good.clone()]).unwrap();
        assert_eq!(settles, [Settle { lease: lease(3, 4), outcome: Outcome::Done, not_executed: false }]);

        let unspecified = wire::Settlement { outcome: 0, ..good.clone() };
        assert_eq!(settlements(vec![good.clone(), unspecified]).unwrap_err().field, "settlements[1].outcome");
        let unheard = wire::Settlement { outcome: 77, ..good.clone() };
        assert_eq!(settlements(vec![unheard]).unwrap_err().field, "settlements[0].outcome");
        let delayed = wire::Settlement { delay_ms: 1, ..good };
        assert_eq!(settlements(vec![delayed]).unwrap_err().field, "settlements[0].delay_ms");
        assert_eq!(settlements(vec![]).unwrap_err().field, "settlements");
    }

    #[test]
    fn a_complete_belongs_to_the_tenant_it_names_or_else_to_the_groups_own() {
        let request = wire::CompleteRequest {
            execution_id: "x1".into(),
            final_state: wire::FinalState::Completed.into(),
            ..Default::default()
        };
        assert_eq!(complete(request.clone(), "acme").unwrap().tenant, "acme");
        assert_eq!(complete(request.clone(), "*").unwrap_err().field, "tenant");
        let named = wire::CompleteRequest { tenant: "acme".into(), ..request.clone() };
        assert_eq!(complete(named, "*").unwrap().tenant, "acme");

        let open = wire::CompleteRequest { final_state: 0, ..request };
        assert_eq!(complete(open, "acme").unwrap_err().field, "final_state");
    }
}
