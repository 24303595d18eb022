//! `totals`: `policy number: u32, tenant` -> [`TotalsRow`]. What a tenant ever published to a policy, so that a new group
//! knows what it is offered without visiting channels.

use crate::model::PolicyNo;
use serde::{Deserialize, Serialize};

/// Totals of one tenant in one policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TotalsRow {
    /// Messages ever published.
    pub(crate) published: u64,
}

pub(crate) fn totals_key(policy: PolicyNo, tenant: &str) -> Vec<u8> {
    let mut key = policy.get().to_be_bytes().to_vec();
    key.extend_from_slice(tenant.as_bytes());
    key
}
