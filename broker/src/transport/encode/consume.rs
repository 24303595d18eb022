//! Deliveries, notices, and what became of settles, begins, completes.

use super::publish::publish_result;
use super::{channel_ref, execution_state, final_state, final_state_or_none, group_ref, lease_ref, message_ref};
use crate::model::{
    BeginResult, CompleteResult, Delivery, EndedAs, GoneCause, HeldAnswer, LeaseRef, Notice, SettleResult, Waiting,
};
use crate::transport::status;
use weir_proto::server as wire;

/// A message under its lease.
pub(crate) fn delivery(delivery: Delivery) -> wire::Delivery {
    wire::Delivery {
        policy: delivery.channel.policy,
        tenant: delivery.channel.tenant,
        agent_id: delivery.channel.agent,
        offset: delivery.offset.get(),
        message: delivery.message,
        epoch: delivery.epoch.get(),
        attempt: delivery.attempt,
        acquired: delivery.acquired,
        failed: delivery.failed,
        lease_lost: delivery.lease_lost,
        published_unix_ms: delivery.published_at.get(),
        lease_expires_unix_ms: delivery.lease_expires.map_or(0, |at| at.get()),
        time_left_ms: delivery.time_left_ms,
        execution: delivery.execution.map(|hint| wire::ExecutionHint {
            state: execution_state(hint.state).into(),
            artifact_ref: hint.artifact_ref,
            since_unix_ms: hint.since.get(),
        }),
        replay: false,
        skipped: delivery.skipped.into_iter().map(skipped).collect(),
    }
}

fn skipped((cause, count): (GoneCause, u64)) -> wire::Skipped {
    let cause = match cause {
        GoneCause::Ttl => wire::GoneCause::Ttl,
        GoneCause::Deadline => wire::GoneCause::Deadline,
        GoneCause::Retention => wire::GoneCause::Retention,
        GoneCause::Trimmed => wire::GoneCause::Trimmed,
        GoneCause::Purged => wire::GoneCause::Purged,
    };
    wire::Skipped { cause: cause.into(), count }
}

/// What became of a `held` list, where the caller gave one.
pub(crate) fn held(said: bool, answer: HeldAnswer) -> Option<wire::HeldAnswer> {
    said.then(|| wire::HeldAnswer {
        kept: answer
            .kept
            .into_iter()
            .map(|(before, now)| wire::KeptLease { epoch_before: before.get(), epoch: now.get() })
            .collect(),
        lost_epochs: answer.lost.into_iter().map(|epoch| epoch.get()).collect(),
    })
}

/// Why nothing was handed out.
pub(crate) fn waiting(waiting: Waiting) -> wire::Waiting {
    let reason = match waiting {
        Waiting::Empty => wire::WaitingReason::Empty,
        Waiting::AllLeased => wire::WaitingReason::AllLeased,
        Waiting::AllParked => wire::WaitingReason::AllParked,
        Waiting::AllHeld => wire::WaitingReason::AllHeld,
        Waiting::Paused => wire::WaitingReason::Paused,
        Waiting::Quota => wire::WaitingReason::Quota,
        Waiting::AllDelayed => wire::WaitingReason::AllDelayed,
    };
    wire::Waiting { reason: reason.into() }
}

/// Something a member should know.
pub(crate) fn notice(notice: Notice) -> wire::Notice {
    use wire::notice::Kind;
    let kind = match notice {
        Notice::Assigned => Kind::Assigned(wire::Assigned {}),
        Notice::Revoked(lease) => Kind::Revoked(wire::Revoked { lease: Some(lease_ref(lease)) }),
        Notice::Cancelled { lease, state } => Kind::Cancelled(wire::Cancelled {
            lease: Some(lease_ref(lease)),
            final_state: final_state_or_none(state).into(),
        }),
        // When streams end depends on the last lease; the limit is the server's own.
        Notice::Draining => Kind::Draining(wire::Draining { deadline_unix_ms: 0 }),
        Notice::Waiting(why) => Kind::Waiting(waiting(why)),
    };
    wire::Notice { kind: Some(kind) }
}

/// One result for each lease that was to be settled, in order.
pub(crate) fn settle_results(leases: &[LeaseRef], results: Vec<SettleResult>) -> Vec<wire::SettleResult> {
    let pairs = leases.iter().zip(results);
    pairs.map(|(lease, result)| settle_result(*lease, result)).collect()
}

fn settle_result(lease: LeaseRef, result: SettleResult) -> wire::SettleResult {
    use wire::settle_result::Result;
    let result = match result {
        SettleResult::Ok => Result::Ok(wire::SettleOk {}),
        SettleResult::LeaseLost => Result::LeaseLost(lease_lost(lease)),
        SettleResult::AlreadySettled(ended) => match settled_as(ended) {
            Some(outcome) => Result::AlreadySettled(wire::AlreadySettled { outcome: outcome.into() }),
            None => Result::LeaseLost(lease_lost(lease)),
        },
        SettleResult::Refused(refusal) => Result::Refused(status::in_band(refusal)),
    };
    wire::SettleResult { epoch: lease.epoch.get(), offset: lease.offset.get(), result: Some(result) }
}

/// One result for each lease that was to go on, in order.
pub(crate) fn extend_results(leases: &[LeaseRef], results: Vec<SettleResult>) -> Vec<wire::ExtendResult> {
    let pairs = leases.iter().zip(results);
    pairs.map(|(lease, result)| extend_result(*lease, result)).collect()
}

fn extend_result(lease: LeaseRef, result: SettleResult) -> wire::ExtendResult {
    use wire::extend_result::Result;
    let result = match result {
        SettleResult::Ok => Result::Ok(wire::ExtendOk {}),
        SettleResult::LeaseLost | SettleResult::AlreadySettled(_) => Result::LeaseLost(lease_lost(lease)),
        SettleResult::Refused(refusal) => Result::Refused(status::in_band(refusal)),
    };
    wire::ExtendResult { epoch: lease.epoch.get(), offset: lease.offset.get(), result: Some(result) }
}

const fn lease_lost(lease: LeaseRef) -> wire::LeaseLost {
    wire::LeaseLost { epoch: lease.epoch.get() }
}

/// The outcome a lease was settled with; `None` if it was lost, which is no settle.
const fn settled_as(ended: EndedAs) -> Option<wire::SettleOutcome> {
    match ended {
        EndedAs::Done => Some(wire::SettleOutcome::Done),
        EndedAs::Released => Some(wire::SettleOutcome::Release),
        EndedAs::Retried => Some(wire::SettleOutcome::Retry),
        EndedAs::Rejected => Some(wire::SettleOutcome::Reject),
        EndedAs::Unknown => Some(wire::SettleOutcome::Unknown),
        EndedAs::Lost => None,
    }
}

/// Whether the worker may act.
pub(crate) fn begin_result(lease: LeaseRef, result: BeginResult) -> wire::begin_response::Result {
    use wire::begin_response::Result;
    match result {
        BeginResult::Ok { fencing_token } => Result::Granted(wire::BeginGranted { fencing_token: fencing_token.get() }),
        BeginResult::AlreadyFinal { state, artifact_ref, report } => {
            let (channel, offset) = report.unzip();
            Result::AlreadyFinal(wire::AlreadyFinal {
                final_state: final_state(state).into(),
                artifact_ref,
                channel: channel.map(channel_ref),
                offset: offset.map_or(0, |offset| offset.get()),
            })
        }
        BeginResult::InProgress { group, since } => {
            Result::InProgress(wire::InProgress { group: Some(group_ref(group)), since_unix_ms: since.get() })
        }
        BeginResult::HeldUnknown { since, reason } => {
            Result::HeldUnknown(wire::HeldUnknown { since_unix_ms: since.get(), reason: reason.name().to_owned() })
        }
        BeginResult::Expired => Result::Expired(wire::BeginExpired {}),
        BeginResult::Cancelled => Result::Cancelled(wire::BeginCancelled {}),
        BeginResult::LeaseLost => Result::LeaseLost(lease_lost(lease)),
    }
}

/// What became of an outcome.
pub(crate) fn complete_result(lease: LeaseRef, result: CompleteResult) -> wire::complete_response::Result {
    use wire::complete_response::Result;
    match result {
        CompleteResult::Accepted { late, duplicate, contradiction, results } => {
            Result::Accepted(wire::CompleteAccepted {
                late,
                duplicate: duplicate.map(message_ref),
                contradiction,
                // An outcome is answered after its sync, whatever the broker does with publishes.
                publishes: results.into_iter().map(|result| publish_result(result, true)).collect(),
            })
        }
        CompleteResult::LeaseLost => Result::LeaseLost(lease_lost(lease)),
        CompleteResult::Fenced => Result::Fenced(wire::Fenced {
            text: "the begin of this report no longer stands; it is kept as evidence and changes nothing".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ChannelRef, Epoch, ExecutionHint, ExecutionState, Offset, Reason, Refusal, UnixMillis, limits};
    use prost::Message as _;

    const LEASE: LeaseRef = LeaseRef { epoch: Epoch(3), offset: Offset(4) };

    #[test]
    fn an_answer_says_no_more_beside_a_message_and_of_an_epoch_than_is_counted() {
        let name = |bytes: usize| "n".repeat(bytes);
        let artifact_ref = name(limits::ARTIFACT_REF_BYTES_MAX);
        let (message, product) = (vec![0; 1 << 24], artifact_ref.len());
        let counted = message.len() + product + usize::try_from(limits::DELIVERY_BYTES_MAX).unwrap();
        let causes = [GoneCause::Ttl, GoneCause::Deadline, GoneCause::Retention, GoneCause::Trimmed, GoneCause::Purged];
        let most = delivery(Delivery {
            channel: ChannelRef {
                policy: name(limits::POLICY_NAME_BYTES_MAX),
                tenant: name(limits::AGENT_BYTES_MAX),
                agent: name(limits::AGENT_BYTES_MAX),
            },
            offset: Offset(u64::MAX),
            task_id: name(limits::NAME_BYTES_MAX),
            message: message.into(),
            epoch: Epoch(u64::MAX),
            attempt: u32::MAX,
            acquired: u32::MAX,
            failed: u32::MAX,
            lease_lost: u32::MAX,
            published_at: UnixMillis(u64::MAX),
            lease_expires: Some(UnixMillis(u64::MAX)),
            time_left_ms: Some(u64::MAX),
            execution: Some(ExecutionHint {
                state: ExecutionState::Unknown,
                artifact_ref,
                since: UnixMillis(u64::MAX),
            }),
            skipped: causes.map(|cause| (cause, u64::MAX)).to_vec(),
        });
        let alone = wire::FetchResponse { deliveries: vec![most], ..Default::default() };
        assert!(alone.encoded_len() <= counted, "{} of {counted}", alone.encoded_len());

        let epoch = Epoch(u64::MAX);
        let answer = HeldAnswer { kept: vec![(epoch, epoch); 10], lost: vec![epoch; 10] };
        let said = held(true, answer).unwrap().encoded_len() as u64;
        assert!(said <= 20 * limits::HELD_EPOCH_BYTES_MAX, "{said}");
    }

    #[test]
    fn each_result_names_its_lease_and_keeps_its_place() {
        let other = LeaseRef { epoch: Epoch(5), offset: Offset(6) };
        let results = vec![SettleResult::Ok, SettleResult::AlreadySettled(EndedAs::Retried)];
        let wire = settle_results(&[LEASE, other], results);
        assert_eq!((wire[0].epoch, wire[0].offset), (3, 4));
        assert!(matches!(wire[0].result, Some(wire::settle_result::Result::Ok(_))));
        assert_eq!((wire[1].epoch, wire[1].offset), (5, 6));
        let Some(wire::settle_result::Result::AlreadySettled(settled)) = &wire[1].result else { panic!("{wire:?}") };
        assert_eq!(settled.outcome(), wire::SettleOutcome::Retry);
    }

    #[test]
    fn a_lost_lease_is_no_settle_and_an_ended_one_cannot_go_on() {
        let wire = settle_result(LEASE, SettleResult::AlreadySettled(EndedAs::Lost));
        assert!(matches!(wire.result, Some(wire::settle_result::Result::LeaseLost(_))));
        let wire = extend_result(LEASE, SettleResult::AlreadySettled(EndedAs::Done));
        assert!(matches!(wire.result, Some(wire::extend_result::Result::LeaseLost(_))));
    }

    #[test]
    fn a_refused_settle_says_why_in_its_place() {
        let refusal = Refusal::new(Reason::ExecutionBegun, "say not_executed");
        let wire = settle_result(LEASE, SettleResult::Refused(refusal));
        let Some(wire::settle_result::Result::Refused(refused)) = wire.result else { panic!("not refused") };
        assert_eq!(refused.reason(), wire::ErrorReason::ExecutionBegun);
        assert!(!refused.retryable);
    }

    #[test]
    fn the_held_answer_is_absent_where_nothing_was_said() {
        assert_eq!(held(false, HeldAnswer::default()), None);
        let answer = HeldAnswer { kept: vec![(Epoch(1), Epoch(2))], lost: vec![Epoch(3)] };
        let wire = held(true, answer).unwrap();
        assert_eq!((wire.kept[0].epoch_before, wire.kept[0].epoch), (1, 2));
        assert_eq!(wire.lost_epochs, [3]);
    }
}
