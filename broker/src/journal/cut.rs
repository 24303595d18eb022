//! What recovery cuts off is kept aside, for whoever wants to know.

use super::error::OpenError;
use super::window::Window;
use crate::fs::{File, FileSystem};
use crate::model::SegmentNo;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::warn;

/// Folder, within the journal's, of what was cut off.
const CUT_DIR: &str = "cut";
/// Bytes copied at once.
const CHUNK: u32 = 1024 * 1024;

/// A write that a crash cut short, and what became of it. Nobody was told that it was durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CutReport {
    /// The segment it stood in.
    pub(crate) segment: SegmentNo,
    /// Where it began.
    pub(crate) position: u32,
    /// How long it was, as far as it was not zero.
    pub(crate) bytes: u32,
    /// Its copy; `None` if the disk was too full for one.
    pub(crate) kept_in: Option<PathBuf>,
}

/// Copies `bytes` at `position` aside, synced.
///
/// # Errors
/// Of the file system; but a full disk only means that there is no copy, for the cut was never confirmed.
pub(super) fn keep(
    fs: &dyn FileSystem,
    dir: &Path,
    file: &Arc<dyn File>,
    (segment, position, bytes): (SegmentNo, u32, u32),
) -> Result<CutReport, OpenError> {
    let cut_dir = dir.join(CUT_DIR);
    let path = cut_dir.join(format!("{:012}-{position}.cut", segment.get()));
    let report = CutReport { segment, position, bytes, kept_in: Some(path.clone()) };
    match copy(fs, &cut_dir, &path, file, position, bytes) {
        Ok(()) => Ok(report),
        Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            warn!(%segment, position, bytes, "no space to keep what recovery cuts off: it is dropped");
            // An incomplete copy would mislead, and takes space.
            fs.remove(&path).or_else(absent_is_fine).map_err(OpenError::io("remove", &path))?;
            Ok(CutReport { kept_in: None, ..report })
        }
        Err(error) => Err(OpenError::io("keep what is cut off in", &path)(error)),
    }
}

fn copy(
    fs: &dyn FileSystem,
    cut_dir: &Path,
    path: &Path,
    file: &Arc<dyn File>,
    position: u32,
    bytes: u32,
) -> io::Result<()> {
    fs.create_dir(cut_dir)?;
    let copy = fs.create(path)?;
    let mut window = Window::new(file.clone(), position.saturating_add(bytes));
    let mut done = 0;
    while done < bytes {
        let len = CHUNK.min(bytes - done);
        let Some(piece) = window.bytes(position.saturating_add(done), len)? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        copy.write_all_at(&piece, u64::from(done))?;
        done += len;
    }
    copy.sync_all()?;
    fs.sync_dir(cut_dir)
}

fn absent_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
