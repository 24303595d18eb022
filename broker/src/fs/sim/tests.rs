//! What the simulated disk may lose, and what not.

use super::*;

fn disk(seed: u64) -> (SimDisk, Arc<dyn FileSystem>, PathBuf) {
    let disk = SimDisk::new(seed);
    let (fs, dir) = (disk.process(), PathBuf::from("/d"));
    fs.create_dir(&dir).unwrap();
    (disk, fs, dir)
}

/// What became of each seed's run, sorted and without repeats.
fn outcomes(run: impl Fn(u64) -> String) -> Vec<String> {
    (0..200).map(run).collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn what_is_synced_with_its_folder_survives_and_all_else_may() {
    let found = outcomes(|seed| {
        let (disk, fs, dir) = disk(seed);
        let file = fs.create(&dir.join("f")).unwrap();
        file.write_all_at(&[1; 2 * content::SECTOR], 0).unwrap();
        file.sync_data().unwrap();
        fs.sync_dir(&dir).unwrap();
        file.write_all_at(&[2; 2 * content::SECTOR], 0).unwrap();
        file.write_all_at(&[3; 2 * content::SECTOR], 0).unwrap();
        disk.power_cut();
        assert!(file.sync_data().is_err(), "a handle of an earlier life");
        let bytes = disk.contents(&dir.join("f"));
        assert_eq!(bytes.len(), 2 * content::SECTOR);
        bytes
            .chunks(content::SECTOR)
            .map(|sector| {
                assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is never torn");
                sector[0].to_string()
            })
            .collect()
    });
    assert_eq!(found, ["11", "12", "13", "21", "22", "23", "31", "32", "33"]);
}

#[test]
fn a_name_or_a_length_without_a_folder_sync_may_go() {
    let found = outcomes(|seed| {
        let (disk, fs, dir) = disk(seed);
        let file = fs.create(&dir.join("f")).unwrap();
        file.write_all_at(b"abc", 0).unwrap();
        file.sync_all().unwrap();
        disk.power_cut();
        match disk.process().open(&dir.join("f")) {
            Ok(file) => format!("{}", file.len().unwrap()),
            Err(error) => format!("{}", error.kind()),
        }
    });
    assert_eq!(found, ["0", "3", "entity not found"]);
}

#[test]
fn a_rename_is_whole_or_did_not_happen() {
    let found = outcomes(|seed| {
        let (disk, fs, dir) = disk(seed);
        fs.create(&dir.join("a")).unwrap();
        fs.sync_dir(&dir).unwrap();
        fs.rename(&dir.join("a"), &dir.join("b")).unwrap();
        disk.power_cut();
        disk.process().list(&dir).unwrap().concat()
    });
    assert_eq!(found, ["a", "b"]);
}

#[test]
fn a_failed_sync_lies_until_the_cache_is_forgotten() {
    let found = outcomes(|seed| {
        let (disk, fs, dir) = disk(seed);
        let file = fs.create(&dir.join("f")).unwrap();
        file.write_all_at(&[1], 0).unwrap();
        disk.fail_call(0, ErrorKind::Other);
        assert!(file.sync_data().is_err());
        file.sync_data().unwrap();
        disk.kill();
        assert_eq!(disk.contents(&dir.join("f")), [1]);
        let file = disk.process().open(&dir.join("f")).unwrap();
        file.forget_cached().unwrap();
        disk.contents(&dir.join("f"))[0].to_string()
    });
    assert_eq!(found, ["0", "1"]);
}

#[test]
fn calls_fail_or_end_the_process_where_told_and_a_full_disk_says_so() {
    let (disk, fs, dir) = disk(1);
    disk.fail_call(1, ErrorKind::PermissionDenied);
    assert!(fs.list(&dir).is_ok());
    assert_eq!(fs.list(&dir).unwrap_err().kind(), ErrorKind::PermissionDenied);
    let file = fs.create(&dir.join("f")).unwrap();
    disk.set_capacity(Some(3));
    file.write_all_at(b"abc", 0).unwrap();
    assert_eq!(file.write_all_at(b"d", 3).unwrap_err().kind(), ErrorKind::StorageFull);
    let _held = fs.lock(&dir).unwrap();
    assert_eq!(fs.lock(&dir).err().unwrap().kind(), ErrorKind::WouldBlock);
    disk.die_at_call(0);
    assert!(fs.list(&dir).is_err());
    assert!(fs.list(&dir).is_err());
    assert_eq!(disk.contents(&dir.join("f")), b"abc");
    assert!(disk.process().lock(&dir).is_ok());
}
