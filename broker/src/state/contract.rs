//! What every store has to do, run over each of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]

use super::store::Row;
use super::{AppliedRow, Batch, Family, SCAN_ROWS_MAX, Scan, Store, StoreError};
use crate::model::{ChannelNo, Epoch, GroupNo, Lsn, PolicyNo, SegmentNo, UnixMillis};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Where stores of one kind live on while no process has them open.
pub(super) trait Home {
    type Store: Store;

    /// The store that lives here.
    fn open(&self) -> Self::Store;

    /// The store that a process finds that starts after a crash of the one that had `store` open, after it had written
    /// `unfinished` and before that was durable.
    fn crash_in_checkpoint(&self, store: Self::Store, unfinished: Batch) -> Self::Store;
}

/// An applied row at `lsn`.
pub(super) fn applied_at(lsn: u64) -> AppliedRow {
    AppliedRow {
        journal_id: 42,
        segment: SegmentNo(1 + lsn / 10),
        lsn: Lsn(lsn),
        broker_time: UnixMillis(1_000 * lsn),
        epoch: Epoch(lsn * 3),
        next_channel: ChannelNo(lsn + 1),
        next_policy: PolicyNo(2),
        next_group: GroupNo(3),
    }
}

/// A batch at `lsn` that sets these rows.
pub(super) fn puts(lsn: u64, rows: &[(Family, &[u8], &[u8])]) -> Batch {
    let puts = rows.iter().map(|(family, key, value)| (*family, key.to_vec(), value.to_vec())).collect();
    Batch { puts, deletes: Vec::new(), applied: applied_at(lsn) }
}

/// Every part of the contract over stores of one kind; `new_home` makes a new, empty place for one.
pub(super) fn upholds_the_contract<H: Home>(new_home: impl Fn() -> H) {
    starts_empty(&new_home());
    keeps_the_last_put(&new_home());
    comes_back_at_its_last_checkpoint(&new_home());
    forgets_an_unfinished_checkpoint(&new_home());
    keeps_families_apart(&new_home());
    scans_exact_pages(&new_home());
    bounds_scans(&new_home());
    finds_the_last_at_or_before(&new_home());
    answers_like_a_map(&new_home);
}

fn starts_empty<H: Home>(home: &H) {
    let store = home.open();
    assert_eq!(store.applied().unwrap(), None);
    for family in Family::ALL {
        assert_eq!(store.get(family, b"").unwrap(), None);
        assert!(page(&store, family, b"", None, SCAN_ROWS_MAX).is_empty());
        assert_eq!(store.last_at_or_before(family, &[0xff; 9], b"").unwrap(), None);
    }
    assert!(store.get_many(&[]).unwrap().is_empty());
}

fn keeps_the_last_put<H: Home>(home: &H) {
    let store = home.open();
    let mut batch = puts(1, &[(Family::Groups, b"a", b"1"), (Family::Groups, b"a", b"2"), (Family::Groups, b"b", b"")]);
    batch.deletes = vec![(Family::Groups, b"a".to_vec()), (Family::Groups, b"never there".to_vec())];
    store.checkpoint(batch).unwrap();
    assert_eq!(store.get(Family::Groups, b"a").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(store.get(Family::Groups, b"b").unwrap().as_deref(), Some(&b""[..]), "an empty value is a value");
    let mut batch = puts(2, &[]);
    batch.deletes = vec![(Family::Groups, b"a".to_vec())];
    store.checkpoint(batch).unwrap();
    let keys = [b"a", b"b", b"c"].map(|key| (Family::Groups, key.to_vec()));
    let values = store.get_many(&keys).unwrap();
    assert_eq!(values.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false]);
}

fn comes_back_at_its_last_checkpoint<H: Home>(home: &H) {
    for lsn in 1..=5_u64 {
        let store = home.open();
        let before = (lsn > 1).then(|| applied_at(lsn - 1));
        assert_eq!(store.applied().unwrap(), before);
        store.checkpoint(puts(lsn, &[(Family::Channels, &lsn.to_be_bytes(), b"row")])).unwrap();
        assert_eq!(store.applied().unwrap(), Some(applied_at(lsn)));
    }
    assert_eq!(page(&home.open(), Family::Channels, b"", None, 100).len(), 5);
}

fn forgets_an_unfinished_checkpoint<H: Home>(home: &H) {
    let store = home.open();
    store.checkpoint(puts(1, &[(Family::Dedup, b"kept", b"1"), (Family::Dedup, b"changed", b"old")])).unwrap();
    let mut unfinished = puts(2, &[(Family::Dedup, b"new", b"2"), (Family::Dedup, b"changed", b"new")]);
    unfinished.deletes = vec![(Family::Dedup, b"kept".to_vec())];
    let store = home.crash_in_checkpoint(store, unfinished);
    assert_eq!(store.applied().unwrap(), Some(applied_at(1)));
    assert_eq!(store.get(Family::Dedup, b"new").unwrap(), None);
    assert_eq!(store.get(Family::Dedup, b"changed").unwrap().as_deref(), Some(&b"old"[..]));
    assert_eq!(store.get(Family::Dedup, b"kept").unwrap().as_deref(), Some(&b"1"[..]));
    store.checkpoint(puts(2, &[])).expect("a store opened anew goes on");
}

fn keeps_families_apart<H: Home>(home: &H) {
    let store = home.open();
    let keys: [&[u8]; 5] = [b"", &[0], &[0xff], &[0xff; 12], b"key"];
    let mut batch = puts(1, &[]);
    for family in Family::ALL.into_iter().filter(|family| *family != Family::Applied) {
        batch.puts.extend(keys.iter().map(|key| (family, key.to_vec(), vec![family.byte()])));
    }
    store.checkpoint(batch).unwrap();
    for family in Family::ALL.into_iter().filter(|family| *family != Family::Applied) {
        let rows = page(&store, family, b"", None, SCAN_ROWS_MAX);
        assert_eq!(rows.len(), keys.len());
        assert!(rows.iter().all(|(_, value)| **value == [family.byte()]));
        assert_eq!(page(&store, family, &[0xff], None, 9).len(), 2);
        let last = store.last_at_or_before(family, &[0xff; 40], b"").unwrap().unwrap();
        assert_eq!((last.0, &*last.1), (vec![0xff; 12], &[family.byte()][..]));
    }
}

fn scans_exact_pages<H: Home>(home: &H) {
    let store = home.open();
    let mut keys = Vec::new();
    for channel in [7_u64, 8, 0xffff_ffff_ffff_ffff] {
        for offset in 0..10_u64 {
            keys.push([channel.to_be_bytes(), offset.to_be_bytes()].concat());
        }
    }
    // Half of the rows in one checkpoint, half in another, and some gone again.
    for (lsn, part) in [(1, 0), (2, 1)] {
        let mut batch = puts(lsn, &[]);
        batch.puts.extend(keys.iter().skip(part).step_by(2).map(|key| (Family::Extents, key.clone(), key.clone())));
        store.checkpoint(batch).unwrap();
    }
    let mut batch = puts(3, &[]);
    batch.deletes = keys.iter().filter(|key| key[15] == 4).map(|key| (Family::Extents, key.clone())).collect();
    store.checkpoint(batch).unwrap();
    keys.retain(|key| key[15] != 4);

    for limit in [1, 2, 3, 9, 10, 100] {
        for prefix in [&keys[0][..0], &keys[0][..4], &keys[0][..8], &keys[26][..8], &keys[3][..]] {
            let mut found = Vec::new();
            loop {
                let rows = page(&store, Family::Extents, prefix, found.last().map(Vec::as_slice), limit);
                found.extend(rows.iter().map(|(key, _)| key.clone()));
                if rows.len() < limit {
                    break;
                }
            }
            let fitting: Vec<_> = keys.iter().filter(|key| key.starts_with(prefix)).cloned().collect();
            assert_eq!(found, fitting, "prefix {prefix:?}, {limit} a page");
        }
    }
    assert!(page(&store, Family::Extents, &7_u64.to_be_bytes(), Some(&8_u64.to_be_bytes()), 5).is_empty());
    assert!(page(&store, Family::Extents, b"", None, 0).is_empty());
}

fn bounds_scans<H: Home>(home: &H) {
    let scan = Scan { prefix: b"", after: None, limit: SCAN_ROWS_MAX + 1 };
    let refused = home.open().scan(Family::Tasks, scan).unwrap_err();
    assert_eq!(refused, StoreError::ScanTooLong { limit: SCAN_ROWS_MAX + 1, max: SCAN_ROWS_MAX });
}

fn finds_the_last_at_or_before<H: Home>(home: &H) {
    let store = home.open();
    let key = |channel: u64, offset: u64| [channel.to_be_bytes(), offset.to_be_bytes()].concat();
    let rows = [key(1, 0), key(1, 100), key(1, 200), key(3, 50)];
    for (lsn, row) in (1..).zip(&rows) {
        store.checkpoint(puts(lsn, &[(Family::Extents, row, b"x")])).unwrap();
    }
    let last = |channel: u64, offset: u64| {
        let row = store.last_at_or_before(Family::Extents, &key(channel, offset), &channel.to_be_bytes()).unwrap();
        row.map(|(key, _)| key)
    };
    assert_eq!(last(1, 0), Some(key(1, 0)));
    assert_eq!(last(1, 99), Some(key(1, 0)));
    assert_eq!(last(1, 100), Some(key(1, 100)));
    assert_eq!(last(1, u64::MAX), Some(key(1, 200)));
    assert_eq!(last(2, u64::MAX), None, "the row before belongs to another prefix");
    assert_eq!(last(3, 49), None);
    assert_eq!(last(3, 50), Some(key(3, 50)));
    let outside = |at: &[u8]| store.last_at_or_before(Family::Extents, at, &1_u64.to_be_bytes()).unwrap();
    assert_eq!(outside(&key(3, 50)).map(|(key, _)| key), Some(key(1, 200)), "a key behind the prefix");
    assert_eq!(outside(&key(0, 50)), None, "a key before the prefix");
}

/// One step against a store and a map.
#[derive(Clone, Debug)]
enum Step {
    Checkpoint { puts: Vec<(Family, Vec<u8>, u8)>, deletes: Vec<(Family, Vec<u8>)> },
    Reopen,
    Scan { family: Family, prefix: Vec<u8>, after: Option<Vec<u8>>, limit: usize },
    Last { family: Family, key: Vec<u8>, prefix: usize },
}

fn answers_like_a_map<H: Home>(new_home: &impl Fn() -> H) {
    let family = || prop_oneof![Just(Family::Extents), Just(Family::Tasks)];
    // Few letters and lengths around the prefix that filters know, so that keys meet.
    let key = || vec(prop_oneof![Just(0_u8), Just(1), Just(0xff)], 0..11);
    let step = prop_oneof![
        3 => (vec((family(), key(), any::<u8>()), 0..20), vec((family(), key()), 0..6))
            .prop_map(|(puts, deletes)| Step::Checkpoint { puts, deletes }),
        1 => Just(Step::Reopen),
        4 => (family(), key(), proptest::option::of(key()), 0..8_usize)
            .prop_map(|(family, prefix, after, limit)| Step::Scan { family, prefix, after, limit }),
        4 => (family(), key(), 0..11_usize).prop_map(|(family, key, prefix)| Step::Last { family, key, prefix }),
    ];
    let config = ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(steps in vec(step, 1..25))| {
        let home = new_home();
        let mut store = Some(home.open());
        let mut map: BTreeMap<(Family, Vec<u8>), u8> = BTreeMap::new();
        for (lsn, step) in (1..).zip(steps) {
            let open = store.get_or_insert_with(|| home.open());
            match step {
                Step::Checkpoint { puts, deletes } => {
                    for delete in &deletes {
                        map.remove(delete);
                    }
                    map.extend(puts.iter().map(|(family, key, value)| ((*family, key.clone()), *value)));
                    let puts = puts.into_iter().map(|(family, key, value)| (family, key, vec![value])).collect();
                    open.checkpoint(Batch { puts, deletes, applied: applied_at(lsn) }).unwrap();
                }
                Step::Reopen => store = None,
                Step::Scan { family, prefix, after, limit } => {
                    let rows = page(open, family, &prefix, after.as_deref(), limit);
                    let found: Vec<_> = rows.into_iter().map(|(key, value)| (key, value[0])).collect();
                    let right: Vec<_> = map.iter()
                        .filter(|((of, key), _)| *of == family && key.starts_with(&prefix))
                        .filter(|((_, key), _)| after.as_ref().is_none_or(|after| key > after))
                        .take(limit).map(|((_, key), value)| (key.clone(), *value)).collect();
                    prop_assert_eq!(found, right);
                }
                Step::Last { family, key, prefix } => {
                    let prefix = &key[..prefix.min(key.len())];
                    let found = open.last_at_or_before(family, &key, prefix).unwrap();
                    let right = map.range((family, prefix.to_vec())..=(family, key.clone())).next_back();
                    prop_assert_eq!(
                        found.map(|(key, value)| (key, value[0])),
                        right.map(|((_, key), value)| (key.clone(), *value))
                    );
                    let value = open.get(family, &key).unwrap().map(|value| value[0]);
                    prop_assert_eq!(value, map.get(&(family, key)).copied());
                }
            }
        }
    });
}

fn page<S: Store>(store: &S, family: Family, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Vec<Row> {
    store.scan(family, Scan { prefix, after, limit }).unwrap()
}
