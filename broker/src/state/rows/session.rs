//! `sessions`: `session id: u128` -> [`SessionRow`]. Live sessions, so that leases have an owner after a restart (whose
//! liveness starts anew then). All are in memory.

use crate::model::{GroupNo, SessionId, UnixMillis};
use serde::{Deserialize, Serialize};

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionRow {
    pub(crate) group: GroupNo,
    pub(crate) member: String,
    pub(crate) instance: String,
    pub(crate) timeout_ms: u64,
    pub(crate) joined_at: UnixMillis,
    /// Earlier sessions of the same instance that it took over from, newest last; the latest few are enough to tell a
    /// process that was replaced from one that comes back.
    pub(crate) replaced: Vec<SessionId>,
}

/// Sessions remembered as replaced.
pub(crate) const REPLACED_MAX: usize = 16;

pub(crate) fn session_key(id: SessionId) -> Vec<u8> {
    id.0.to_be_bytes().to_vec()
}
