//! Version 1, byte for byte: folders written today are read tomorrow.

use super::rig::frame;
use crate::fs::sim::SimDisk;
use crate::journal::segment::{Previous, SegmentHeader};
use crate::journal::{active::Active, batch::Batch};
use crate::model::{Lsn, SegmentNo, UnixMillis};
use std::path::Path;

#[test]
fn version_1_stands_as_it_was_first_written() {
    let disk = SimDisk::new(1);
    let (fs, path) = (disk.process(), Path::new("/d/segment"));
    fs.create_dir(Path::new("/d")).unwrap();
    let header = SegmentHeader {
        journal_id: 0x0011_2233_4455_6677_8899_AABB_CCDD_EEFF,
        segment: SegmentNo(3),
        incarnation: 2,
        first_lsn: Lsn(41),
        broker_time: UnixMillis(1_700_000_000_000),
        file_len: 16 * 1024,
        previous: Some(Previous { segment: SegmentNo(2), end: 8_192, sum: 0xDEAD_BEEF }),
    };
    let (block, link) = header.encode();
    let file = fs.create(path).unwrap();
    file.write_all_at(&block, 0).unwrap();
    let mut active = Active::new(file, header, link);
    for (first, last) in [(41, 43), (44, 44), (45, 44)] {
        let mut batch = Batch::new(4096);
        batch.start(Lsn(first), UnixMillis(1_700_000_000_500));
        for lsn in first..=last {
            batch.push(frame(Lsn(lsn)), UnixMillis(1_700_000_000_500 + lsn), active.place());
        }
        active.write(&mut batch.buffer, batch.frame_count, batch.first_lsn, batch.broker_time).unwrap();
        active.sync().unwrap();
    }
    let bytes = disk.contents(path);
    assert_eq!((bytes.len(), crc32fast::hash(&bytes)), (4840, 680_013_598));
}
