//! Bytes that nobody of ours wrote: an opening refuses, or hands out only what was submitted.

use super::rig::{check, submit};
use super::{Rig, Told};
use crate::fs::sim::SimDisk;
use crate::journal::error::OpenError;
use crate::journal::inspect::inspect;
use crate::journal::{Applied, Journal, Placed, Placements};
use crate::model::{Lsn, SegmentNo};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::path::Path;
use std::sync::Arc;

fn rig(disk: &SimDisk) -> Rig {
    Rig::new(disk.process(), Path::new("/data"))
}

/// A folder with 100 frames in some segments, closed in good order: every frame is proven. With the journal's id.
fn sound(seed: u64) -> (SimDisk, u128) {
    let disk = SimDisk::new(seed);
    let (journal, _) = rig(&disk).open().unwrap();
    submit(&journal, 1, 100, &Told::default());
    journal.close().unwrap();
    (disk, journal.id())
}

#[test]
fn whatever_is_overwritten_an_opening_refuses_or_hands_out_all_that_was_submitted() {
    for seed in 0..300 {
        let (disk, journal_id) = sound(seed);
        let mut rng = StdRng::seed_from_u64(seed);
        let rig = rig(&disk);
        let segment = rng.random_range(1..=3);
        let path = rig.config.dir.join(format!("{segment:012}.seg"));
        let before = disk.contents(&path);
        let witness = used(&before) - 48;
        let file = disk.process().open(&path).unwrap();
        let from = rng.random_range(0..before.len());
        let len = rng.random_range(1..=(before.len() - from).min(600));
        match rng.random_range(0..4) {
            0 => file.write_all_at(&vec![0; len], from as u64).unwrap(),
            1 => {
                let noise: Vec<u8> = (0..len).map(|_| rng.random()).collect();
                file.write_all_at(&noise, from as u64).unwrap();
            }
            // A block of the same segment in another place: whole groups that verify elsewhere.
            2 => {
                let to = rng.random_range(0..=before.len() - len);
                file.write_all_at(&before[from..from + len], to as u64).unwrap();
            }
            _ => file.set_len(from as u64).unwrap(),
        }
        let after = disk.contents(&path);
        // The very last proof is an empty group; damage that takes it along leaves nobody but the state to tell.
        let proof_gone = after.get(witness..used(&before)) != before.get(witness..used(&before));
        let applied = Applied { segment: SegmentNo(1), lsn: Lsn(if proof_gone { 100 } else { 0 }), journal_id };
        match rig.open_after(Some(applied)) {
            Ok((_journal, recovery)) => {
                assert_eq!(recovery.last_lsn, Lsn(100), "seed {seed}");
                for frame in recovery.frames {
                    match frame {
                        Ok(frame) => check(&frame, frame.lsn),
                        Err(OpenError::DataLoss { .. }) => assert!(after != before, "seed {seed}"),
                        Err(error) => panic!("seed {seed}: {error}"),
                    }
                }
            }
            Err(OpenError::DataLoss { .. }) => {
                assert!(after != before, "seed {seed}: a sound folder was refused");
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
}

/// Bytes of a segment that are not zero, up to the last one, as a multiple of 8.
fn used(bytes: &[u8]) -> usize {
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
    (last + 1).next_multiple_of(8)
}

#[test]
fn an_inspection_shows_every_frame_and_names_the_fault() {
    let (disk, _) = sound(1);
    let (rig, fs) = (rig(&disk), disk.process());
    let mut shown = Vec::new();
    let found = inspect(fs.as_ref(), &rig.config.dir, &mut |_, frame| shown.push(frame.lsn.get())).unwrap();
    assert_eq!(shown, (1..=100).collect::<Vec<_>>());
    assert!(found.iter().all(|segment| segment.fault.is_none()));
    assert_eq!(found.iter().map(|segment| segment.frames).sum::<u64>(), 100);

    let (second, last) = (found[1], found[found.len() - 1]);
    disk.decay(&rig.config.dir.join("000000000002.seg"), second.end as usize - 30, 1);
    let tail = rig.config.dir.join(format!("{:012}.seg", last.segment));
    disk.decay(&tail, last.end as usize + 8, 1);
    let found = inspect(fs.as_ref(), &rig.config.dir, &mut |_, _| ()).unwrap();
    let faults: Vec<_> = found.iter().filter_map(|found| Some((found.segment, found.fault?.proven))).collect();
    assert_eq!(faults, [(SegmentNo(2), true), (last.segment, false)]);
}

/// Panics at the first record.
struct Clumsy;

impl Placements for Clumsy {
    fn placed(&self, _: SegmentNo, _: &[Placed]) {
        panic!("dropped it");
    }

    fn sealed(&self, _: SegmentNo, _: Lsn) {}
}

#[test]
fn a_panic_on_the_writers_thread_leaves_nobody_waiting() {
    let disk = SimDisk::new(1);
    let config = rig(&disk).config;
    let (journal, _) = Journal::open(disk.process(), config, None, Arc::new(Clumsy)).unwrap();
    let told = Told::default();
    submit(&journal, 1, 20, &told);
    assert!(told.first(20).iter().all(|(_, durable)| !durable));
    assert!(journal.closed().is_some());
    submit(&journal, 21, 21, &told);
    assert_eq!(told.first(21)[20], (Lsn(21), false));
    assert!(journal.close().is_err());
}
