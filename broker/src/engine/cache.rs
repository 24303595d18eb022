//! Rows in memory. A row that was changed stays until a finished checkpoint has it; others go when room is needed.

use std::collections::HashMap;
use std::hash::Hash;

/// Numbers checkpoints: rows changed since the last freeze belong to the next one.
pub(super) type Generation = u64;

#[derive(Debug)]
struct Slot<V> {
    /// `None`: known to be absent.
    value: Option<V>,
    /// A checkpoint has written it, so its end must be written too.
    stored: bool,
    /// The checkpoint that will carry its last change; 0 if it never changed in memory.
    changed_in: Generation,
    /// Used since the last sweep.
    used: bool,
}

/// What is to be written for a changed row.
pub(super) enum Change<'a, V> {
    /// Write this value.
    Put(&'a V),
    /// Remove what is stored.
    Delete,
    /// It was born and died between two checkpoints: nothing.
    Nothing,
}

/// Some rows of one kind, and which of them are known to be absent.
#[derive(Debug)]
pub(super) struct Cache<K, V> {
    slots: HashMap<K, Slot<V>>,
    capacity: usize,
    /// Rows from which on another sweep is worth its time.
    crowded_at: usize,
}

impl<K: Eq + Hash + Clone, V> Cache<K, V> {
    /// A cache that lets go of unchanged rows once it holds more than `capacity`.
    pub(super) fn new(capacity: usize) -> Self {
        Self { slots: HashMap::new(), capacity, crowded_at: crowd(capacity) }
    }

    /// Whether the row, or its absence, is in memory. Marks it as used.
    pub(super) fn knows(&mut self, key: &K) -> bool {
        self.slots.get_mut(key).is_some_and(|slot| {
            slot.used = true;
            true
        })
    }

    /// The same, for a look that is no use.
    pub(super) fn holds(&self, key: &K) -> bool {
        self.slots.contains_key(key)
    }

    /// The row, if it is in memory and exists.
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.slots.get(key).and_then(|slot| slot.value.as_ref())
    }

    /// Takes a row as loaded. A row that is in memory already is newer and stays.
    pub(super) fn admit(&mut self, key: K, value: Option<V>) {
        let stored = value.is_some();
        self.slots.entry(key).or_insert(Slot { value, stored, changed_in: 0, used: true });
    }

    /// Takes a row that was not there before, as far as anybody knew.
    pub(super) fn admit_late(&mut self, key: K, value: V) {
        let slot = self.slots.entry(key).or_insert(Slot { value: None, stored: true, changed_in: 0, used: true });
        slot.value.get_or_insert(value);
    }

    /// The row, to be changed. The second value says whether `generation` hears of the change for the first time.
    pub(super) fn change(&mut self, key: K, generation: Generation) -> (&mut Option<V>, bool) {
        let slot = self.slots.entry(key).or_insert(Slot { value: None, stored: false, changed_in: 0, used: true });
        let first = slot.changed_in != generation;
        slot.changed_in = generation;
        slot.used = true;
        (&mut slot.value, first)
    }

    /// The row is to be gone, also from state, whether or not it is in memory. Whether `generation` hears of a change of
    /// it for the first time.
    pub(super) fn remove(&mut self, key: K, generation: Generation) -> bool {
        let slot = self.slots.entry(key).or_insert(Slot { value: None, stored: true, changed_in: 0, used: true });
        slot.value = None;
        std::mem::replace(&mut slot.changed_in, generation) != generation
    }

    /// The row, for bookkeeping that no checkpoint needs to hear of.
    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.slots.get_mut(key).and_then(|slot| slot.value.as_mut())
    }

    /// What a checkpoint has to write for a changed row; from here on it counts as stored.
    pub(super) fn freeze(&mut self, key: &K) -> Change<'_, V> {
        let Some(slot) = self.slots.get_mut(key) else { return Change::Nothing };
        let was_stored = std::mem::replace(&mut slot.stored, slot.value.is_some());
        match &slot.value {
            Some(value) => Change::Put(value),
            None if was_stored => Change::Delete,
            None => Change::Nothing,
        }
    }

    /// Lets go of rows that were not used lately, are part of a finished checkpoint, and that `keep` does not claim.
    pub(super) fn sweep(&mut self, finished: Generation, keep: impl Fn(&K, Option<&V>) -> bool) {
        if self.slots.len() <= self.capacity {
            return;
        }
        self.slots.retain(|key, slot| {
            slot.changed_in > finished || std::mem::take(&mut slot.used) || keep(key, slot.value.as_ref())
        });
        // Where little could go, as much has to come before it is looked at again.
        self.crowded_at = crowd(self.capacity.max(self.slots.len()));
    }

    /// Whether there is so much more than the limit, or than a sweep had left, that it is time for the next.
    pub(super) fn is_crowded(&self) -> bool {
        self.slots.len() > self.crowded_at
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

/// A quarter more, and never so little that sweeps follow one another closely.
const fn crowd(rows: usize) -> usize {
    rows.saturating_add(rows / 4).saturating_add(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_row_stays_until_its_checkpoint_is_finished() {
        let mut cache = Cache::new(0);
        *cache.change(1, 5).0 = Some("a");
        cache.sweep(4, |_, _| false);
        cache.sweep(4, |_, _| false);
        assert_eq!(cache.get(&1), Some(&"a"));
        cache.sweep(5, |_, _| false);
        cache.sweep(5, |_, _| false);
        assert!(!cache.knows(&1));
    }

    #[test]
    fn a_row_born_and_dead_between_checkpoints_is_never_written() {
        let mut cache = Cache::new(10);
        *cache.change(1, 1).0 = Some(7);
        *cache.change(1, 1).0 = None;
        assert!(matches!(cache.freeze(&1), Change::Nothing));
        *cache.change(1, 2).0 = Some(8);
        assert!(matches!(cache.freeze(&1), Change::Put(8)));
        *cache.change(1, 3).0 = None;
        assert!(matches!(cache.freeze(&1), Change::Delete));
        assert!(matches!(cache.freeze(&1), Change::Nothing));
    }

    #[test]
    fn a_row_that_is_only_in_state_is_deleted_there() {
        let mut cache: Cache<_, u8> = Cache::new(10);
        assert!(cache.remove(1, 1));
        assert!(!cache.remove(1, 1), "told once");
        assert!(matches!(cache.freeze(&1), Change::Delete));
    }

    #[test]
    fn what_is_only_looked_for_crowds_the_cache_and_a_second_sweep_clears_it() {
        let mut cache: Cache<_, u8> = Cache::new(100);
        for round in 0..10_u32 {
            (round * 1_000..round * 1_000 + 1_000).for_each(|key| {
                cache.admit(key, None);
                if cache.is_crowded() {
                    cache.sweep(0, |_, _| false);
                }
            });
            assert!(cache.len() < 500, "{}", cache.len());
        }
    }

    #[test]
    fn a_loaded_row_never_replaces_a_newer_one() {
        let mut cache = Cache::new(10);
        *cache.change(1, 1).0 = Some(7);
        cache.admit(1, Some(6));
        assert_eq!(cache.get(&1), Some(&7));
        cache.admit(2, None);
        assert!(cache.knows(&2) && cache.get(&2).is_none());
    }
}
