//! Reading fixed fields out of bytes, without a way to panic.

/// Little-endian fields, front to back.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Starts at the front of `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next `N` bytes; `None` if fewer are left.
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    /// The next 4 bytes.
    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next 8 bytes.
    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// The next 16 bytes.
    pub(super) fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_le_bytes)
    }
}

/// A length as it stands on disk. What is encoded has been bounded far below 4 GiB; a length that was not would be kept
/// at the greatest value, which no reader accepts.
pub(super) fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
