//! Random instants that can be repeated.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Random numbers from a printed seed (splitmix64).
pub(crate) struct Dice(u64);

impl Dice {
    /// Those of `WEIR_SEED`, or of this moment.
    pub(crate) fn new(test: &str) -> Self {
        let given = std::env::var("WEIR_SEED").ok().map(|seed| seed.parse().expect("WEIR_SEED is a number"));
        let seed = given.unwrap_or_else(|| {
            u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos())
        });
        eprintln!("{test}: WEIR_SEED={seed}");
        Self(seed)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    /// Other numbers, for somebody else.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.below(u64::MAX))
    }

    /// Up to so many milliseconds, in steps of a microsecond.
    pub(crate) fn millis(&mut self, bound: u64) -> Duration {
        Duration::from_micros(self.below(bound * 1000))
    }
}

/// How many rounds: `few`, or `many` where the full numbers are asked for.
pub(crate) fn rounds(few: u64, many: u64) -> u64 {
    if std::env::var_os("WEIR_PROVE").is_some() { many } else { few }
}
