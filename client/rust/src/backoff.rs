//! How long to wait before a repeat: doubling, bounded, and spread so that many clients do not come back together.

use std::time::Duration;

/// Doublings after which the longest wait is reached in any case.
const DOUBLINGS_MAX: u32 = 20;

/// Bounds of the waits between the attempts of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffBounds {
    /// The longest wait before the first repeat; it doubles with each further one.
    pub first: Duration,
    /// The longest wait before any repeat, unless the broker itself asks for more.
    pub longest: Duration,
}

impl Default for BackoffBounds {
    /// From 50 ms to 5 s.
    fn default() -> Self {
        Self { first: Duration::from_millis(50), longest: Duration::from_secs(5) }
    }
}

impl BackoffBounds {
    /// The longest wait after `failures` failures before this one.
    fn ceiling(&self, failures: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << failures.min(DOUBLINGS_MAX));
        doubled.min(self.longest)
    }

    /// A wait after `failures` failures before this one, anywhere between half the ceiling and the ceiling.
    pub(crate) fn wait(&self, failures: u32) -> Duration {
        self.ceiling(failures).mul_f64(rand::random_range(0.5..=1.0))
    }
}

/// The waits of one call.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    bounds: BackoffBounds,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(bounds: BackoffBounds) -> Self {
        Self { bounds, failures: 0 }
    }

    /// The next wait. If the broker asked for `at_least`, it is that and some more, so that those who were refused
    /// together do not come back together.
    pub(crate) fn next(&mut self, at_least: Option<Duration>) -> Duration {
        let own = self.bounds.wait(self.failures);
        self.failures = self.failures.saturating_add(1);
        at_least.map_or(own, |asked| own.max(asked.saturating_add(own / 4)))
    }

    /// An attempt succeeded: the next failure is the first again.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: BackoffBounds = BackoffBounds { first: Duration::from_millis(40), longest: Duration::from_secs(1) };

    #[test]
    fn waits_double_up_to_the_longest_and_stay_within_half_of_it() {
        for _ in 0..100 {
            let mut backoff = Backoff::new(BOUNDS);
            for ceiling_ms in [40, 80, 160, 320, 640, 1000, 1000, 1000] {
                let ceiling = Duration::from_millis(ceiling_ms);
                let wait = backoff.next(None);
                assert!(wait >= ceiling / 2 && wait <= ceiling, "{wait:?} of {ceiling:?}");
            }
        }
    }

    #[test]
    fn the_longest_wait_holds_after_any_number_of_failures() {
        let mut backoff = Backoff { bounds: BOUNDS, failures: u32::MAX };

        let wait = backoff.next(None);

        assert!(wait >= BOUNDS.longest / 2 && wait <= BOUNDS.longest);
    }

    #[test]
    fn the_broker_is_given_the_time_it_asked_for() {
        let asked = Duration::from_secs(3);
        for _ in 0..100 {
            let wait = Backoff::new(BOUNDS).next(Some(asked));
            assert!(wait >= asked && wait <= asked + BOUNDS.first / 4);
        }
    }

    #[test]
    fn a_success_starts_anew() {
        let mut backoff = Backoff::new(BOUNDS);
        for _ in 0..5 {
            backoff.next(None);
        }

        backoff.reset();

        assert!(backoff.next(None) <= BOUNDS.first);
    }
}
