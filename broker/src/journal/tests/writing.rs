//! The writer and the readers, on the machine's own file system.

use super::rig::{frame, published, submission, submit, time_of};
use super::{Rig, Told};
use crate::fs::OsFileSystem;
use crate::journal::error::OpenError;
use crate::journal::{Applied, Frame, JournalError, Place, ReadError, Submission, SyncMode};
use crate::model::{Lsn, SegmentNo, UnixMillis};
use std::sync::Arc;
use std::time::Duration;

fn rig() -> (Rig, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    (Rig::new(Arc::new(OsFileSystem), dir.path()), dir)
}

#[test]
fn what_was_submitted_comes_back_in_order_over_many_segments() {
    let (rig, _dir) = rig();
    let told = Told::default();
    let (journal, recovery) = rig.open().unwrap();
    assert_eq!((recovery.last_lsn, recovery.cut), (Lsn(0), None));
    submit(&journal, 1, 200, &told);
    let all = told.first(200);
    assert_eq!(all, (1..=200).map(|lsn| (Lsn(lsn), true)).collect::<Vec<_>>());
    assert_eq!((journal.durable(), journal.backlog_bytes()), (Lsn(200), 0));
    assert!(journal.segments().len() > 3);
    journal.close().unwrap();
    drop(journal);
    let (journal, last) = rig.recover().unwrap();
    assert_eq!(last, Lsn(200));
    submit(&journal, 201, 210, &told);
    drop(journal);
    assert_eq!(rig.recover().unwrap().1, Lsn(210));
}

#[test]
fn frames_up_to_the_applied_lsn_are_placed_but_not_handed_out() {
    let (rig, _dir) = rig();
    let (journal, recovery) = rig.open().unwrap();
    let journal_id = recovery.journal_id;
    submit(&journal, 1, 100, &Told::default());
    drop(journal);
    for lsn in [0, 1, 50, 99, 100].map(Lsn) {
        let applied = Applied { segment: SegmentNo(1), lsn, journal_id };
        let (_journal, recovery) = rig.open_after(Some(applied)).unwrap();
        assert_eq!((recovery.last_lsn, recovery.broker_time), (Lsn(100), time_of(Lsn(100))));
        let frames: Vec<_> = recovery.frames.map(|frame| frame.unwrap().lsn).collect();
        assert_eq!(frames, (lsn.get() + 1..=100).map(Lsn).collect::<Vec<_>>());
    }
}

#[test]
fn a_state_that_does_not_fit_the_folder_is_refused() {
    let (rig, _dir) = rig();
    let applied = |segment, lsn, journal_id| Applied { segment: SegmentNo(segment), lsn: Lsn(lsn), journal_id };
    assert!(matches!(rig.open_after(Some(applied(1, 0, 7))), Err(OpenError::DataLoss { .. })));
    let (journal, recovery) = rig.open().unwrap();
    let id = recovery.journal_id;
    submit(&journal, 1, 10, &Told::default());
    assert!(matches!(rig.open(), Err(OpenError::Locked(_))));
    drop(journal);
    assert!(matches!(rig.open_after(Some(applied(1, 11, id))), Err(OpenError::DataLoss { .. })));
    assert!(matches!(rig.open_after(Some(applied(2, 10, id))), Err(OpenError::DataLoss { .. })));
    assert!(matches!(rig.open_after(Some(applied(1, 10, id + 1))), Err(OpenError::WrongJournal { .. })));
    assert!(rig.open_after(Some(applied(1, 10, id))).is_ok());
}

#[test]
fn records_are_read_where_they_were_placed_alone_and_in_runs() {
    let (rig, _dir) = rig();
    let told = Told::default();
    let (journal, _) = rig.open().unwrap();
    submit(&journal, 1, 120, &told);
    told.first(120);
    let placed = rig.index.placed.lock().clone();
    assert_eq!(placed.len(), (1..=120).map(|lsn| frame(Lsn(lsn)).records.len()).sum::<usize>());
    for record in &placed {
        assert_eq!(journal.read_run(&[record.place]).unwrap(), *std::slice::from_ref(&record.bytes));
    }
    for run in placed.chunk_by(|a, b| a.place.segment == b.place.segment) {
        let places: Vec<_> = run.iter().map(|record| record.place).collect();
        let expected: Vec<_> = run.iter().map(|record| record.bytes.clone()).collect();
        assert_eq!(journal.read_run(&places).unwrap(), expected);
    }
    let place = placed.iter().find(|record| !record.bytes.is_empty()).unwrap().place;
    for wrong in [
        Place { position: place.position + 8, ..place },
        Place { len: place.len - 1, ..place },
        Place { len: u32::MAX, ..place },
        Place { position: u32::MAX, ..place },
    ] {
        assert!(matches!(journal.read_run(&[wrong]), Err(ReadError::Damaged { .. })), "{wrong:?}");
    }
    assert!(matches!(journal.read_run(&[Place { segment: SegmentNo(99), ..place }]), Err(ReadError::Gone(_))));
}

#[test]
fn a_sealed_segment_shows_its_records_again() {
    let (rig, _dir) = rig();
    let (journal, _) = rig.open().unwrap();
    submit(&journal, 1, 120, &Told::default());
    journal.close().unwrap();
    let mut seen = Vec::new();
    for (segment, last_lsn) in rig.index.sealed.lock().clone() {
        let found = journal.scan_segment(segment, &mut |records| seen.extend_from_slice(records)).unwrap();
        assert_eq!(found, last_lsn);
        let info = journal.segments().into_iter().find(|info| info.segment == segment).unwrap();
        assert_eq!(info.last_lsn, Some(last_lsn));
    }
    assert!(seen.len() > 50);
    assert_eq!(seen, rig.index.placed.lock()[..seen.len()]);
}

#[test]
fn removed_segments_are_gone_and_the_rest_opens() {
    let (rig, _dir) = rig();
    let (journal, recovery) = rig.open().unwrap();
    let journal_id = recovery.journal_id;
    let told = Told::default();
    submit(&journal, 1, 120, &told);
    told.first(120);
    let segments = journal.segments();
    let (first, second, last) = (segments[0], segments[1], segments[segments.len() - 1]);
    assert_eq!(journal.remove(&[first.segment, second.segment, last.segment]).unwrap(), 2);
    let place = rig.index.placed.lock()[0].place;
    assert!(matches!(journal.read_run(&[place]), Err(ReadError::Gone(_))));
    drop(journal);
    let missed = Applied { segment: SegmentNo(1), lsn: Lsn(second.last_lsn.unwrap().get() - 1), journal_id };
    assert!(matches!(rig.open_after(Some(missed)), Err(OpenError::DataLoss { .. })));
    let applied = Applied { segment: SegmentNo(1), lsn: second.last_lsn.unwrap(), journal_id };
    let (_journal, recovery) = rig.open_after(Some(applied)).unwrap();
    assert_eq!(recovery.frames.count() as u64, 120 - second.last_lsn.unwrap().get());
}

#[test]
fn a_missing_segment_in_the_middle_is_data_loss() {
    let (rig, _dir) = rig();
    let (journal, _) = rig.open().unwrap();
    submit(&journal, 1, 120, &Told::default());
    drop(journal);
    std::fs::remove_file(rig.config.dir.join("000000000002.seg")).unwrap();
    let refused = rig.open().err().unwrap();
    assert!(matches!(refused, OpenError::DataLoss { segment: SegmentNo(2), .. }), "{refused}");
}

#[test]
fn one_submission_may_fill_several_segments_and_its_waiters_go_last() {
    let (rig, _dir) = rig();
    let told = Told::default();
    let (journal, _) = rig.open().unwrap();
    journal.submit(Submission {
        broker_time: UnixMillis(5),
        frames: (1..=150).map(|lsn| frame(Lsn(lsn))).collect(),
        applied: Lsn(150),
        waiters: vec![told.waiter(Lsn(150))],
        early_waiters: vec![told.waiter(Lsn(149))],
    });
    assert_eq!(told.first(2), [(Lsn(149), true), (Lsn(150), true)]);
    assert_eq!(journal.durable(), Lsn(150));
    assert!(journal.segments().len() > 3);
}

#[test]
fn waiters_without_frames_go_in_turn_and_at_once_when_nothing_is_before_them() {
    let (rig, _dir) = rig();
    let told = Told::default();
    let (journal, _) = rig.open().unwrap();
    let read = |applied: u64, mark: u64| Submission {
        broker_time: UnixMillis(0),
        frames: Vec::new(),
        applied: Lsn(applied),
        waiters: vec![told.waiter(Lsn(mark))],
        early_waiters: Vec::new(),
    };
    journal.submit(read(0, 77));
    assert_eq!(told.all(), [(Lsn(77), true)]);
    submit(&journal, 1, 1, &told);
    journal.submit(read(1, 78));
    submit(&journal, 2, 2, &told);
    assert_eq!(told.first(4).iter().map(|(lsn, _)| lsn.get()).collect::<Vec<_>>(), [77, 1, 78, 2]);
}

#[test]
fn after_close_only_what_is_durable_is_confirmed() {
    let (rig, _dir) = rig();
    let told = Told::default();
    let (journal, _) = rig.open().unwrap();
    submit(&journal, 1, 3, &told);
    journal.close().unwrap();
    assert!(matches!(journal.closed(), Some(JournalError::Closed)));
    submit(&journal, 4, 4, &told);
    journal.submit(Submission { frames: Vec::new(), applied: Lsn(3), ..submission(Lsn(3), &told) });
    assert_eq!(told.all()[3..], [(Lsn(4), false), (Lsn(3), true)]);
    journal.close().unwrap();
}

#[test]
fn a_frame_that_is_too_long_or_out_of_turn_closes_the_journal() {
    let (rig, _dir) = rig();
    let told = Told::default();
    let (journal, _) = rig.open().unwrap();
    submit(&journal, 1, 1, &told);
    let frame = Frame { lsn: Lsn(2), entries: vec![0; 8 * 1024], records: Vec::new() };
    journal.submit(Submission { frames: vec![frame], ..submission(Lsn(2), &told) });
    submit(&journal, 3, 3, &told);
    assert_eq!(told.first(3), [(Lsn(1), true), (Lsn(2), false), (Lsn(3), false)]);
    assert!(matches!(journal.closed(), Some(JournalError::FrameTooLong { lsn: Lsn(2), .. })));
    assert!(journal.close().is_err());
    drop(journal);
    let (journal, _) = rig.recover().unwrap();
    submit(&journal, 3, 3, &told);
    assert_eq!(told.first(4)[3], (Lsn(3), false));
    assert!(matches!(journal.closed(), Some(JournalError::OutOfOrder { expected: Lsn(2), found: Lsn(3) })));
    assert_eq!(journal.backlog_bytes(), 0);
}

#[test]
fn a_frame_of_just_half_a_segment_fits() {
    let (rig, _dir) = rig();
    let told = Told::default();
    let (journal, _) = rig.open().unwrap();
    for lsn in 1..=3 {
        let frame = Frame { lsn: Lsn(lsn), entries: vec![7; 8 * 1024 - 24], records: Vec::new() };
        journal.submit(Submission { frames: vec![frame], ..submission(Lsn(lsn), &told) });
    }
    assert_eq!(told.first(3), [(Lsn(1), true), (Lsn(2), true), (Lsn(3), true)]);
    drop(journal);
    let (_journal, recovery) = rig.open().unwrap();
    assert!(recovery.frames.map(|frame| frame.unwrap().entries.len()).eq([8 * 1024 - 24; 3]));
}

#[test]
fn with_an_interval_publish_replies_leave_before_the_sync_and_the_rest_after_it() {
    let (mut rig, _dir) = rig();
    rig.config.sync = SyncMode::Interval(Duration::from_secs(1));
    let told = Told::default();
    let (journal, _) = rig.open().unwrap();
    journal.submit(published(Lsn(1), &told));
    told.first(1);
    journal.submit(published(Lsn(2), &told));
    submit(&journal, 3, 3, &told);
    assert_eq!(told.first(3), [(Lsn(1), true), (Lsn(2), true), (Lsn(3), true)]);
    assert_eq!(journal.durable(), Lsn(3));
    journal.submit(published(Lsn(4), &told));
    journal.close().unwrap();
    assert_eq!(journal.durable(), Lsn(4));
}

#[test]
fn spares_are_kept_over_a_restart_and_unfinished_ones_go() {
    let (mut rig, _dir) = rig();
    rig.config.spares = 2;
    let (journal, _) = rig.open().unwrap();
    let names = || {
        let mut names: Vec<_> = rig.fs.list(&rig.config.dir).unwrap();
        names.retain(|name| name.starts_with("spare"));
        names.len()
    };
    submit(&journal, 1, 200, &Told::default());
    drop(journal);
    std::fs::write(rig.config.dir.join("spare-000900.filling"), b"half").unwrap();
    std::fs::write(rig.config.dir.join("spare-000901"), b"of another size").unwrap();
    std::fs::write(rig.config.dir.join("spare-000902"), vec![0; 16 * 1024]).unwrap();
    let before = names();
    rig.config.spares = 0;
    let (journal, last) = rig.recover().unwrap();
    assert_eq!((last, journal.spares()), (Lsn(200), before - 3));
    assert_eq!(names(), before - 3);
}
