//! What stands behind the last group that verifies.

use super::group::{GROUP_ALIGN, GROUP_HEADER_LEN, GROUP_MAGIC, GroupHeader};
use super::sums::SumKey;
use super::window::Window;
use crate::fs::File;
use std::io;
use std::sync::Arc;

/// Bytes looked at in one go.
const STRIDE: u32 = 64 * 1024;

/// What was found in the rest of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    /// A header of a group beyond says that the start of the rest was synced: what is missing there was confirmed.
    pub(super) proven: bool,
    /// Bytes up to the last one that is not zero.
    pub(super) len: u32,
}

/// Looks through the rest of a segment, from `start` (where a group should begin and none verifies) up to `limit`.
///
/// A group header that verifies and claims that `start` was synced proves it, whatever became of its own frames: its sum
/// starts from the segment's key and its place, so nothing but the writer can have put it there.
pub(super) fn examine(file: Arc<dyn File>, key: SumKey, start: u32, limit: u32) -> io::Result<Tail> {
    let mut window = Window::new(file, limit);
    let mut tail = Tail { proven: false, len: 0 };
    let mut at = start;
    while at < limit {
        let len = STRIDE.min(limit - at);
        let Some(bytes) = window.bytes(at, len)? else {
            break;
        };
        if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
            tail.len = (at - start).saturating_add(u32::try_from(last).unwrap_or(len)).saturating_add(1);
            tail.proven = tail.proven || proves(&mut window, &bytes, key, at, start)?;
        }
        at = at.saturating_add(len);
    }
    Ok(tail)
}

/// Whether a group header begins in `bytes`, which stand at `at`, that says `start` was synced.
fn proves(window: &mut Window, bytes: &[u8], key: SumKey, at: u32, start: u32) -> io::Result<bool> {
    let mut position = at;
    for chunk in bytes.chunks(GROUP_ALIGN as usize) {
        if chunk.starts_with(&GROUP_MAGIC)
            && let Some(header) = window.bytes(position, GROUP_HEADER_LEN)?
            && let Ok((header, _)) = GroupHeader::decode(&header, position, key)
            && header.synced_through > start
        {
            return Ok(true);
        }
        position = position.saturating_add(GROUP_ALIGN);
    }
    Ok(false)
}
