//! Whole keys (family byte first) and the ranges of reads over them, the same for every store.

use super::{Family, SCAN_ROWS_MAX, Scan, StoreError};

/// Family byte and key.
pub(super) fn whole_key(family: Family, key: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(1 + key.len());
    whole.push(family.byte());
    whole.extend_from_slice(key);
    whole
}

/// A key as the callers know it.
pub(super) fn bare_key(whole: &[u8]) -> Vec<u8> {
    whole.get(1..).unwrap_or_default().to_vec()
}

/// Whole keys from `from` on, below `below`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyRange {
    pub(super) from: Vec<u8>,
    pub(super) below: Vec<u8>,
}

impl KeyRange {
    /// All keys of a family that begin with `prefix`.
    pub(super) fn of_prefix(family: Family, prefix: &[u8]) -> Self {
        let from = whole_key(family, prefix);
        let mut below = from.clone();
        // A family's byte is never 0xff, so there always is a byte left to count up.
        while below.pop_if(|last| *last == u8::MAX).is_some() {}
        if let Some(last) = below.last_mut() {
            *last += 1;
        }
        Self { from, below }
    }

    /// The keys a scan may bring; none where no key can fit.
    ///
    /// # Errors
    /// [`StoreError::ScanTooLong`].
    pub(super) fn of_scan(family: Family, scan: &Scan<'_>) -> Result<Option<Self>, StoreError> {
        if scan.limit > SCAN_ROWS_MAX {
            return Err(StoreError::ScanTooLong { limit: scan.limit, max: SCAN_ROWS_MAX });
        }
        let mut range = Self::of_prefix(family, scan.prefix);
        if let Some(after) = scan.after {
            // The first key above `after` is `after` and a zero byte.
            let mut next = whole_key(family, after);
            next.push(0);
            range.from = range.from.max(next);
        }
        Ok((range.from < range.below && scan.limit > 0).then_some(range))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_range_ends_before_the_first_key_without_the_prefix() {
        let range = KeyRange::of_prefix(Family::Channels, &[1, 0xff, 0xff]);
        assert_eq!((range.from, range.below), (vec![2, 1, 0xff, 0xff], vec![2, 2]));
        let range = KeyRange::of_prefix(Family::Applied, &[0xff]);
        assert_eq!(range.below, vec![17]);
    }

    #[test]
    fn a_scan_goes_on_right_after_a_key() {
        let scan = |after| Scan { prefix: &[5], after, limit: 1 };
        let from = |after| KeyRange::of_scan(Family::Tasks, &scan(after)).unwrap().map(|range| range.from);
        assert_eq!(from(Some(&[5, 9])), Some(vec![5, 5, 9, 0]));
        assert_eq!(from(Some(&[4, 9])), Some(vec![5, 5]), "a key before the prefix");
        assert_eq!(from(Some(&[6])), None, "a key behind the prefix");
    }
}
