//! Keyed hashes of names. 128 bits under a key of the data folder's own stand for the name itself: no verifying read
//! follows, and nobody outside can make two names meet.

use crate::journal::entry::{ExecutionHash, PairHash, TaskHash};
use crate::model::{FinalState, PolicyNo};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;

/// Bits of an execution's hash that come from its tenant alone.
const TENANT_BITS: u32 = 40;

/// Makes hashes under the key of one data folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameHasher {
    key: u128,
}

impl NameHasher {
    /// The hasher of the folder with this journal id.
    pub(crate) const fn new(journal_id: u128) -> Self {
        Self { key: journal_id }
    }

    pub(crate) fn task(self, task_id: &str) -> TaskHash {
        self.parts(b't', &[task_id.as_bytes()])
    }

    pub(crate) fn message(self, message_id: &str) -> u128 {
        self.parts(b'm', &[message_id.as_bytes()])
    }

    /// Begins with 40 bits of the tenant's hash, so that one tenant's executions are one range of keys.
    pub(crate) fn execution(self, tenant: &str, execution_id: &str) -> ExecutionHash {
        let own = self.parts(b'x', &[tenant.as_bytes(), execution_id.as_bytes()]);
        self.execution_prefix(tenant) | (own >> TENANT_BITS)
    }

    /// The first of the range of a tenant's executions.
    pub(crate) fn execution_prefix(self, tenant: &str) -> ExecutionHash {
        let low = 128 - TENANT_BITS;
        (self.parts(b'n', &[tenant.as_bytes()]) >> low) << low
    }

    /// The bytes with which the keys of a tenant's executions begin.
    pub(crate) fn execution_prefix_bytes(self, tenant: &str) -> Vec<u8> {
        let bytes = self.execution_prefix(tenant).to_be_bytes();
        bytes.iter().take(TENANT_BITS as usize / 8).copied().collect()
    }

    pub(crate) fn pair(self, tenant: &str, policy: PolicyNo, execution_id: &str, state: FinalState) -> PairHash {
        self.parts(
            b'p',
            &[tenant.as_bytes(), &policy.get().to_be_bytes(), execution_id.as_bytes(), state.name().as_bytes()],
        )
    }

    /// Hash of what a repeat may not change: payload, content type and artifact_ref.
    pub(crate) fn body(self, payload: &[u8], content_type: &str, artifact_ref: &str) -> u64 {
        let folded = self.parts(b'b', &[payload, content_type.as_bytes(), artifact_ref.as_bytes()]);
        u64::try_from(folded >> 64).unwrap_or_default()
    }

    /// Each part with its length, under a letter of its own kind, so that no two lists of parts read the same.
    fn parts(self, kind: u8, parts: &[&[u8]]) -> u128 {
        let mut hasher = SipHasher24::new_with_key(&self.key.to_le_bytes());
        hasher.write_u8(kind);
        for part in parts {
            hasher.write_u64(part.len() as u64);
            hasher.write(part);
        }
        hasher.finish128().as_u128()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_names_do_not_meet() {
        let hash = NameHasher::new(7);
        assert_ne!(hash.execution("a", "bc"), hash.execution("ab", "c"));
        assert_ne!(
            hash.pair("t", PolicyNo(1), "x", FinalState::Failed),
            hash.pair("t", PolicyNo(1), "x", FinalState::Completed)
        );
        assert_ne!(hash.task("a"), NameHasher::new(8).task("a"), "each folder has its own key");
    }

    #[test]
    fn executions_of_a_tenant_share_a_prefix() {
        let hash = NameHasher::new(7);
        let prefix = hash.execution_prefix_bytes("acme");
        assert!(hash.execution("acme", "x1").to_be_bytes().starts_with(&prefix));
        assert!(!hash.execution("other", "x1").to_be_bytes().starts_with(&prefix));
    }
}
