//! Setting up a broker.

use super::Broker;
use super::checkpointing::CheckpointPolicy;
use crate::clock::{Clock, SystemClock};
use crate::engine::{CacheLimits, EngineSettings};
use crate::fs::{FileSystem, OsFileSystem};
use crate::model::{limits, policy::ChannelPolicy};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// When a publish is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// After its bytes are synced.
    #[default]
    Always,
    /// After its bytes are written; a sync follows within this time, at most 1 s. Everything else still waits for a sync.
    Interval(Duration),
}

/// Why a broker did not open. Nothing was changed that a second try would miss.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data folder cannot be used.
    #[error("the data folder {0} cannot be used: {1}")]
    Folder(PathBuf, #[source] std::io::Error),
    /// State does not open.
    #[error("state: {0}")]
    State(String),
    /// The journal does not open.
    #[error("journal: {0}")]
    Journal(String),
    /// What is stored is not what was confirmed: a part of it is missing, does not verify or does not decode. The text names
    /// the place. Nothing was changed; the way back is a copy of the folder.
    #[error("DATA_LOSS: {0}")]
    DataLoss(String),
    /// A setting is out of bounds.
    #[error("{0}")]
    Setting(String),
    /// The system gives no thread.
    #[error("no thread: {0}")]
    Thread(#[source] std::io::Error),
}

/// A broker to be. Every setting has the default that [`BrokerBuilder::new`] names.
pub struct BrokerBuilder {
    pub(super) data_dir: PathBuf,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) fs: Arc<dyn FileSystem>,
    pub(super) engine: EngineSettings,
    pub(super) policies: Vec<ChannelPolicy>,
    pub(super) sync: SyncPolicy,
    pub(super) segment_bytes: u64,
    pub(super) spares: usize,
    pub(super) checkpoints: CheckpointPolicy,
    pub(crate) tail_bytes: usize,
    /// In place of the store in the data folder.
    #[cfg(test)]
    pub(super) store: Option<Arc<dyn crate::state::Store>>,
}

impl BrokerBuilder {
    /// On this data folder, which is made if it is missing: the machine's clock, the policies `task_events` and `events`,
    /// every publish synced, segments of 64 MiB, a session timeout of 30 s.
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            clock: Arc::new(SystemClock::new()),
            fs: Arc::new(OsFileSystem),
            engine: EngineSettings {
                session_timeout_ms: limits::SESSION_TIMEOUT_MS_DEFAULT,
                limits: CacheLimits::default(),
            },
            policies: ChannelPolicy::built_in(),
            sync: SyncPolicy::Always,
            segment_bytes: 64 * 1024 * 1024,
            spares: 2,
            checkpoints: CheckpointPolicy::default(),
            tail_bytes: 64 * 1024 * 1024,
            #[cfg(test)]
            store: None,
        }
    }

    /// On other storage than the machine's.
    #[cfg(test)]
    pub(crate) fn storage(mut self, fs: Arc<dyn FileSystem>, store: Arc<dyn crate::state::Store>) -> Self {
        (self.fs, self.store) = (fs, Some(store));
        self
    }

    /// Broker time from this clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// These policies, put at open. Policies that the folder knows besides stay.
    #[must_use]
    pub fn policies(mut self, policies: Vec<ChannelPolicy>) -> Self {
        self.policies = policies;
        self
    }

    /// Silence, in milliseconds, after which a session is lost that names no timeout itself.
    #[must_use]
    pub const fn session_timeout_ms(mut self, millis: u64) -> Self {
        self.engine.session_timeout_ms = millis;
        self
    }

    /// When a publish is answered.
    #[must_use]
    pub const fn sync(mut self, sync: SyncPolicy) -> Self {
        self.sync = sync;
        self
    }

    /// Length of a journal segment in bytes: a multiple of 4,096, at least 1 MiB. What is published at once has to fit into
    /// half of it; 64 MiB take all that the limits allow.
    #[must_use]
    pub const fn segment_bytes(mut self, bytes: u64) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// Spare segments kept ready; 0 makes each segment when it is needed, and a full disk is then met by a write that fails
    /// instead of being seen before.
    #[must_use]
    pub const fn spares(mut self, spares: usize) -> Self {
        self.spares = spares;
        self
    }

    /// A checkpoint after so many bytes of journal, or so many milliseconds.
    #[must_use]
    pub const fn checkpoint_every(mut self, journal_bytes: u64, millis: u64) -> Self {
        self.checkpoints.journal_bytes = journal_bytes;
        self.checkpoints.every_ms = millis;
        self
    }

    /// Opens the folder, recovers, and starts the broker. Blocks for the time of the recovery.
    ///
    /// # Errors
    /// [`OpenError`]; a folder that does not hold what was confirmed is refused, never mended in silence.
    pub fn open(self) -> Result<Broker, OpenError> {
        super::opening::open(self)
    }
}
