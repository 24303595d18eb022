//! The room over the real journal and the real store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]

use super::{Feed, IndexFiles, MessageIndex, Reader, TailCache};
use crate::fs::OsFileSystem;
use crate::journal::{Applied, Frame, Journal, JournalConfig, JournalError, Record, Submission, Waiter};
use crate::model::{ChannelNo, Epoch, GroupNo, Lsn, Offset, PolicyNo, SegmentNo, UnixMillis};
use crate::state::{AppliedRow, Batch, RocksStore, Store};
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

const CHANNELS: u64 = 3;

struct Opened {
    journal: Arc<Journal>,
    index: Arc<MessageIndex>,
    store: Arc<RocksStore>,
    reader: Reader,
    last_lsn: Lsn,
}

/// Opens everything in the order in which the broker does. The tail holds next to nothing.
fn open(folder: &Path) -> Opened {
    let store = Arc::new(RocksStore::open(&folder.join("state")).unwrap());
    let row = store.applied().unwrap();
    let applied = row.map(|row| Applied { segment: row.segment, lsn: row.lsn, journal_id: row.journal_id });
    let (tail, index) = (Arc::new(TailCache::new(0)), Arc::new(MessageIndex::new()));
    let feed = Arc::new(Feed::new(Arc::clone(&index), Arc::clone(&tail)));
    let config = JournalConfig { segment_bytes: 16 * 1024, spares: 0, ..JournalConfig::new(folder.join("journal")) };
    let (journal, recovery) = Journal::open(Arc::new(OsFileSystem), config, applied, feed).unwrap();
    let last_lsn = recovery.last_lsn;
    recovery.frames.for_each(|frame| drop(frame.unwrap()));
    let journal = Arc::new(journal);
    let segments = journal.segments();
    let exists = |segment| segments.iter().any(|info| info.segment == segment);
    let files = IndexFiles::open(Arc::new(OsFileSystem), folder.join("index"), journal.id(), exists).unwrap();
    let reader = Reader::open(tail, Arc::clone(&index), files, journal.clone(), store.clone()).unwrap();
    let sealed = segments.iter().filter(|info| info.last_lsn.is_some()).map(|info| info.segment);
    reader.adopt(row.map_or(SegmentNo(0), |row| row.segment), &sealed.collect::<Vec<_>>()).unwrap();
    Opened { journal, index, store, reader, last_lsn }
}

struct Told(Sender<()>);

impl Waiter for Told {
    fn release(self: Box<Self>, outcome: Result<(), JournalError>) {
        outcome.unwrap();
        self.0.send(()).unwrap();
    }
}

impl Opened {
    /// Keeps a frame of one message for each channel, all at this offset.
    fn publish(&mut self, offset: u64) {
        self.last_lsn = self.last_lsn.next();
        let record = |no| Record { channel: ChannelNo(no), offset: Offset(offset), bytes: message(no, offset) };
        let frame = Frame { lsn: self.last_lsn, entries: Vec::new(), records: (1..=CHANNELS).map(record).collect() };
        let (told, durable) = channel();
        self.journal.submit(Submission {
            broker_time: UnixMillis(offset),
            frames: vec![frame],
            applied: self.last_lsn,
            waiters: vec![Box::new(Told(told))],
            early_waiters: Vec::new(),
        });
        durable.recv().unwrap();
    }

    fn checkpoint(&self) {
        let holder = self.journal.segments().into_iter().rev().find(|info| info.first_lsn <= self.last_lsn);
        let mut batch = Batch::new(AppliedRow {
            journal_id: self.journal.id(),
            segment: holder.unwrap().segment,
            lsn: self.last_lsn,
            broker_time: UnixMillis(0),
            epoch: Epoch(0),
            next_channel: ChannelNo(CHANNELS + 1),
            next_policy: PolicyNo(1),
            next_group: GroupNo(1),
        });
        batch.puts = self.index.take_extents(self.last_lsn);
        self.store.checkpoint(batch).unwrap();
        self.index.extents_stored();
    }

    /// Every message up to `head` is there, and nothing else.
    fn holds_all_below(&self, head: u64) {
        let keys: Vec<_> = (1..=CHANNELS).flat_map(|no| (0..=head).map(move |o| (ChannelNo(no), Offset(o)))).collect();
        let read = self.reader.get_many(&keys).unwrap();
        for ((channel, offset), read) in keys.into_iter().zip(read) {
            let right = (offset.get() < head).then(|| message(channel.get(), offset.get()));
            assert_eq!(read, right, "{channel}/{offset} of {head}");
            assert_eq!(self.reader.get(channel, offset).unwrap(), right);
        }
    }
}

fn message(channel: u64, offset: u64) -> Bytes {
    let mut bytes = format!("message {offset} of channel {channel} ").into_bytes();
    bytes.resize(bytes.len() + (offset as usize * 37) % 900, b'.');
    Bytes::from(bytes)
}

#[test]
fn messages_are_found_over_segments_checkpoints_and_restarts() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut opened = open(folder.path());
    let mut head = 0;
    for round in 0..8 {
        for _ in 0..25 {
            opened.publish(head);
            head += 1;
        }
        opened.holds_all_below(head);
        if round % 2 == 1 {
            opened.checkpoint();
            opened.holds_all_below(head);
        }
        // Some rounds end with a restart, some of these with the next one right behind.
        for _ in 0..round % 3 {
            drop(opened);
            opened = open(folder.path());
            opened.holds_all_below(head);
        }
    }
    assert!(opened.journal.segments().len() > 8, "segments were crossed");
    opened.checkpoint();
    drop(opened);
    std::fs::remove_dir_all(folder.path().join("index")).unwrap();
    open(folder.path()).holds_all_below(head);
}
