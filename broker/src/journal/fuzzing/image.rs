//! A file that is a slice of memory, to be read only.

use crate::fs::File;
use std::io::{self, ErrorKind};

pub(super) struct Image(pub(super) Vec<u8>);

impl Image {
    pub(super) fn between(&self, from: u32, to: u32) -> &[u8] {
        self.0.get(from as usize..to as usize).unwrap_or_default()
    }
}

impl File for Image {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.0.get(offset..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        Ok(count)
    }

    fn write_all_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn sync_all(&self) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn forget_cached(&self) -> io::Result<()> {
        Ok(())
    }
}
