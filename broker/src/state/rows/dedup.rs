//! `dedup`: `hash of (tenant, policy, execution id, final state): u128` -> [`DedupRow`]. Written with the first message
//! that carries the pair; goes with the execution (`remember`).

use crate::journal::entry::{ExecutionHash, PairHash};
use crate::model::{ChannelNo, Offset, UnixMillis};
use serde::{Deserialize, Serialize};

/// The first message that carried a pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DedupRow {
    pub(crate) channel: ChannelNo,
    pub(crate) offset: Offset,
    pub(crate) execution: ExecutionHash,
    pub(crate) first_seen: UnixMillis,
    pub(crate) last_seen: UnixMillis,
    /// Hash of payload, content type and artifact_ref.
    pub(crate) body: u64,
    pub(crate) message_id: String,
}

pub(crate) fn pair_key(pair: PairHash) -> Vec<u8> {
    pair.to_be_bytes().to_vec()
}
