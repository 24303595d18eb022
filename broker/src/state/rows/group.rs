//! `groups`: `group number: u32` -> [`GroupRow`]. One a group; written when its books change. All are in memory.

use crate::model::{GroupCounts, GroupNo, GroupSpec, Lsn, PolicyNo, UnixMillis};
use serde::{Deserialize, Serialize};

/// A group and its books.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct GroupRow {
    pub(crate) spec: GroupSpec,
    pub(crate) policy: PolicyNo,
    pub(crate) made_at: UnixMillis,
    /// Fixes the start of a group that begins with the latest.
    pub(crate) made_lsn: Lsn,
    pub(crate) counts: GroupCounts,
}

pub(crate) fn group_key(no: GroupNo) -> Vec<u8> {
    no.get().to_be_bytes().to_vec()
}
