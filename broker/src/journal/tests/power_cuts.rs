//! Crashes at random instants, many seeds: what was confirmed is there, in order, without a hole.

use super::lives::{Chances, run};
use crate::journal::SyncMode;
use std::ops::Range;
use std::time::Duration;

pub(super) const ALWAYS: Chances = Chances { sync: SyncMode::Always, spares: 0, early: 0.0, power: 0.7, decay: 0.3 };

/// Seeds from `from` on: `count` of them, or twenty times as many with `WEIR_PROVE`.
fn seeds(from: u64, count: u64) -> Range<u64> {
    from..from + if std::env::var_os("WEIR_PROVE").is_some() { count * 20 } else { count }
}

#[test]
fn what_was_confirmed_survives_power_cuts() {
    seeds(0, 300).for_each(|seed| run(seed, ALWAYS, None));
}

#[test]
fn what_was_confirmed_survives_deaths_and_power_cuts_in_turn_with_a_helper_at_work() {
    seeds(100_000, 100).for_each(|seed| run(seed, Chances { spares: 2, power: 0.5, ..ALWAYS }, None));
}

#[test]
fn with_an_interval_what_waited_for_the_sync_survives_too() {
    let sync = SyncMode::Interval(Duration::from_millis(3));
    seeds(200_000, 100).for_each(|seed| run(seed, Chances { sync, early: 0.9, power: 0.8, ..ALWAYS }, None));
}
