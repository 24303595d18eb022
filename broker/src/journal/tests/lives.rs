//! A journal's lives under one seed: each opens, submits in bursts, reads, and dies in some call, often while it
//! recovers. After each the promises are checked.

use super::broken::{Broken, LeftOut};
use super::rig::{Index, Rig, Told, published, submission};
use crate::fs::FileSystem;
use crate::fs::sim::SimDisk;
use crate::journal::config::Flaw;
use crate::journal::error::OpenError;
use crate::journal::segment::{SegmentHeader, segment_no};
use crate::journal::sums::unchecked;
use crate::journal::{Journal, Submission, SyncMode};
use crate::model::Lsn;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Lives of the broker a seed.
const LIVES: u32 = 6;
/// Frames submitted in a life.
const FRAMES_MAX: u64 = 300;

/// What may happen in them.
#[derive(Clone, Copy)]
pub(super) struct Chances {
    pub(super) sync: SyncMode,
    pub(super) spares: usize,
    /// How many submissions are publishes that only ask for the write.
    pub(super) early: f64,
    /// How often the machine goes down with the process.
    pub(super) power: f64,
    /// How often a byte of a confirmed message decays after a life that ended in order.
    pub(super) decay: f64,
}

/// How the journal is broken by hand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mutation {
    Step(LeftOut),
    Writer(Flaw),
    SumsUnchecked,
}

/// Runs one seed. Panics with the promise that was broken.
pub(super) fn run(seed: u64, chances: Chances, mutation: Option<Mutation>) {
    let mut lives = Lives::new(seed, chances, mutation);
    for life in 0..LIVES {
        lives.live(&format!("seed {seed}, life {life}"));
    }
}

struct Lives {
    disk: SimDisk,
    rng: StdRng,
    chances: Chances,
    mutation: Option<Mutation>,
    /// The last LSN that somebody was told is durable, or was shown.
    confirmed: Lsn,
    submitted: Lsn,
}

impl Lives {
    fn new(seed: u64, chances: Chances, mutation: Option<Mutation>) -> Self {
        let disk = SimDisk::new(seed);
        let mut rng = StdRng::seed_from_u64(seed ^ 0x5EED);
        disk.set_forgets(rng.random_bool(0.7));
        Self { disk, rng, chances, mutation, confirmed: Lsn(0), submitted: Lsn(0) }
    }

    fn rig(&self) -> Rig {
        let fs: Arc<dyn FileSystem> = match self.mutation {
            Some(Mutation::Step(left_out)) => Arc::new(Broken::new(self.disk.process(), left_out)),
            _ => self.disk.process(),
        };
        let mut rig = Rig::new(fs, Path::new("/data"));
        (rig.config.sync, rig.config.spares) = (self.chances.sync, self.chances.spares);
        if let Some(Mutation::Writer(flaw)) = self.mutation {
            rig.config.flaw = Some(flaw);
        }
        rig
    }

    fn recover(&self, rig: &Rig) -> Result<(Journal, Lsn), OpenError> {
        match self.mutation {
            Some(Mutation::SumsUnchecked) => unchecked::during(|| rig.recover()),
            _ => rig.recover(),
        }
    }

    fn live(&mut self, name: &str) {
        let rig = self.rig();
        let dies_early = self.rng.random_bool(0.3);
        self.disk.die_at_call(self.rng.random_range(0..if dies_early { 60 } else { 600 }));
        if self.rng.random_bool(0.3) {
            self.disk.fail_call(self.rng.random_range(0..300), ErrorKind::Other);
        }
        let mut ended_in_order = false;
        match self.recover(&rig) {
            Ok((journal, last)) => {
                let (confirmed, submitted) = (self.confirmed, self.submitted);
                assert!(last >= confirmed, "{name}: {confirmed} was confirmed, {last} is there");
                assert!(last <= submitted, "{name}: {submitted} was submitted, {last} is there");
                self.nothing_stands_behind_an_end(name);
                // What recovery has shown counts as confirmed.
                (self.confirmed, self.submitted) = (last, last);
                ended_in_order = self.work(&journal, name);
            }
            Err(OpenError::Io { .. }) => {}
            Err(refused) => panic!("{name}: {refused}"),
        }
        if ended_in_order && self.rng.random_bool(self.chances.decay) {
            self.decay(&rig, name);
        }
        if self.rng.random_bool(self.chances.power) { self.disk.power_cut() } else { self.disk.kill() }
    }

    /// Submits until the journal closes or there is enough; whether it ended in order.
    fn work(&mut self, journal: &Journal, name: &str) -> bool {
        let (told, shown, early) = (Told::default(), Told::default(), Told::default());
        let (last, mut count) = (self.submitted, 0);
        while journal.closed().is_none() && self.submitted.get() - last.get() < FRAMES_MAX {
            for _ in 0..self.rng.random_range(1..8) {
                self.submitted = self.submitted.next();
                if self.rng.random_bool(self.chances.early) {
                    journal.submit(published(self.submitted, &early));
                } else {
                    journal.submit(submission(self.submitted, &told));
                    count += 1;
                }
            }
            // Somebody reads what all these have done.
            journal.submit(Submission { frames: Vec::new(), ..submission(self.submitted, &shown) });
            if self.rng.random_bool(0.7) {
                told.first(count);
            }
        }
        let killed = self.rng.random_bool(0.2);
        if killed {
            self.disk.kill();
        }
        let closed = journal.close();
        let told = told.all();
        assert!(told.is_sorted(), "{name}: told out of order");
        assert!(told.is_sorted_by_key(|(_, durable)| !durable), "{name}: a hole");
        let last_told = told.iter().rfind(|(_, durable)| *durable).map(|(lsn, _)| *lsn);
        self.confirmed = self.confirmed.max(last_told.unwrap_or_default()).max(shown.confirmed());
        closed.is_ok() && !killed
    }

    /// A byte of a confirmed message changes while the broker is down. The next opening has to refuse.
    fn decay(&mut self, rig: &Rig, name: &str) {
        let placed = rig.index.placed.lock().clone();
        let in_danger = |record: &&crate::journal::Placed| !record.bytes.is_empty() && record.offset.get() > 0;
        let records: Vec<_> = placed.iter().filter(in_danger).collect();
        // The last one as often as any other: there the end of the journal is near.
        let Some(last) = records.last() else { return };
        let record = if self.rng.random_bool(0.5) { last } else { &records[self.rng.random_range(0..records.len())] };
        if Lsn(record.offset.get()) > self.confirmed {
            return;
        }
        let path = segment_file(&self.disk, record.place.segment.get());
        let at = record.place.position as usize + RECORD_HEADER_LEN + self.rng.random_range(0..record.bytes.len());
        let mask = 1 << self.rng.random_range(0..8);
        self.disk.kill();
        self.disk.decay(&path, at, mask);
        let mut again = self.rig();
        again.index = Arc::new(Index::default());
        match self.recover(&again) {
            Err(OpenError::DataLoss { .. }) => {}
            Err(other) => panic!("{name}: a confirmed byte decayed, and the opening says: {other}"),
            Ok((_, last)) => panic!("{name}: a byte of {} decayed and nobody says so; {last} is there", record.offset),
        }
        self.disk.kill();
        self.disk.decay(&path, at, mask);
    }

    /// What is cut is gone: behind the place where the next segment says a segment ends, there is nothing.
    fn nothing_stands_behind_an_end(&self, name: &str) {
        for segment in self.disk.list(&folder()).iter().filter_map(|name| segment_no(name)) {
            let block = self.disk.contents(&segment_file(&self.disk, segment.get()));
            let Ok((header, _)) = SegmentHeader::decode(&block[..BLOCK], segment) else { continue };
            let Some(previous) = header.previous else { continue };
            let before = self.disk.contents(&segment_file(&self.disk, previous.segment.get()));
            let behind = before.get(previous.end as usize..).unwrap_or_default();
            let what = previous.segment;
            assert!(behind.iter().all(|byte| *byte == 0), "{name}: something stands behind the end of segment {what}");
        }
    }
}

/// Bytes of a segment's header.
const BLOCK: usize = 4096;
/// Bytes of a record's header.
const RECORD_HEADER_LEN: usize = 24;

fn folder() -> PathBuf {
    PathBuf::from("/data/journal")
}

fn segment_file(disk: &SimDisk, segment: u64) -> PathBuf {
    let names = disk.list(&folder());
    let name = names.iter().find(|name| segment_no(name).is_some_and(|no| no.get() == segment));
    folder().join(name.expect("a segment of this number"))
}
