//! What a session works on: one entry a lease, from its delivery until its settle is answered.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use weir_proto::v1::{self, HeldAnswer, Notice, notice};

/// The leases of one session, and the token of each one's handler. Shared by the fetch loop, the heartbeat and handlers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holding(Arc<Mutex<BTreeMap<u64, Lease>>>);

#[derive(Clone, Debug)]
struct Lease {
    offset: u64,
    cancel: CancellationToken,
}

impl Holding {
    /// A lease comes into hand.
    pub(crate) fn take(&self, epoch: u64, offset: u64) -> CancellationToken {
        let cancel = CancellationToken::new();
        self.0.lock().insert(epoch, Lease { offset, cancel: cancel.clone() });
        cancel
    }

    /// Its end was answered.
    pub(crate) fn let_go(&self, epoch: u64) {
        self.0.lock().remove(&epoch);
    }

    /// The list as the broker wants it.
    pub(crate) fn list(&self) -> v1::Held {
        v1::Held { epochs: self.0.lock().keys().copied().collect() }
    }

    /// Every lease, to be extended by so much.
    pub(crate) fn extensions(&self, lease_ms: u64) -> Vec<v1::Extension> {
        self.0
            .lock()
            .iter()
            .map(|(epoch, lease)| v1::Extension { epoch: *epoch, offset: lease.offset, lease_ms })
            .collect()
    }

    /// The broker says that this lease is over: whoever works under it is told. It stays in the list until its handler is
    /// through, so that nothing begins in its place here meanwhile.
    pub(crate) fn lost(&self, epoch: u64) {
        if let Some(lease) = self.0.lock().get(&epoch) {
            lease.cancel.cancel();
        }
    }

    /// Takes in what became of a list.
    pub(crate) fn answered(&self, answer: Option<HeldAnswer>) {
        for epoch in answer.map(|answer| answer.lost_epochs).unwrap_or_default() {
            self.lost(epoch);
        }
    }

    /// Takes in notices.
    pub(crate) fn noticed(&self, notices: Vec<Notice>) {
        for kind in notices.into_iter().filter_map(|notice| notice.kind) {
            let lease = match kind {
                notice::Kind::Revoked(revoked) => revoked.lease,
                notice::Kind::Cancelled(cancelled) => cancelled.lease,
                _ => None,
            };
            if let Some(lease) = lease {
                self.lost(lease.epoch);
            }
        }
    }
}
