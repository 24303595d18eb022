//! `settles`: `epoch / 256: u64` -> [`SettleBlockRow`]. How each lease of a block of epochs ended, for at least 10
//! minutes, so that a repeated settle gets the first one's answer. Epochs grow with time, so old blocks go in order.

use crate::model::{ChannelNo, EndedAs, Epoch, GroupNo, Offset, UnixMillis};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Epochs a block holds.
pub(crate) const SETTLES_PER_BLOCK: u64 = 256;

/// How one lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettledRecord {
    pub(crate) group: GroupNo,
    pub(crate) channel: ChannelNo,
    pub(crate) offset: Offset,
    pub(crate) answer: EndedAs,
}

/// The ended leases of one block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SettleBlockRow {
    /// When the last of them ended.
    pub(crate) last_at: UnixMillis,
    /// By epoch.
    pub(crate) ended: BTreeMap<Epoch, SettledRecord>,
}

/// The block of an epoch.
pub(crate) const fn settles_block(epoch: Epoch) -> u64 {
    epoch.get() / SETTLES_PER_BLOCK
}

pub(crate) fn settles_key(block: u64) -> Vec<u8> {
    block.to_be_bytes().to_vec()
}
