//! Broker time comes from here and nowhere else.

use crate::model::UnixMillis;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Where broker time comes from.
///
/// A clock never goes back while it lives. Over restarts the broker lifts it with [`Clock::at_least`] to the latest
/// time its data folder has seen.
pub trait Clock: Send + Sync + 'static {
    /// Broker time now.
    fn now(&self) -> UnixMillis;

    /// From now on the clock reads at least `floor`, and runs on from there.
    fn at_least(&self, floor: UnixMillis);
}

/// The machine's clock, read once: wall time when made, monotonic time since. A step of the wall clock while the broker
/// runs therefore expires and revives nothing.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
    base: Mutex<UnixMillis>,
}

impl SystemClock {
    /// A clock that starts at the wall time of this moment.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one home of the machine's clocks")]
    pub fn new() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            started: Instant::now(),
            base: Mutex::new(UnixMillis(u64::try_from(wall.as_millis()).unwrap_or(u64::MAX))),
        }
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> UnixMillis {
        self.base.lock().plus(self.elapsed_ms())
    }

    fn at_least(&self, floor: UnixMillis) {
        let mut base = self.base.lock();
        let behind = floor.since(base.plus(self.elapsed_ms()));
        *base = base.plus(behind);
    }
}

/// A clock that stands still until it is moved: for simulation and tests.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<Mutex<UnixMillis>>);

impl ManualClock {
    /// A clock that reads `start`.
    #[must_use]
    pub fn at(start: UnixMillis) -> Self {
        Self(Arc::new(Mutex::new(start)))
    }

    /// Moves the clock on by `millis` and returns the new time.
    pub fn advance(&self, millis: u64) -> UnixMillis {
        let mut now = self.0.lock();
        *now = now.plus(millis);
        *now
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixMillis {
        *self.0.lock()
    }

    fn at_least(&self, floor: UnixMillis) {
        let mut now = self.0.lock();
        *now = (*now).max(floor);
    }
}
