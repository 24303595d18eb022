//! The leases this process works on.
//!
//! The table is what a fetch's `held` list says: a lease enters with its delivery, and leaves when its settle or complete
//! is answered or when it is known to be over. A job keeps its own handle and learns through it what became of the lease.

use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use weir_proto::v1::{Delivery, FinalState, HeldAnswer};

/// Why a job's token fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelCause {
    /// The lease is over: the message is or will be someone else's. A report of what was begun is still taken while that
    /// begin stands.
    LeaseLost,
    /// The execution was called off or passed its deadline; the lease and its report still count.
    CalledOff,
    /// The execution ended elsewhere, in this state; the lease and its report still count.
    EndedElsewhere(FinalState),
    /// This worker or subscriber is being stopped and its limit is over.
    Stopping,
}

/// The lease on one message.
#[derive(Debug)]
pub(crate) struct Lease {
    /// Of the channel that the message is in.
    pub(crate) tenant: String,
    pub(crate) offset: u64,
    /// When its delivery came.
    pub(crate) since: Instant,
    epoch: AtomicU64,
    lost: AtomicBool,
    cause: OnceLock<CancelCause>,
    /// Fires when the work should stop; [`cause`](Self::cause) says why.
    pub(crate) cancel: CancellationToken,
}

impl Lease {
    /// The epoch it has now. A lease that goes on after a reconnect may have another one than before.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Why the token fired; `Stopping` where nobody fired it but the stop.
    pub(crate) fn cause(&self) -> Option<CancelCause> {
        self.cancel.is_cancelled().then(|| self.cause.get().copied().unwrap_or(CancelCause::Stopping))
    }

    fn fire(&self, cause: CancelCause) {
        if cause == CancelCause::LeaseLost {
            self.lost.store(true, Ordering::Release);
        }
        // The first cause stays.
        let _ = self.cause.set(cause);
        self.cancel.cancel();
    }
}

/// All leases of a session, by {epoch, offset}. The lock guards look-ups only.
#[derive(Debug, Default)]
pub(crate) struct Leases(Mutex<HashMap<(u64, u64), Arc<Lease>>>);

impl Leases {
    /// Enters the lease of a delivery; its token fires with `stopping` at the latest.
    pub(crate) fn enter(&self, delivery: &Delivery, stopping: &CancellationToken) -> Arc<Lease> {
        let lease = Arc::new(Lease {
            tenant: delivery.tenant.clone(),
            offset: delivery.offset,
            since: Instant::now(),
            epoch: AtomicU64::new(delivery.epoch),
            lost: AtomicBool::new(false),
            cause: OnceLock::new(),
            cancel: stopping.child_token(),
        });
        let key = (delivery.epoch, delivery.offset);
        self.0.lock().insert(key, Arc::clone(&lease));
        lease
    }

    /// Takes out a lease whose settle or complete was answered, or that ended without one.
    pub(crate) fn leave(&self, lease: &Lease) {
        self.0.lock().remove(&(lease.epoch(), lease.offset));
    }

    /// The lease is over: takes it out and tells its job.
    pub(crate) fn lose(&self, lease: &Lease) {
        self.leave(lease);
        lease.fire(CancelCause::LeaseLost);
    }

    /// As [`lose`](Self::lose), for the leases of an epoch: all, or only the one on `offset`.
    pub(crate) fn lose_epoch(&self, epoch: u64, offset: Option<u64>) {
        for lease in self.of_epoch(epoch, offset) {
            self.lose(&lease);
        }
    }

    /// All leases are over.
    pub(crate) fn lose_all(&self) {
        let leases = std::mem::take(&mut *self.0.lock());
        for lease in leases.into_values() {
            lease.fire(CancelCause::LeaseLost);
        }
    }

    /// The work on a lease should stop, though the lease goes on.
    pub(crate) fn call_off(&self, epoch: u64, offset: u64, elsewhere: FinalState) {
        let cause = match elsewhere {
            FinalState::Unspecified => CancelCause::CalledOff,
            state => CancelCause::EndedElsewhere(state),
        };
        for lease in self.of_epoch(epoch, Some(offset)) {
            lease.fire(cause);
        }
    }

    /// Takes in what the broker says of a `held` list.
    pub(crate) fn hear(&self, answer: &HeldAnswer) {
        for kept in answer.kept.iter().filter(|kept| kept.epoch != kept.epoch_before) {
            self.rename(kept.epoch_before, kept.epoch);
        }
        for epoch in &answer.lost_epochs {
            self.lose_epoch(*epoch, None);
        }
    }

    /// The epochs in hand, each once.
    pub(crate) fn epochs(&self) -> Vec<u64> {
        let leases = self.0.lock();
        let epochs: BTreeSet<_> = leases.keys().map(|(epoch, _)| *epoch).collect();
        epochs.into_iter().collect()
    }

    /// The leases in hand, as {epoch, offset}.
    pub(crate) fn all(&self) -> Vec<(u64, u64)> {
        self.0.lock().keys().copied().collect()
    }

    fn rename(&self, before: u64, after: u64) {
        let mut leases = self.0.lock();
        let keys: Vec<_> = leases.keys().copied().filter(|(epoch, _)| *epoch == before).collect();
        for (epoch, offset) in keys {
            if let Some(lease) = leases.remove(&(epoch, offset)) {
                lease.epoch.store(after, Ordering::Release);
                leases.insert((after, offset), lease);
            }
        }
    }

    fn of_epoch(&self, epoch: u64, offset: Option<u64>) -> Vec<Arc<Lease>> {
        let leases = self.0.lock();
        match offset {
            Some(offset) => leases.get(&(epoch, offset)).cloned().into_iter().collect(),
            None => {
                let of_epoch = leases.iter().filter(|((other, _), _)| *other == epoch);
                of_epoch.map(|(_, lease)| Arc::clone(lease)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_proto::v1::KeptLease;

    fn enter(leases: &Leases, epoch: u64, offset: u64) -> Arc<Lease> {
        let delivery = Delivery { epoch, offset, ..Default::default() };
        leases.enter(&delivery, &CancellationToken::new())
    }

    #[test]
    fn a_lease_that_goes_on_under_a_new_epoch_is_settled_under_it() {
        let leases = Leases::default();
        let (kept, lost) = (enter(&leases, 4, 0), enter(&leases, 5, 1));
        let answer = HeldAnswer { kept: vec![KeptLease { epoch_before: 4, epoch: 9 }], lost_epochs: vec![5, 77] };

        leases.hear(&answer);

        assert_eq!(leases.epochs(), [9]);
        assert_eq!((kept.epoch(), kept.cause()), (9, None));
        assert_eq!(lost.cause(), Some(CancelCause::LeaseLost));
        leases.leave(&kept);
        assert!(leases.all().is_empty());
    }

    #[test]
    fn work_that_was_called_off_keeps_its_lease() {
        let leases = Leases::default();
        let lease = enter(&leases, 4, 7);

        leases.call_off(4, 7, FinalState::Completed);
        leases.call_off(4, 8, FinalState::Unspecified);

        assert_eq!(lease.cause(), Some(CancelCause::EndedElsewhere(FinalState::Completed)));
        assert!(!lease.is_lost());
        assert_eq!(leases.epochs(), [4]);
    }

    #[test]
    fn a_stop_fires_every_token() {
        let (leases, stopping) = (Leases::default(), CancellationToken::new());
        let lease = leases.enter(&Delivery::default(), &stopping);

        stopping.cancel();

        assert_eq!(lease.cause(), Some(CancelCause::Stopping));
    }
}
