//! The recorded traces.

use std::path::{Path, PathBuf};

/// The airline data, if it is there. In CI it has to be.
pub(crate) fn airline() -> Option<PathBuf> {
    let folder = std::env::var_os("WEIR_DATA").map_or_else(beside_the_repository, PathBuf::from);
    let file = folder.join("airline-agent-events.jsonl");
    if file.exists() {
        return Some(file);
    }
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{} is missing, and CI needs it", file.display());
    eprintln!("skipped: {} is missing (WEIR_DATA names its folder)", file.display());
    None
}

/// `shared/data` beside the repository, or a level above for a working tree that lies in a folder of such.
fn beside_the_repository() -> PathBuf {
    let above = || Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().skip(3).map(|folder| folder.join("shared/data"));
    above().find(|folder| folder.exists()).or_else(|| above().next()).unwrap_or_default()
}
