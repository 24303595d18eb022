//! The file of the pipe: of full size and synced before it is used, and written over from its start when it is full, as
//! recycled segments of a journal are.

use std::fs::File;
use std::io::{self, IoSlice, Seek as _, SeekFrom, Write as _};
use std::path::Path;

/// Size of weir's segments.
pub(super) const FILE_BYTES: u64 = 64 * 1024 * 1024;
const CHUNK: usize = 1024 * 1024;

/// A file of a fixed size that is appended to for ever.
pub(super) struct RecycledFile {
    file: File,
    at: u64,
    len: u64,
}

impl RecycledFile {
    /// Makes one, filled with zeros and synced.
    ///
    /// # Errors
    /// Of the file system.
    pub(super) fn create(path: &Path, len: u64) -> io::Result<Self> {
        let mut file = File::create(path)?;
        let zeros = vec![0; CHUNK];
        let mut at = 0;
        while at < len {
            let part = usize::try_from(len - at).unwrap_or(CHUNK).min(CHUNK);
            file.write_all(zeros.get(..part).unwrap_or_default())?;
            at += part as u64;
        }
        file.sync_all()?;
        file.rewind()?;
        Ok(Self { file, at: 0, len })
    }

    /// Appends the parts, from the start again where they do not fit any more, and syncs.
    ///
    /// # Errors
    /// Of the file system, or if the parts are longer than the file.
    pub(super) fn append(&mut self, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        if bytes > self.len {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "a group longer than the file"));
        }
        if self.at + bytes > self.len {
            self.file.seek(SeekFrom::Start(0))?;
            self.at = 0;
        }
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let written = self.file.write_vectored(parts)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            IoSlice::advance_slices(&mut parts, written);
        }
        self.at += bytes;
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_any_more_goes_to_the_start_and_the_size_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let mut file = RecycledFile::create(&path, 8).unwrap();
        file.append(&mut [IoSlice::new(b"abc"), IoSlice::new(b""), IoSlice::new(b"de")]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"abcde\0\0\0");
        file.append(&mut [IoSlice::new(b"1234")]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"1234e\0\0\0");
        assert!(file.append(&mut [IoSlice::new(b"123456789")]).is_err());
        file.append(&mut []).unwrap();
    }
}
