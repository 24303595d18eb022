//! What must hold of each decoder for any bytes, for the fuzz targets in `fuzz/`. Not part of a normal build.
//!
//! Every function takes bytes as a disk, a producer or a file might hold them, and panics where a promise is broken. "Does
//! not panic" is the least of them: what was read is written again and compared, with the same bytes where an encoding has
//! only one form, else with what another reading of it gives. Each room keeps its own check beside its decoder.
//!
//! Bytes behind a checksum are out of reach for chance, so the checks of the journal also *mend* their input: they write
//! the sums that the rest asks for, as a writer gone wrong would have done, and check that too.
//!
//! The files in `fuzz/corpus` are the targets' seeds. A test runs all of them through here with every `cargo test`; what a
//! fuzzer finds is put there too and stays found.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod seeds;

use crate::{config, journal, model, read, state};

/// One of the functions below.
pub type Check = fn(&[u8]);

/// Every target by name, for whoever runs them all.
pub const TARGETS: [(&str, Check); 7] = [
    ("segment", segment),
    ("group", group),
    ("frame", frame),
    ("entry", entry),
    ("envelope", envelope),
    ("row", row),
    ("config", config),
];

/// The header block of a segment.
pub fn segment(bytes: &[u8]) {
    journal::fuzzing::segment(bytes);
}

/// Groups, one behind the other, as a recovery scans them.
pub fn group(bytes: &[u8]) {
    journal::fuzzing::groups(bytes);
}

/// One frame with its records.
pub fn frame(bytes: &[u8]) {
    journal::fuzzing::frame(bytes);
}

/// The entries of a frame.
pub fn entry(bytes: &[u8]) {
    journal::fuzzing::entries(bytes);
}

/// A message as its producer encoded it, against what prost makes of the same bytes.
pub fn envelope(bytes: &[u8]) {
    model::envelope::fuzzing::message(bytes);
}

/// A row of any family: the family's number, the key's length, the key, the value.
pub fn row(bytes: &[u8]) {
    let [family, key_len, rest @ ..] = bytes else { return };
    let Some((key, value)) = rest.split_at_checked(usize::from(*key_len)) else { return };
    state::fuzzing::row(*family, key, value);
    read::fuzzing::extent(key, value);
}

/// The text of a configuration file.
pub fn config(bytes: &[u8]) {
    if let Ok(text) = str::from_utf8(bytes) {
        config::fuzzing::file(text);
    }
}
