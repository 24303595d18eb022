//! How much of a run is settled, over all members.

use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;

/// Counts up to an end.
pub(super) struct Progress {
    settled: AtomicU64,
    end: u64,
    over: watch::Sender<bool>,
}

impl Progress {
    /// With so many to go.
    pub(super) fn until(end: u64) -> Self {
        Self { settled: AtomicU64::new(0), end, over: watch::Sender::new(end == 0) }
    }

    /// So many more.
    pub(super) fn add(&self, count: u64) {
        if self.settled.fetch_add(count, Ordering::Relaxed) + count >= self.end {
            self.over.send_replace(true);
        }
    }

    /// So many are.
    pub(super) fn settled(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    /// Waits until all are.
    pub(super) async fn over(&self) {
        // It cannot fail: the sender is here.
        drop(self.over.subscribe().wait_for(|over| *over).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_over_when_the_last_is_settled() {
        let progress = Progress::until(3);
        progress.add(2);
        assert!(!*progress.over.borrow());
        progress.add(1);
        progress.over().await;
        assert_eq!(progress.settled(), 3);
        Progress::until(0).over().await;
    }
}
