//! Checksums that know where they belong.

use crate::model::SegmentNo;
use crc32fast::Hasher;

/// Odd, so that different places in a segment always start from different values.
const SPREAD: u32 = 0x9E37_79B1;

/// What every sum in one segment of one incarnation starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SumKey(u32);

impl SumKey {
    /// The key of a segment.
    pub(super) fn new(journal_id: u128, segment: SegmentNo, incarnation: u64) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(&journal_id.to_le_bytes());
        hasher.update(&segment.get().to_le_bytes());
        hasher.update(&incarnation.to_le_bytes());
        Self(hasher.finalize())
    }

    /// A sum that starts at `position` in the segment.
    pub(super) fn at(self, position: u32) -> Hasher {
        Hasher::new_with_initial(self.0 ^ position.wrapping_mul(SPREAD))
    }

    /// The sum of `bytes` at `position`.
    pub(super) fn of(self, position: u32, bytes: &[u8]) -> u32 {
        let mut hasher = self.at(position);
        hasher.update(bytes);
        hasher.finalize()
    }
}

/// Whether a sum that was found is the one that belongs there. Every check of a sum goes through here.
pub(super) fn agree(found: u32, due: u32) -> bool {
    #[cfg(test)]
    if unchecked::is_set() {
        return true;
    }
    found == due
}

/// Sums left unchecked on one thread, to show that tests would notice.
#[cfg(test)]
pub(super) mod unchecked {
    use std::cell::Cell;

    thread_local! {
        static UNCHECKED: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn is_set() -> bool {
        UNCHECKED.get()
    }

    /// Runs `work` on this thread without any check.
    pub(in crate::journal) fn during<T>(work: impl FnOnce() -> T) -> T {
        UNCHECKED.set(true);
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        UNCHECKED.set(false);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_sum_differently_in_another_place_segment_incarnation_or_journal() {
        let sum = SumKey::new(1, SegmentNo(2), 3).of(4, b"bytes");
        assert_ne!(sum, SumKey::new(9, SegmentNo(2), 3).of(4, b"bytes"));
        assert_ne!(sum, SumKey::new(1, SegmentNo(9), 3).of(4, b"bytes"));
        assert_ne!(sum, SumKey::new(1, SegmentNo(2), 9).of(4, b"bytes"));
        assert_ne!(sum, SumKey::new(1, SegmentNo(2), 3).of(8, b"bytes"));
    }
}
