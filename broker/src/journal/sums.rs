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
