//! What goes wrong in state.

/// Why the store did not answer. Every case but [`StoreError::ScanTooLong`] is for good: only opening anew heals.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StoreError {
    /// A write, a flush, a read or work in the background failed. The store keeps this first reason, takes no more
    /// checkpoints and goes on serving what it can read. Whether the checkpoint that met it is there after opening anew
    /// is not known; it is there as a whole or not at all.
    #[error("state has failed and takes no more checkpoints: {reason}")]
    Failed {
        /// What the disk or the store said.
        reason: String,
    },
    /// What is stored does not verify. weir never repairs or rebuilds state by itself.
    #[error(
        "state in {folder} is damaged: {reason}; to go back, stop weir and put in place of the whole data folder a copy \
         of it that was taken while weir was stopped"
    )]
    Damaged {
        /// The folder of the store.
        folder: String,
        /// What does not verify.
        reason: String,
    },
    /// The folder is open in another process or twice in this one.
    #[error("state in {folder} is in use: {reason}")]
    InUse {
        /// The folder of the store.
        folder: String,
        /// Who holds what.
        reason: String,
    },
    /// The store could not be opened for a cause outside of it, such as rights or a missing mount.
    #[error("state in {folder} cannot be opened: {reason}")]
    NotOpened {
        /// The folder of the store.
        folder: String,
        /// What stood in the way.
        reason: String,
    },
    /// The store was closed.
    #[error("state is closed")]
    Closed,
    /// A scan asked for more rows than go into one.
    #[error("a scan of {limit} rows is longer than the {max} that go into one")]
    ScanTooLong {
        /// Rows asked for.
        limit: usize,
        /// Rows that one scan may bring.
        max: usize,
    },
}
