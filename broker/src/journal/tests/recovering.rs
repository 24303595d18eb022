//! One crash each, placed exactly.

use super::rig::{frame, submit};
use super::{Rig, Told};
use crate::fs::sim::SimDisk;
use crate::journal::damage::Damage;
use crate::journal::error::OpenError;
use crate::journal::{Journal, JournalError};
use crate::model::{Lsn, SegmentNo};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const SEGMENT_1: &str = "000000000001.seg";

fn rig(disk: &SimDisk) -> Rig {
    Rig::new(disk.process(), Path::new("/data"))
}

fn path(rig: &Rig, name: &str) -> PathBuf {
    rig.config.dir.join(name)
}

/// Writes the frames up to `last`, one a group, and closes in good order. Returns where each group ends in segment 1.
fn written(disk: &SimDisk, last: u64) -> Vec<usize> {
    let rig = rig(disk);
    let (journal, _) = rig.open().unwrap();
    let told = Told::default();
    let mut ends = Vec::new();
    for lsn in 1..=last {
        submit(&journal, lsn, lsn, &told);
        told.first(lsn as usize);
        ends.push(used(disk, &rig, SEGMENT_1));
    }
    journal.close().unwrap();
    ends
}

/// Where the last byte that is not zero stands, as a multiple of 8.
fn used(disk: &SimDisk, rig: &Rig, name: &str) -> usize {
    let bytes = disk.contents(&path(rig, name));
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| (last + 1).next_multiple_of(8))
}

/// Opens after a crash, appends one frame, and opens again: what was there stays, and the folder is sound.
fn lives_on(disk: &SimDisk, expected: Lsn) {
    let (journal, last) = rig(disk).recover().unwrap();
    assert_eq!(last, expected);
    let told = Told::default();
    submit(&journal, last.get() + 1, last.get() + 1, &told);
    drop(journal);
    assert_eq!(told.all(), [(last.next(), true)]);
    assert_eq!(rig(disk).recover().unwrap().1, last.next());
}

/// Makes a disk whose journal holds `frames` whole groups, then the first `kept` bytes of the next.
fn torn(frames: u64, kept: usize) -> (SimDisk, usize) {
    let disk = SimDisk::new(1);
    let ends = written(&disk, frames + 1);
    let (start, end) = (ends[frames as usize - 1], ends[frames as usize]);
    let segment = path(&rig(&disk), SEGMENT_1);
    let bytes = disk.contents(&segment);
    let file = disk.process().open(&segment).unwrap();
    file.write_all_at(&vec![0; bytes.len() - start - kept], (start + kept) as u64).unwrap();
    (disk, end - start)
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_off_and_kept_aside() {
    let length = torn(6, 0).1;
    for kept in 0..length {
        let (disk, _) = torn(6, kept);
        let rig = rig(&disk);
        let torn = disk.contents(&path(&rig, SEGMENT_1));
        let (journal, recovery) = rig.open().unwrap();
        let last = torn.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        // Trailing zeros of a group are as good when they were zeros before.
        if recovery.last_lsn == Lsn(7) {
            assert!(recovery.cut.is_none());
            continue;
        }
        assert_eq!(recovery.last_lsn, Lsn(6));
        if let Some(cut) = recovery.cut {
            assert_eq!(cut.position as usize + cut.bytes as usize, last);
            assert_eq!(disk.contents(&cut.kept_in.unwrap()), torn[cut.position as usize..last]);
        } else {
            assert!(last <= disk.contents(&path(&rig, SEGMENT_1)).len());
        }
        assert_eq!(recovery.frames.map(|frame| frame.unwrap().lsn.get()).max(), Some(6));
        drop(journal);
        lives_on(&disk, Lsn(6));
    }
}

#[test]
fn a_flipped_bit_in_a_proven_place_is_refused_and_named_wherever_it_is() {
    let disk = SimDisk::new(1);
    let ends = written(&disk, 8);
    let rig = rig(&disk);
    let segment = path(&rig, SEGMENT_1);
    for at in (0..ends[7]).filter(|at| *at >= 4096 || at % 97 == 0) {
        let mask = 1 << (at % 8);
        disk.decay(&segment, at, mask);
        let before = disk.contents(&segment);
        let refused = rig.open().err().unwrap_or_else(|| panic!("byte {at} was accepted"));
        let group = ends.iter().copied().take_while(|end| *end <= at).last().unwrap_or(4096);
        let expected = if at < 4096 { 0 } else { group as u32 };
        assert!(
            matches!(refused, OpenError::DataLoss { segment: SegmentNo(1), position, .. } if position == expected),
            "byte {at}: {refused}"
        );
        assert!(disk.contents(&segment) == before, "a refused folder is left as it is");
        disk.decay(&segment, at, mask);
    }
    assert_eq!(rig.recover().unwrap().1, Lsn(8));
}

#[test]
fn a_whole_proven_group_wiped_is_not_taken_for_the_end() {
    let disk = SimDisk::new(1);
    let ends = written(&disk, 8);
    let segment = path(&rig(&disk), SEGMENT_1);
    disk.process().open(&segment).unwrap().write_all_at(&vec![0; ends[7] - ends[6]], ends[6] as u64).unwrap();
    let refused = rig(&disk).open().err().unwrap();
    assert!(matches!(refused, OpenError::DataLoss { what: Damage::Absent, .. }), "{refused}");
}

#[test]
fn damage_in_an_earlier_segment_is_met_on_the_way_and_ends_the_frames() {
    let disk = SimDisk::new(1);
    written(&disk, 100);
    let rig = rig(&disk);
    disk.decay(&path(&rig, "000000000002.seg"), 4096 + 100, 4);
    let (_journal, recovery) = rig.open().unwrap();
    let mut frames = recovery.frames;
    let refused = frames.find_map(Result::err).unwrap();
    assert!(matches!(refused, OpenError::DataLoss { segment: SegmentNo(2), position: 4096, .. }), "{refused}");
    assert!(frames.next().is_none());
}

#[test]
fn a_folder_opened_at_every_death_of_the_opening_loses_nothing() {
    // The first crash leaves a torn tail, the second hits every call of the recovery, with and without the machine.
    for power in [false, true] {
        for nth in 0.. {
            let (disk, _) = torn(6, 60);
            let fs_calls = disk.calls();
            disk.die_at_call(nth);
            let opened = rig(&disk).open();
            let finished = opened.is_ok();
            drop(opened);
            if power {
                disk.power_cut()
            } else {
                disk.kill()
            }
            lives_on(&disk, Lsn(6));
            if finished {
                assert!(disk.calls() > fs_calls && nth > 10);
                break;
            }
        }
    }
}

#[test]
fn each_call_of_an_opening_may_fail_once_and_the_next_opening_is_sound() {
    for nth in 0.. {
        let (disk, _) = torn(6, 60);
        let (before, rig) = (disk.calls(), rig(&disk));
        disk.fail_call(nth, ErrorKind::Other);
        match rig.open() {
            Err(error) => assert!(matches!(error, OpenError::Io { .. }), "call {nth}: {error}"),
            Ok((_, recovery)) => assert_eq!(recovery.last_lsn, Lsn(6)),
        }
        let all_made = disk.calls() - before <= nth;
        disk.kill();
        lives_on(&disk, Lsn(6));
        if all_made {
            break;
        }
    }
}

/// Submits frames one by one until the journal closes; returns what was told.
fn submit_until_closed(journal: &Journal, first: u64, told: &Told) {
    for (nth, lsn) in (first..first + 120).enumerate() {
        submit(journal, lsn, lsn, told);
        if !told.first(nth + 1)[nth].1 {
            return;
        }
    }
}

#[test]
fn each_call_of_the_writer_may_fail_once_and_what_was_confirmed_stays() {
    for power in [false, true] {
        for nth in 0..120 {
            let disk = SimDisk::new(nth);
            let first = rig(&disk);
            let (journal, _) = first.open().unwrap();
            let told = Told::default();
            let (closed, when_closed) = std::sync::mpsc::channel();
            journal.when_closed(move || closed.send(()).unwrap());
            disk.fail_call(nth, ErrorKind::Other);
            submit_until_closed(&journal, 1, &told);
            when_closed.recv().expect("whoever asked is told that it closed");
            let confirmed = told.confirmed();
            assert_eq!(journal.durable(), confirmed);
            assert!(matches!(journal.closed(), Some(JournalError::Failed { .. })), "call {nth}");
            for record in first.index.placed.lock().iter().filter(|record| record.offset.get() <= confirmed.get()) {
                let read = journal.read_run(&[record.place]).unwrap();
                assert_eq!(read, *std::slice::from_ref(&record.bytes), "what is durable is still read");
            }
            drop(journal);
            if power {
                disk.power_cut()
            } else {
                disk.kill()
            }
            let (_journal, last) = rig(&disk).recover().unwrap();
            assert!(
                last >= confirmed && last.get() <= told.all().len() as u64,
                "call {nth}: {confirmed}, found {last}"
            );
        }
    }
}

#[test]
fn a_full_disk_closes_the_journal_and_a_restart_with_room_goes_on() {
    let disk = SimDisk::new(1);
    let (journal, _) = rig(&disk).open().unwrap();
    let told = Told::default();
    disk.set_capacity(Some(3 * 16 * 1024 + 100));
    submit_until_closed(&journal, 1, &told);
    let confirmed = told.confirmed();
    assert!(confirmed > Lsn(50));
    assert!(
        matches!(&journal.closed(), Some(JournalError::Failed { source, .. }) if source.kind() == ErrorKind::StorageFull)
    );
    drop(journal);
    disk.power_cut();
    disk.set_capacity(None);
    lives_on(&disk, confirmed);
}

#[test]
fn a_disk_counts_as_full_while_there_is_a_reserve_and_no_longer_once_there_is_room() {
    const SEGMENT: usize = 16 * 1024;
    let disk = SimDisk::new(1);
    let mut rig = rig(&disk);
    rig.config.spares = 2;
    // The segment in use and one spare; what is left of this is less than the reserve and another spare.
    disk.set_capacity(Some(5 * SEGMENT - 1));
    let (journal, _) = rig.open().unwrap();
    while !journal.storage_full() {
        std::thread::yield_now();
    }
    assert_eq!(journal.spares(), 1);
    let told = Told::default();
    submit(&journal, 1, 100, &told);
    told.first(100);
    assert!(journal.closed().is_none(), "what is taken all the same has its room");
    disk.set_capacity(None);
    while journal.storage_full() {
        std::thread::yield_now();
    }
    assert_eq!(journal.spares(), 2);
}

#[test]
fn a_cut_without_room_for_its_copy_is_dropped_and_the_folder_opens() {
    let (disk, _) = torn(6, 60);
    let rig = rig(&disk);
    let size = 16 * 1024;
    let spare = disk.process().create(&path(&rig, "spare-000007")).unwrap();
    spare.write_all_at(&vec![0; size], 0).unwrap();
    disk.set_capacity(Some(2 * size));
    let (_journal, recovery) = rig.open().unwrap();
    let cut = recovery.cut.unwrap();
    assert!(cut.bytes > 48 && cut.bytes <= 60);
    assert_eq!(cut.kept_in, None);
    assert_eq!(recovery.last_lsn, Lsn(6));
}

#[test]
fn a_group_has_a_witness_soon_after_though_nothing_follows() {
    let disk = SimDisk::new(1);
    let rig = rig(&disk);
    let (journal, _) = rig.open().unwrap();
    let told = Told::default();
    submit(&journal, 1, 1, &told);
    told.first(1);
    let calls = disk.calls();
    // The witness is one write and one sync.
    while disk.calls() < calls + 2 {
        std::thread::yield_now();
    }
    let placed = rig.index.placed.lock().clone();
    drop(journal);
    let record = placed.iter().find(|record| !record.bytes.is_empty()).unwrap();
    assert_eq!(frame(Lsn(1)).records.len(), 1);
    disk.decay(&path(&rig, SEGMENT_1), record.place.position as usize + 24, 1);
    let refused = rig.open().err().unwrap();
    assert!(matches!(refused, OpenError::DataLoss { what: Damage::Record, .. }), "{refused}");
}
