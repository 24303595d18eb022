//! The room as a whole, over a journal in memory, a state in memory and index files on disk.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]

use super::testing::MemoryJournal;
use super::{Feed, IndexFiles, MessageIndex, ReadError, Reader, TailCache};
use crate::fs::OsFileSystem;
use crate::journal::Placements;
use crate::model::{ChannelNo, Epoch, GroupNo, Lsn, Offset, PolicyNo, SegmentNo, UnixMillis};
use crate::state::{AppliedRow, Batch, Family, MemoryDisk, MemoryStore, Store};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tempfile::TempDir;

/// What outlives a process.
struct Home {
    journal: Arc<MemoryJournal>,
    disk: MemoryDisk,
    folder: TempDir,
}

/// The room of one process.
struct Room {
    index: Arc<MessageIndex>,
    told: Arc<dyn Placements>,
    store: Arc<MemoryStore>,
    reader: Reader,
}

impl Home {
    fn new() -> Self {
        let (disk, folder) = (MemoryDisk::default(), TempDir::new().unwrap());
        Self { journal: Arc::new(MemoryJournal::new()), disk, folder }
    }

    /// Opens the room as the broker does, with the tail or without it.
    fn open(&self, tail: bool) -> Room {
        let (index, cache) = (Arc::new(MessageIndex::new()), Arc::new(TailCache::new(1 << 20)));
        let feed = Feed::new(Arc::clone(&index), Arc::clone(&cache));
        let told: Arc<dyn Placements> = if tail { Arc::new(feed) } else { index.clone() };
        let store = Arc::new(MemoryStore::open(&self.disk));
        let applied = store.applied().unwrap();
        let sealed = match applied {
            None if self.journal.last().1 == Lsn(0) => Vec::new(),
            _ => self.journal.recover(applied.map_or(Lsn(0), |applied| applied.lsn), &*told),
        };
        let files =
            IndexFiles::open(Arc::new(OsFileSystem), self.index_folder(), 9, |no| sealed.contains(&no)).unwrap();
        let reader = Reader::open(cache, Arc::clone(&index), files, self.journal.clone(), store.clone()).unwrap();
        reader.adopt(applied.map_or(SegmentNo(1), |applied| applied.segment), &sealed).unwrap();
        Room { index, told, store, reader }
    }

    fn index_folder(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    fn index_files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.index_folder()).unwrap().map(|file| file.unwrap().path());
        let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|end| end == "idx")).collect();
        files.sort();
        files
    }

    fn checkpoint(&self, room: &Room, deletes: Vec<(Family, Vec<u8>)>) {
        let (segment, lsn) = self.journal.last();
        let applied = AppliedRow {
            journal_id: 9,
            segment,
            lsn,
            broker_time: UnixMillis(0),
            epoch: Epoch(0),
            next_channel: ChannelNo(1),
            next_policy: PolicyNo(1),
            next_group: GroupNo(1),
        };
        let puts = room.index.take_extents(lsn);
        room.store.checkpoint(Batch { puts, deletes, applied }).unwrap();
        room.index.extents_stored();
    }

    /// Gives a sealed segment back, as reclaim does.
    fn give_back(&self, room: &Room, segment: SegmentNo) {
        self.checkpoint(room, Vec::new());
        let extents = room.reader.extents_of(segment).unwrap();
        self.checkpoint(room, extents);
        self.journal.remove(segment);
        room.reader.forget(segment).unwrap();
    }
}

impl Room {
    fn get(&self, channel: u64, offset: u64) -> Option<Bytes> {
        self.reader.get(ChannelNo(channel), Offset(offset)).unwrap()
    }

    /// Waits for the thread that writes index files.
    fn wait_until(&self, is_so: impl Fn(&MessageIndex) -> bool) {
        while !is_so(&self.index) {
            thread::yield_now();
        }
    }
}

fn bytes(channel: u64, offset: u64) -> Bytes {
    Bytes::from(format!("message {offset} of channel {channel}"))
}

fn run(channel: u64, offsets: std::ops::Range<u64>) -> Vec<(u64, u64, Bytes)> {
    offsets.map(|offset| (channel, offset, bytes(channel, offset))).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Append { channel: u64, count: u64 },
    Seal,
    Checkpoint,
    Restart { tail: bool },
    Damage { file: prop::sample::Index, byte: prop::sample::Index },
    Lose { file: prop::sample::Index },
    GiveBack { segment: prop::sample::Index },
    ReadAll,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..4_u64, 1..30_u64).prop_map(|(channel, count)| Step::Append { channel, count }),
        3 => Just(Step::Seal),
        3 => Just(Step::Checkpoint),
        2 => any::<bool>().prop_map(|tail| Step::Restart { tail }),
        1 => (any::<prop::sample::Index>(), any::<prop::sample::Index>())
            .prop_map(|(file, byte)| Step::Damage { file, byte }),
        1 => any::<prop::sample::Index>().prop_map(|file| Step::Lose { file }),
        1 => any::<prop::sample::Index>().prop_map(|segment| Step::GiveBack { segment }),
        3 => Just(Step::ReadAll),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn each_message_is_found_until_its_segment_is_given_back(tail: bool, steps in prop::collection::vec(step(), 1..60)) {
        let home = Home::new();
        let mut room = Some(home.open(tail));
        let mut heads = [0_u64; 4];
        let mut model: BTreeMap<(u64, u64), SegmentNo> = BTreeMap::new();
        for step in steps.into_iter().chain([Step::ReadAll]) {
            let open = room.get_or_insert_with(|| home.open(tail));
            match step {
                Step::Append { channel, count } => {
                    let head = &mut heads[channel as usize];
                    let segment = home.journal.open_segment();
                    model.extend((*head..*head + count).map(|offset| ((channel, offset), segment)));
                    home.journal.append(&run(channel, *head..*head + count), &*open.told);
                    *head += count;
                }
                Step::Seal => { home.journal.seal(&*open.told); }
                Step::Checkpoint => home.checkpoint(open, Vec::new()),
                Step::Restart { tail } => {
                    drop(room.take());
                    room = Some(home.open(tail));
                }
                Step::Damage { file, byte } => {
                    let files = home.index_files();
                    if !files.is_empty() {
                        let file = file.get(&files);
                        let mut bytes = fs::read(file).unwrap();
                        let at = byte.index(bytes.len());
                        bytes[at] ^= 0x10;
                        fs::write(file, bytes).unwrap();
                    }
                }
                Step::Lose { file } => {
                    let files = home.index_files();
                    if !files.is_empty() {
                        fs::remove_file(file.get(&files)).unwrap();
                    }
                }
                Step::GiveBack { segment } => {
                    let sealed: Vec<_> = model.values().copied().filter(|no| *no < home.journal.open_segment()).collect();
                    if !sealed.is_empty() {
                        let segment = *segment.get(&sealed);
                        home.give_back(open, segment);
                        model.retain(|_, of| *of != segment);
                        // The tail may still know them; a broker asks for nothing that is gone.
                        room = None;
                    }
                }
                Step::ReadAll => {
                    let keys: Vec<_> = (0..4).flat_map(|channel| {
                        (0..=heads[channel as usize]).rev().map(move |offset| (ChannelNo(channel), Offset(offset)))
                    }).collect();
                    let read = open.reader.get_many(&keys).unwrap();
                    for ((channel, offset), read) in keys.into_iter().zip(read) {
                        let (channel, offset) = (channel.get(), offset.get());
                        let right = model.contains_key(&(channel, offset)).then(|| bytes(channel, offset));
                        prop_assert_eq!(&read, &right, "{}/{} by get_many", channel, offset);
                        prop_assert_eq!(open.get(channel, offset), right, "{}/{} by get", channel, offset);
                    }
                }
            }
        }
    }
}

#[test]
fn a_segment_leaves_memory_once_it_is_written_and_covered() {
    let home = Home::new();
    let room = home.open(false);
    home.journal.append(&run(1, 0..500), &*room.told);
    home.checkpoint(&room, Vec::new());
    assert!(room.store.get(Family::Extents, &[0; 16]).unwrap().is_none(), "an open segment has no extents");
    let first = home.journal.seal(&*room.told);
    home.journal.append(&run(1, 500..510), &*room.told);
    assert!(room.index.holds(first));
    home.checkpoint(&room, Vec::new());
    room.wait_until(|index| !index.holds(first));
    assert_eq!(
        (room.get(1, 0), room.get(1, 499), room.get(1, 505)),
        (Some(bytes(1, 0)), Some(bytes(1, 499)), Some(bytes(1, 505)),)
    );
    assert_eq!((room.get(1, 510), room.get(2, 0)), (None, None));
    assert_eq!(home.journal.scans(), 0, "the index came from memory");
}

#[test]
fn a_segment_stays_in_memory_until_its_checkpoint_is_finished() {
    let home = Home::new();
    let room = home.open(false);
    let lsn = home.journal.append(&run(1, 0..5), &*room.told);
    let segment = home.journal.seal(&*room.told);
    assert!(room.index.take_extents(Lsn(lsn.get() - 1)).is_empty(), "not covered by an earlier checkpoint");
    assert_eq!(room.index.take_extents(lsn).len(), 1);
    assert!(room.index.take_extents(lsn).is_empty(), "given once");
    room.wait_until(|_| home.index_files().len() == 1);
    assert!(room.index.holds(segment));
    assert_eq!(room.get(1, 3), Some(bytes(1, 3)));
    room.index.extents_stored();
    room.wait_until(|index| !index.holds(segment));
}

#[test]
fn a_missing_index_file_is_made_again_once() {
    let home = Home::new();
    let room = home.open(false);
    home.journal.append(&run(1, 0..5), &*room.told);
    let segment = home.journal.seal(&*room.told);
    home.checkpoint(&room, Vec::new());
    room.wait_until(|index| !index.holds(segment));
    fs::remove_file(&home.index_files()[0]).unwrap();
    assert_eq!(room.get(1, 3), Some(bytes(1, 3)));
    assert_eq!(room.get(1, 4), Some(bytes(1, 4)));
    assert_eq!((home.journal.scans(), home.index_files().len()), (1, 1));
}

#[test]
fn an_index_that_cannot_be_written_stays_in_memory_until_it_can() {
    let home = Home::new();
    let room = home.open(false);
    home.journal.append(&run(1, 0..5), &*room.told);
    fs::remove_dir(home.index_folder()).unwrap();
    let first = home.journal.seal(&*room.told);
    home.checkpoint(&room, Vec::new());
    room.wait_until(|index| index.put_off(first));
    assert_eq!(room.get(1, 3), Some(bytes(1, 3)));
    fs::create_dir(home.index_folder()).unwrap();
    home.journal.seal(&*room.told);
    room.wait_until(|index| !index.holds(first));
    assert_eq!(room.get(1, 3), Some(bytes(1, 3)));
}

#[test]
fn a_segment_that_recovery_skips_before_it_is_covered_is_adopted() {
    let home = Home::new();
    let room = home.open(false);
    home.journal.append(&run(1, 0..5), &*room.told);
    // The checkpoint reaches the end of a segment that is still open, so it holds no extents of it.
    home.checkpoint(&room, Vec::new());
    drop(room);
    // The next start seals the segment and makes another; the one after it recovers from that other one on.
    drop(home.open(false));
    let room = home.open(false);
    assert_eq!(room.get(1, 4), Some(bytes(1, 4)));
    home.checkpoint(&room, Vec::new());
    drop(room);
    assert_eq!(home.open(false).get(1, 4), Some(bytes(1, 4)));
}

#[test]
fn files_of_segments_that_are_gone_are_taken_away_at_the_start() {
    let home = Home::new();
    let room = home.open(false);
    home.journal.append(&run(1, 0..5), &*room.told);
    home.journal.seal(&*room.told);
    home.checkpoint(&room, Vec::new());
    room.wait_until(|index| !index.holds(SegmentNo(1)));
    drop(room);
    fs::write(home.index_folder().join("000000000077.idx"), b"orphan").unwrap();
    fs::write(home.index_folder().join("000000000001.idx.new"), b"half").unwrap();
    let room = home.open(false);
    room.wait_until(|_| home.index_files().len() >= 2);
    let names = home.index_files();
    assert!(names.iter().all(|name| !name.ends_with("000000000077.idx")), "{names:?}");
    assert_eq!(room.get(1, 2), Some(bytes(1, 2)));
}

#[test]
fn a_damaged_record_is_an_error_and_not_a_missing_message() {
    let home = Home::new();
    let room = home.open(false);
    let mut records = vec![super::testing::placed(1, 1, 0, 77, bytes(1, 0))];
    records[0].place.len += 1;
    room.told.placed(SegmentNo(1), &records);
    let error = room.reader.get(ChannelNo(1), Offset(0)).unwrap_err();
    assert!(matches!(error, ReadError::Journal(crate::journal::ReadError::Damaged { .. })));
}

#[test]
fn readers_find_everything_while_segments_come_and_leave() {
    let home = Home::new();
    let room = home.open(false);
    let written = std::sync::atomic::AtomicU64::new(0);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for stride in [1, 7] {
            let (room, written, done) = (&room, &written, &done);
            scope.spawn(move || {
                let mut at = 0;
                while !done.load(Ordering::Acquire) {
                    let head = written.load(Ordering::Acquire);
                    if head > 0 {
                        at = (at + stride) % head;
                        assert_eq!(room.get(1, at), Some(bytes(1, at)));
                    }
                }
            });
        }
        for round in 0..200_u64 {
            home.journal.append(&run(1, round * 10..round * 10 + 10), &*room.told);
            written.store(round * 10 + 10, Ordering::Release);
            if round % 3 == 0 {
                home.journal.seal(&*room.told);
            }
            if round % 5 == 0 {
                home.checkpoint(&room, Vec::new());
            }
        }
        done.store(true, Ordering::Release);
    });
}
