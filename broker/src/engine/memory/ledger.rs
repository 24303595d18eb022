//! How an execution's row moves (design, section 7). Each function is one fact taking effect.

use super::Memory;
use crate::engine::head::MessageHead;
use crate::journal::entry::ExecutionHash;
use crate::model::{
    ChannelNo, EndedAs, Epoch, ExecutionState, FinalState, Offset, RemarkKind, UnixMillis, UnknownReason,
};
use crate::state::rows::{BeginRow, DeliveryRecord, ExecutionRow, RequestRow};

/// Where and when a message was stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub(super) channel: ChannelNo,
    pub(super) offset: Offset,
    pub(super) at: UnixMillis,
}

impl Memory {
    /// A message about an execution was stored.
    pub(super) fn message_about(&mut self, execution: ExecutionHash, tenant: &str, head: &MessageHead, stored: Stored) {
        let Some(execution_id) = head.execution_id.as_deref() else { return };
        let row = self.execution_row(execution);
        let row = row.get_or_insert_with(|| {
            ExecutionRow::new(
                tenant.to_owned(),
                execution_id.to_owned(),
                head.task_id.to_string(),
                stored.channel,
                stored.at,
            )
        });
        row.publish_attempts += 1;
        row.task_mismatch |= *row.task_id != *head.task_id;
        row.requests += u32::from(head.is_request);
        if head.is_request && row.request.is_none() {
            row.request = Some(RequestRow { channel: stored.channel, offset: stored.offset, deadline: head.deadline });
            row.effect = head.effect;
        }
        let before = row.state;
        if let Some(state) = head.final_state {
            report(row, state, &head.artifact_ref, Some((stored.channel, stored.offset)), stored.at);
        }
        let after = row.state;
        self.count_unknown(before, after);
    }

    /// A repeat about an execution came.
    pub(super) fn repeat_about(&mut self, execution: ExecutionHash, mismatch: bool, at: UnixMillis) {
        if let Some(row) = self.execution_row(execution) {
            row.repeated_at = at;
            row.publish_attempts += 1;
            row.duplicates += 1;
            row.payload_mismatches += u64::from(mismatch);
        }
    }

    /// Its request was handed out.
    pub(super) fn delivered(&mut self, execution: ExecutionHash, record: DeliveryRecord) {
        if let Some(row) = self.execution_row(execution) {
            row.note_delivery(record);
        }
    }

    /// A lease on its request is over.
    pub(super) fn delivery_ended(&mut self, execution: ExecutionHash, epoch: Epoch, ended: EndedAs, at: UnixMillis) {
        let Some(row) = self.execution_row(execution) else { return };
        if let Some(delivery) = row.deliveries.iter_mut().rev().find(|d| d.epoch == epoch) {
            delivery.ended = Some((ended, at));
        }
        if let Some(begin) = row.begin.as_mut().filter(|b| b.epoch == epoch) {
            begin.live = false;
        }
    }

    /// A lease on its request goes on under another epoch.
    pub(super) fn delivery_moved(&mut self, execution: ExecutionHash, from: Epoch, to: Epoch, member: &str) {
        let Some(row) = self.execution_row(execution) else { return };
        if let Some(delivery) = row.deliveries.iter_mut().rev().find(|d| d.epoch == from) {
            delivery.epoch = to;
            member.clone_into(&mut delivery.member);
        }
        if let Some(begin) = row.begin.as_mut().filter(|b| b.epoch == from) {
            begin.epoch = to;
            member.clone_into(&mut begin.member);
        }
    }

    /// A begin was answered OK.
    pub(super) fn begun(&mut self, execution: ExecutionHash, begin: BeginRow, effect: crate::model::Effect) {
        let Some(row) = self.execution_row(execution) else { return };
        let before = row.state;
        if let Some(delivery) = row.deliveries.iter_mut().rev().find(|d| d.epoch == begin.epoch) {
            delivery.begun = true;
        }
        row.begins += 1;
        row.effect = effect;
        row.enter(ExecutionState::Begun, begin.at);
        row.begin = Some(begin);
        self.count_unknown(before, ExecutionState::Begun);
    }

    /// The standing begin is withdrawn by its holder.
    pub(super) fn begin_withdrawn(&mut self, execution: ExecutionHash, at: UnixMillis) {
        let Some(row) = self.execution_row(execution) else { return };
        let before = row.state;
        let Some(begin) = row.begin.take() else { return };
        row.begins_withdrawn += 1;
        row.remark(at, RemarkKind::NotExecuted, format!("{} says that nothing happened", begin.member));
        if row.state.definite().is_none() {
            row.enter(ExecutionState::Requested, at);
        }
        let after = row.state;
        self.count_unknown(before, after);
    }

    /// Nobody knows what became of it.
    pub(super) fn became_unknown(
        &mut self,
        execution: ExecutionHash,
        reason: UnknownReason,
        text: &str,
        at: UnixMillis,
    ) {
        let Some(row) = self.execution_row(execution) else { return };
        if row.state.definite().is_some() {
            return;
        }
        let before = row.state;
        row.enter(ExecutionState::Unknown, at);
        row.unknown_reason = Some(reason);
        row.remark(at, RemarkKind::BecameUnknown(reason), text);
        self.count_unknown(before, ExecutionState::Unknown);
    }

    /// A result that no message carries here, or that came late.
    pub(super) fn reported(
        &mut self,
        execution: ExecutionHash,
        state: FinalState,
        artifact_ref: &str,
        late: bool,
        text: &str,
        at: UnixMillis,
    ) {
        let Some(row) = self.execution_row(execution) else { return };
        let before = row.state;
        if late {
            row.remark(at, RemarkKind::Late(state), text);
        }
        // A message that carries it has told of a contradiction by itself.
        if row.state.definite().is_none() {
            report(row, state, artifact_ref, None, at);
        }
        let after = row.state;
        self.count_unknown(before, after);
    }

    /// A result of a begin that does not stand.
    pub(super) fn report_fenced(&mut self, execution: ExecutionHash, state: FinalState, text: &str, at: UnixMillis) {
        if let Some(row) = self.execution_row(execution) {
            row.completed_refused |= state == FinalState::Completed;
            row.remark(at, RemarkKind::Fenced(state), text);
        }
    }

    /// An operator ends an UNKNOWN.
    pub(super) fn resolved(
        &mut self,
        execution: ExecutionHash,
        state: Option<FinalState>,
        artifact_ref: &str,
        text: String,
        at: UnixMillis,
    ) {
        let Some(row) = self.execution_row(execution) else { return };
        let before = row.state;
        row.remark(at, RemarkKind::Resolved(state), text);
        match state {
            Some(state) => report(row, state, artifact_ref, None, at),
            None => {
                row.begins_withdrawn += u32::from(row.begin.take().is_some());
                row.enter(ExecutionState::Requested, at);
            }
        }
        let after = row.state;
        self.count_unknown(before, after);
    }

    /// Its request went before anybody began.
    pub(super) fn execution_expired(&mut self, execution: ExecutionHash, at: UnixMillis) {
        if let Some(row) = self.execution_row(execution)
            && row.state == ExecutionState::Requested
        {
            row.remark(at, RemarkKind::Expired, "its request went before anybody began");
            row.enter(ExecutionState::Expired, at);
        }
    }

    fn count_unknown(&mut self, before: ExecutionState, after: ExecutionState) {
        match (before == ExecutionState::Unknown, after == ExecutionState::Unknown) {
            (false, true) => self.unknown_entered += 1,
            (true, false) => self.unknown_left += 1,
            _ => {}
        }
    }
}

/// A final state arrives. The first definite one wins; UNKNOWN replaces nothing definite.
fn report(
    row: &mut ExecutionRow,
    state: FinalState,
    artifact_ref: &str,
    place: Option<(ChannelNo, Offset)>,
    at: UnixMillis,
) {
    match (row.state.definite(), state.is_definite()) {
        (Some(_), false) => row.remark(at, RemarkKind::Ignored(state), "reported after a definite state"),
        (None, false) if row.state == ExecutionState::Unknown => {}
        (None, false) => {
            row.enter(ExecutionState::Unknown, at);
            row.unknown_reason = Some(UnknownReason::Reported);
            row.remark(at, RemarkKind::BecameUnknown(UnknownReason::Reported), "reported as UNKNOWN");
        }
        (None, true) => {
            row.enter(state.into(), at);
            artifact_ref.clone_into(&mut row.artifact_ref);
            row.no_artifact = state == FinalState::Completed && artifact_ref.is_empty();
            row.report = place;
        }
        (Some(first), true) if first == state => row.report = row.report.or(place),
        (Some(first), true) => {
            row.contradiction = true;
            row.remark(
                at,
                RemarkKind::Contradicting(state),
                format!("{} reported after {}", state.name(), first.name()),
            );
        }
    }
}
