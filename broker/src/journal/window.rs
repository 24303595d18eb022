//! Reading a file front to back in large pieces, handing out slices of them.

use crate::fs::File;
use bytes::Bytes;
use std::io;
use std::sync::Arc;

/// Bytes read at once.
const CHUNK: u32 = 1024 * 1024;

/// What is in memory of a file, and where its readable part ends.
pub(super) struct Window {
    file: Arc<dyn File>,
    limit: u32,
    base: u32,
    chunk: Bytes,
}

impl Window {
    /// Nothing read yet; nothing at or behind `limit` will be.
    pub(super) fn new(file: Arc<dyn File>, limit: u32) -> Self {
        Self { file, limit, base: 0, chunk: Bytes::new() }
    }

    /// Where the readable part ends.
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// The `len` bytes at `position`; `None` if the readable part ends before.
    pub(super) fn bytes(&mut self, position: u32, len: u32) -> io::Result<Option<Bytes>> {
        let Some(rest) = self.limit.checked_sub(position).filter(|rest| *rest >= len) else {
            return Ok(None);
        };
        let within = |window: &Self| {
            let start = position.checked_sub(window.base)? as usize;
            let end = start.checked_add(len as usize)?;
            (end <= window.chunk.len()).then(|| window.chunk.slice(start..end))
        };
        if let Some(bytes) = within(self) {
            return Ok(Some(bytes));
        }
        let mut chunk = vec![0; rest.min(len.max(CHUNK)) as usize];
        self.file.read_exact_at(&mut chunk, u64::from(position))?;
        self.base = position;
        self.chunk = chunk.into();
        Ok(within(self))
    }
}
