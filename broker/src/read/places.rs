//! Places of the messages of one segment, as sorted runs.

use crate::model::{ChannelNo, Offset};
use std::sync::Arc;

/// Where a message is in its segment. Ordered by channel, then offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) channel: ChannelNo,
    pub(super) offset: Offset,
    /// Where the record's header begins.
    pub(super) position: u32,
    /// Bytes of the message.
    pub(super) len: u32,
}

impl Entry {
    /// What it is found by.
    pub(super) const fn key(&self) -> (ChannelNo, Offset) {
        (self.channel, self.offset)
    }
}

/// The entry of a message in a sorted slice.
pub(super) fn find(entries: &[Entry], channel: ChannelNo, offset: Offset) -> Option<Entry> {
    let at = entries.binary_search_by_key(&(channel, offset), Entry::key).ok()?;
    entries.get(at).copied()
}

/// Sorts entries; of those with one key the last stays.
pub(super) fn sort(entries: &mut Vec<Entry>) {
    // A stable sort, so that the last of equal keys comes last.
    entries.sort_by_key(Entry::key);
    entries.dedup_by(|later, earlier| {
        let same = later.key() == earlier.key();
        if same {
            *earlier = *later;
        }
        same
    });
}

/// Sorted runs of entries, each at least twice as long as the next: taking entries in costs a logarithm of their number
/// each, and so does finding one. Of entries with one key the latest taken in stands.
#[derive(Debug, Default)]
pub(super) struct SortedRuns(Vec<Arc<Vec<Entry>>>);

impl SortedRuns {
    /// Takes entries in, in any order.
    pub(super) fn take_in(&mut self, mut entries: Vec<Entry>) {
        if entries.is_empty() {
            return;
        }
        sort(&mut entries);
        self.0.push(Arc::new(entries));
        while let [.., longer, last] = self.0.as_slice()
            && longer.len() < 2 * last.len()
        {
            self.merge_last_two();
        }
    }

    /// The entry of a message.
    pub(super) fn find(&self, channel: ChannelNo, offset: Offset) -> Option<Entry> {
        self.0.iter().rev().find_map(|run| find(run, channel, offset))
    }

    /// All entries, as one sorted run.
    pub(super) fn as_one(&mut self) -> Arc<Vec<Entry>> {
        while self.0.len() > 1 {
            self.merge_last_two();
        }
        self.0.first().cloned().unwrap_or_default()
    }

    fn merge_last_two(&mut self) {
        if let (Some(newer), Some(older)) = (self.0.pop(), self.0.pop()) {
            self.0.push(Arc::new(merged(&older, &newer)));
        }
    }
}

/// Both runs in one; of equal keys the newer run's entry.
fn merged(older: &[Entry], newer: &[Entry]) -> Vec<Entry> {
    let mut out = Vec::with_capacity(older.len() + newer.len());
    let (mut older, mut newer) = (older, newer);
    while let ([old, old_rest @ ..], [new, new_rest @ ..]) = (older, newer) {
        if old.key() < new.key() {
            out.push(*old);
            older = old_rest;
        } else {
            if old.key() == new.key() {
                older = old_rest;
            }
            out.push(*new);
            newer = new_rest;
        }
    }
    out.extend_from_slice(older);
    out.extend_from_slice(newer);
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn runs_find_what_a_map_finds(batches in vec(vec((0..4_u64, 0..40_u64, any::<u32>()), 0..30), 0..20)) {
            let mut runs = SortedRuns::default();
            let mut map = BTreeMap::new();
            for batch in batches {
                let entries = batch.iter().map(|&(channel, offset, position)| Entry {
                    channel: ChannelNo(channel), offset: Offset(offset), position, len: 1,
                });
                let entries: Vec<_> = entries.collect();
                map.extend(entries.iter().map(|entry| (entry.key(), *entry)));
                runs.take_in(entries);
                prop_assert!(runs.0.len() <= 12, "{} runs", runs.0.len());
            }
            for channel in (0..5).map(ChannelNo) {
                for offset in (0..41).map(Offset) {
                    prop_assert_eq!(runs.find(channel, offset), map.get(&(channel, offset)).copied());
                }
            }
            prop_assert_eq!(&*runs.as_one(), &map.into_values().collect::<Vec<_>>());
        }
    }
}
