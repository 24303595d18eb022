//! Entries: what a frame says happened. `engine::memory` alone gives them effect, live and at recovery alike.
//!
//! # On disk
//! A frame's entries are `version: u8` (1), then a [postcard](https://postcard.jamesmunns.com/wire-format) sequence of
//! [`Entry`]. Variants are numbered by their place in the enum: append new ones at the end, never reorder or remove.
//! The frame's checksum covers these bytes; a frame whose sum holds and whose entries do not decode was written by a
//! newer weir or is damaged, and either way refused.
//!
//! `Published` names only how many of the frame's records it covers, in order; what the engine needs of each message is
//! read from the record itself, so nothing about a message is written twice.

use crate::model::{
    ChannelNo, Effect, EndedAs, Epoch, FinalState, GoneCause, GroupNo, GroupSpec, Offset, PolicyNo, SessionId,
    SettledCause, UnixMillis, UnknownReason, policy::ChannelPolicy,
};
use serde::{Deserialize, Serialize};

/// Version of the encoding.
const VERSION: u8 = 1;

/// Hash of a task id within its channel's tenant.
pub(crate) type TaskHash = u128;
/// Hash of (tenant, execution id).
pub(crate) type ExecutionHash = u128;
/// Hash of (tenant, policy, execution id, final state).
pub(crate) type PairHash = u128;

/// A partition of a group: one task in one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct PartitionKey {
    pub(crate) group: GroupNo,
    pub(crate) channel: ChannelNo,
    pub(crate) task: TaskHash,
}

/// One lease given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    pub(crate) channel: ChannelNo,
    pub(crate) task: TaskHash,
    pub(crate) offset: Offset,
    pub(crate) epoch: Epoch,
    /// The execution of the request, for executing groups: the delivery goes into its history.
    pub(crate) execution: Option<ExecutionHash>,
}

/// Why a lease is over, and what becomes of its partition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LeaseEnd {
    /// The message is settled.
    Done,
    /// Ready again, no attempt counted.
    Released,
    /// An attempt failed; ready again at `until`.
    Failed { until: UnixMillis, reason: String },
    /// An attempt was lost; ready again at once.
    Lost,
    /// Set aside. `failed`/`lost`: whether this end counted an attempt.
    Parked { failed: bool, lost: bool, reason: String },
    /// The partition waits for the ledger. `lost`: whether this end counted an attempt.
    Held { cause: HoldCause, execution: ExecutionHash, lost: bool },
    /// The message went while it was leased.
    Gone { cause: GoneCause },
}

/// What a held partition waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum HoldCause {
    /// Its execution is UNKNOWN.
    Unknown,
    /// Its execution was begun under another lease.
    InProgress,
}

/// How a message left a backlog without a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Passed {
    Settled(SettledCause),
    Gone(GoneCause),
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Entry {
    /// A policy is declared or changed.
    PolicyPut { no: PolicyNo, policy: ChannelPolicy },
    /// A channel came to be with its first publish.
    ChannelMade { no: ChannelNo, policy: PolicyNo, tenant: String, agent: String, at: UnixMillis },
    /// The next `count` records of the frame were stored in `channel` from `first`.
    Published { channel: ChannelNo, first: Offset, count: u32, at: UnixMillis },
    /// A message about an execution was a repeat and was not stored.
    Repeated { execution: ExecutionHash, pair: Option<PairHash>, mismatch: bool, at: UnixMillis },
    /// A group is made; its start is fixed by this frame's place.
    GroupMade { no: GroupNo, spec: GroupSpec, offered: u64, at: UnixMillis },
    /// A session joined a group.
    SessionJoined { id: SessionId, group: GroupNo, member: String, instance: String, timeout_ms: u64, at: UnixMillis },
    /// A session left, was lost or was replaced. Its leases were ended by entries before this one.
    SessionEnded { id: SessionId },
    /// Leases were given. `lease_ms` 0: they live as long as the session.
    Granted { group: GroupNo, session: SessionId, lease_ms: u64, at: UnixMillis, grants: Vec<Grant> },
    /// A lease goes on under a new epoch and perhaps a new session.
    LeaseMoved { partition: PartitionKey, from: Epoch, to: Epoch, session: SessionId },
    /// A lease with its own duration was extended.
    LeaseExtended { partition: PartitionKey, epoch: Epoch, until: UnixMillis },
    /// A lease is over. `answer`: what a repeat of the settle is told; `Lost` where it was no settle.
    LeaseEnded { partition: PartitionKey, epoch: Epoch, offset: Offset, end: LeaseEnd, answer: EndedAs, at: UnixMillis },
    /// The partition's first message leaves the backlog without a lease.
    HeadPassed { partition: PartitionKey, offset: Offset, how: Passed, at: UnixMillis },
    /// The partition's first message waits for a time.
    HeadDelayed { partition: PartitionKey, offset: Offset, until: UnixMillis },
    /// The partition's first message waits for the ledger.
    HeadHeld { partition: PartitionKey, offset: Offset, cause: HoldCause, execution: ExecutionHash, at: UnixMillis },
    /// What the partition waited for is over (hold, delay or parking); it is ready again.
    HeadFreed { partition: PartitionKey, offset: Offset },
    /// "I am about to act", answered OK.
    Begun {
        execution: ExecutionHash,
        partition: PartitionKey,
        offset: Offset,
        epoch: Epoch,
        token: Epoch,
        effect: Effect,
        at: UnixMillis,
        /// Of the message it was begun with.
        deadline: Option<UnixMillis>,
    },
    /// The standing begin is withdrawn: nothing happened.
    BeginWithdrawn { execution: ExecutionHash, at: UnixMillis },
    /// Nobody knows what became of it.
    BecameUnknown { execution: ExecutionHash, reason: UnknownReason, text: String, at: UnixMillis },
    /// A result without a message of its own (its pair was stored before), or one that came late: see `late`.
    Reported {
        execution: ExecutionHash,
        state: FinalState,
        artifact_ref: String,
        late: bool,
        text: String,
        at: UnixMillis,
    },
    /// A result of a begin that does not stand, kept as evidence.
    ReportFenced { execution: ExecutionHash, state: FinalState, text: String, at: UnixMillis },
    /// An operator ends an UNKNOWN. `state` `None`: NOT_EXECUTED.
    Resolved {
        execution: ExecutionHash,
        state: Option<FinalState>,
        artifact_ref: String,
        evidence: String,
        by: String,
        at: UnixMillis,
    },
    /// The request went before anybody began.
    ExecutionExpired { execution: ExecutionHash, at: UnixMillis },
    /// The partition's first message is set aside without a lease.
    HeadParked { partition: PartitionKey, offset: Offset, reason: String, at: UnixMillis },
}

/// Why entries did not decode.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum EntryError {
    /// Written by a newer weir, or damaged.
    #[error("entries of version {0}, this weir reads {VERSION}")]
    Version(u8),
    /// Not a sequence of entries.
    #[error("entries do not decode: {0}")]
    Malformed(String),
}

/// Encodes a frame's entries.
///
/// # Errors
/// None in practice: the types hold nothing that postcard cannot write.
pub(crate) fn encode(entries: &[Entry]) -> Result<Vec<u8>, EntryError> {
    let mut bytes = Vec::with_capacity(1 + entries.len() * 64);
    bytes.push(VERSION);
    postcard::to_extend(entries, bytes).map_err(|e| EntryError::Malformed(e.to_string()))
}

/// Decodes a frame's entries.
///
/// # Errors
/// [`EntryError`] where the bytes are not exactly one sequence of entries of this version.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<Entry>, EntryError> {
    let (&version, rest) = bytes.split_first().ok_or_else(|| EntryError::Malformed("no version".to_owned()))?;
    if version != VERSION {
        return Err(EntryError::Version(version));
    }
    let (entries, tail) = postcard::take_from_bytes(rest).map_err(|e| EntryError::Malformed(e.to_string()))?;
    if tail.is_empty() { Ok(entries) } else { Err(EntryError::Malformed(format!("{} bytes too many", tail.len()))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_as_they_were() {
        let entries = vec![
            Entry::Published { channel: ChannelNo(7), first: Offset(40), count: 3, at: UnixMillis(9) },
            Entry::BecameUnknown {
                execution: 1 << 100,
                reason: UnknownReason::LeaseLost,
                text: "worker-1".to_owned(),
                at: UnixMillis(10),
            },
        ];
        let bytes = encode(&entries).unwrap();
        assert_eq!(decode(&bytes).unwrap(), entries);
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(decode(&longer).is_err(), "bytes behind the last entry are refused");
        let mut other = bytes;
        other[0] = 2;
        assert_eq!(decode(&other), Err(EntryError::Version(2)));
    }
}
