//! `executions`: `execution hash: u128` -> [`ExecutionRow`]. The ledger: one row an execution. The hash begins with 40
//! bits of the tenant's (see `engine::hash`), so that a tenant's executions are one range. Written when anything is heard
//! of the execution; goes after `remember`.

use crate::journal::entry::{ExecutionHash, PartitionKey};
use crate::model::{ChannelNo, Effect, EndedAs, Epoch, ExecutionState, Offset, RemarkKind, UnixMillis, UnknownReason};
use serde::{Deserialize, Serialize};

/// Deliveries kept in full from the beginning of a history.
pub(crate) const DELIVERIES_FIRST: usize = 4;
/// Deliveries kept in full at the end of a history.
pub(crate) const DELIVERIES_LAST: usize = 12;
/// Remarks kept; the latest replaces the one before it once full.
pub(crate) const REMARKS_MAX: usize = 16;

/// What the ledger keeps of an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExecutionRow {
    pub(crate) tenant: String,
    pub(crate) execution_id: String,
    pub(crate) task_id: String,
    pub(crate) task_mismatch: bool,
    pub(crate) state: ExecutionState,
    pub(crate) unknown_reason: Option<UnknownReason>,
    pub(crate) since: UnixMillis,
    pub(crate) first_seen: UnixMillis,
    pub(crate) artifact_ref: String,
    pub(crate) no_artifact: bool,
    pub(crate) effect: Effect,
    /// The channel of its first message.
    pub(crate) home: ChannelNo,
    /// The first stored request.
    pub(crate) request: Option<RequestRow>,
    /// Requests stored, each under a message id of its own.
    pub(crate) requests: u32,
    /// The first definite report that a message carries.
    pub(crate) report: Option<(ChannelNo, Offset)>,
    pub(crate) begin: Option<BeginRow>,
    pub(crate) begins: u32,
    pub(crate) begins_withdrawn: u32,
    pub(crate) publish_attempts: u64,
    pub(crate) duplicates: u64,
    /// When the last repeat came.
    pub(crate) repeated_at: UnixMillis,
    pub(crate) payload_mismatches: u64,
    pub(crate) deliveries: Vec<DeliveryRecord>,
    pub(crate) deliveries_total: u64,
    pub(crate) remarks: Vec<RemarkRow>,
    pub(crate) contradiction: bool,
    /// A COMPLETED is among the refused evidence.
    pub(crate) completed_refused: bool,
}

/// The stored request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestRow {
    pub(crate) channel: ChannelNo,
    pub(crate) offset: Offset,
    pub(crate) deadline: Option<UnixMillis>,
}

/// A begin that stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BeginRow {
    pub(crate) partition: PartitionKey,
    pub(crate) offset: Offset,
    pub(crate) member: String,
    /// The lease, under the epoch it has now.
    pub(crate) epoch: Epoch,
    pub(crate) token: Epoch,
    pub(crate) at: UnixMillis,
    /// Whether the lease still lives.
    pub(crate) live: bool,
}

/// One delivery of a request to an executing group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeliveryRecord {
    pub(crate) group: crate::model::GroupNo,
    pub(crate) member: String,
    pub(crate) epoch: Epoch,
    pub(crate) attempt: u32,
    pub(crate) at: UnixMillis,
    pub(crate) begun: bool,
    pub(crate) ended: Option<(EndedAs, UnixMillis)>,
}

/// Something worth telling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemarkRow {
    pub(crate) at: UnixMillis,
    pub(crate) kind: RemarkKind,
    pub(crate) text: String,
}

impl ExecutionRow {
    pub(crate) fn new(tenant: String, execution_id: String, task_id: String, home: ChannelNo, at: UnixMillis) -> Self {
        Self {
            tenant,
            execution_id,
            task_id,
            task_mismatch: false,
            state: ExecutionState::Requested,
            unknown_reason: None,
            since: at,
            first_seen: at,
            artifact_ref: String::new(),
            no_artifact: false,
            effect: Effect::Unspecified,
            home,
            request: None,
            requests: 0,
            report: None,
            begin: None,
            begins: 0,
            begins_withdrawn: 0,
            publish_attempts: 0,
            duplicates: 0,
            repeated_at: UnixMillis(0),
            payload_mismatches: 0,
            deliveries: Vec::new(),
            deliveries_total: 0,
            remarks: Vec::new(),
            contradiction: false,
            completed_refused: false,
        }
    }

    /// Moves on to `state`, if that is a change.
    pub(crate) fn enter(&mut self, state: ExecutionState, at: UnixMillis) {
        if self.state != state {
            self.state = state;
            self.since = at;
        }
        self.unknown_reason = None;
    }

    /// Notes a delivery: the first few and the last few in full, the rest as a count.
    pub(crate) fn note_delivery(&mut self, record: DeliveryRecord) {
        self.deliveries_total += 1;
        if self.deliveries.len() == DELIVERIES_FIRST + DELIVERIES_LAST {
            self.deliveries.remove(DELIVERIES_FIRST);
        }
        self.deliveries.push(record);
    }

    /// Notes a remark; once full, the latest takes the place of the one before.
    pub(crate) fn remark(&mut self, at: UnixMillis, kind: RemarkKind, text: impl Into<String>) {
        if self.remarks.len() == REMARKS_MAX {
            self.remarks.pop();
        }
        self.remarks.push(RemarkRow { at, kind, text: text.into() });
    }
}

pub(crate) fn execution_key(execution: ExecutionHash) -> Vec<u8> {
    execution.to_be_bytes().to_vec()
}
