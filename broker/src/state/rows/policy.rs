//! `policies`: `policy number: u32` -> [`PolicyRow`]. One a declared policy; written when it is declared, changed or
//! published to.

use crate::model::{Lsn, PolicyNo, policy::ChannelPolicy};
use serde::{Deserialize, Serialize};

/// A policy and its totals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PolicyRow {
    pub(crate) policy: ChannelPolicy,
    /// Messages ever published to its channels.
    pub(crate) published: u64,
    /// LSN at which the last group with start "latest" was made; 0 if none was.
    pub(crate) last_latest: Lsn,
}

pub(crate) fn policy_key(no: PolicyNo) -> Vec<u8> {
    no.get().to_be_bytes().to_vec()
}
