//! The corpus without a fuzzer. `WEIR_SEEDS=write cargo test -p weir-broker --lib seeds` writes the seeds anew where a
//! format has changed.
#![allow(clippy::unwrap_used)]

use super::{TARGETS, seeds};
use std::fs;
use std::path::{Path, PathBuf};

/// The corpus is read by people too, and by every test run.
const FILE_BYTES_MAX: u64 = 8 * 1024;

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target)
}

#[test]
fn every_file_of_the_corpus_holds_what_its_target_asserts() {
    for (target, check) in TARGETS {
        let files: Vec<PathBuf> = fs::read_dir(folder(target)).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!files.is_empty(), "{target} has no seeds");
        for path in files {
            let bytes = fs::read(&path).unwrap();
            assert!(bytes.len() as u64 <= FILE_BYTES_MAX, "{} is too long", path.display());
            eprintln!("{}", path.display());
            check(&bytes);
        }
    }
}

#[test]
fn every_beginning_and_every_flipped_bit_of_a_seed_holds_it_too() {
    for (target, name, bytes) in seeds::all() {
        let (_, check) = TARGETS.into_iter().find(|(other, _)| *other == target).unwrap();
        eprintln!("{target}/{name}");
        for end in 0..bytes.len() {
            check(&bytes[..end]);
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            check(&flipped);
        }
    }
}

#[test]
fn the_seeds_are_what_the_encoders_make() {
    let write = std::env::var_os("WEIR_SEEDS").is_some_and(|asked| asked == "write");
    for (target, name, bytes) in seeds::all() {
        let path = folder(target).join(name);
        if write {
            fs::create_dir_all(folder(target)).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(fs::read(&path).ok(), Some(bytes), "{}", path.display());
    }
}
