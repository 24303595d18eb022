//! What a file holds: as the process sees it, and as the medium has it.

use rand::rngs::StdRng;
use rand::{Rng, RngExt};
use std::collections::BTreeMap;

pub(super) const SECTOR: usize = 512;
/// Versions of an unsynced sector that are kept; the oldest go.
const VERSIONS_MAX: usize = 8;

/// A file's bytes and length, in memory and on the medium.
#[derive(Default)]
pub(super) struct Content {
    cache: Vec<u8>,
    medium: Vec<u8>,
    medium_len: usize,
    /// Sectors written since they were last synced, each with what it held in between.
    dirty: BTreeMap<usize, Vec<[u8; SECTOR]>>,
    /// Lengths the file has had since the one on the medium.
    lens: Vec<usize>,
    /// The length at the last sync: on the medium once the folder is synced.
    synced_len: Option<usize>,
}

impl Content {
    pub(super) fn len(&self) -> usize {
        self.cache.len()
    }

    pub(super) fn cache(&self) -> &[u8] {
        &self.cache
    }

    pub(super) fn read(&self, buffer: &mut [u8], at: usize) -> usize {
        let from = self.cache.get(at..).unwrap_or_default();
        let count = from.len().min(buffer.len());
        buffer[..count].copy_from_slice(&from[..count]);
        count
    }

    pub(super) fn write(&mut self, bytes: &[u8], at: usize) {
        if bytes.is_empty() {
            return;
        }
        let end = at + bytes.len();
        if end > self.cache.len() {
            self.set_len(end);
        }
        self.cache[at..end].copy_from_slice(bytes);
        self.touch(at, end);
    }

    pub(super) fn set_len(&mut self, len: usize) {
        let before = self.cache.len();
        self.cache.resize(len, 0);
        self.dirty.retain(|sector, _| sector * SECTOR < len);
        if len > before {
            self.touch(before, len);
        }
        if len != before {
            self.lens.push(len);
        }
    }

    fn touch(&mut self, from: usize, to: usize) {
        for sector in from / SECTOR..to.div_ceil(SECTOR) {
            let version = self.sector(sector);
            let versions = self.dirty.entry(sector).or_default();
            if versions.len() == VERSIONS_MAX {
                versions.remove(0);
            }
            versions.push(version);
        }
    }

    fn sector(&self, sector: usize) -> [u8; SECTOR] {
        let mut out = [0; SECTOR];
        self.read(&mut out, sector * SECTOR);
        out
    }

    pub(super) fn sync(&mut self) {
        for (sector, versions) in std::mem::take(&mut self.dirty) {
            if let Some(last) = versions.last() {
                put(&mut self.medium, sector, last);
            }
        }
        self.synced_len = Some(self.cache.len());
    }

    /// A sync that fails: some sectors made it, none is tried again, and the cache goes on showing them all.
    pub(super) fn fail_sync(&mut self, rng: &mut StdRng) {
        for (sector, versions) in std::mem::take(&mut self.dirty) {
            if rng.random_bool(0.5) {
                put(&mut self.medium, sector, &versions[rng.random_range(0..versions.len())]);
            }
        }
    }

    /// What is not waiting to be written comes from the medium again.
    pub(super) fn forget_cached(&mut self) {
        for sector in 0..self.cache.len().div_ceil(SECTOR) {
            if !self.dirty.contains_key(&sector) {
                let end = self.cache.len().min((sector + 1) * SECTOR);
                for at in sector * SECTOR..end {
                    self.cache[at] = self.medium.get(at).copied().unwrap_or(0);
                }
            }
        }
    }

    /// The folder was synced.
    pub(super) fn sync_len(&mut self) {
        if let Some(len) = self.synced_len.take() {
            self.lens.clear();
            self.medium_len = len;
            // What stood behind a cut is gone for good.
            self.medium.truncate(len);
            if self.cache.len() != len {
                self.lens.push(self.cache.len());
            }
        }
    }

    /// Each unsynced sector is old or any newer version, the length old or any newer one. `survives` is how likely a
    /// write is to have made it.
    pub(super) fn power_cut(&mut self, rng: &mut StdRng, survives: f64) {
        for (sector, versions) in std::mem::take(&mut self.dirty) {
            if rng.random_bool(survives) {
                let version = if rng.next_u32().is_multiple_of(2) {
                    versions.len() - 1
                } else {
                    rng.random_range(0..versions.len())
                };
                put(&mut self.medium, sector, &versions[version]);
            }
        }
        if !self.lens.is_empty() && rng.random_bool(survives) {
            self.medium_len = self.lens[rng.random_range(0..self.lens.len())];
        }
        self.lens.clear();
        self.synced_len = None;
        self.medium.resize(self.medium_len, 0);
        self.cache.clone_from(&self.medium);
    }

    /// Changes a byte everywhere, as decay does.
    pub(super) fn decay(&mut self, at: usize, mask: u8) {
        self.cache[at] ^= mask;
        if let Some(byte) = self.medium.get_mut(at) {
            *byte ^= mask;
        }
    }
}

fn put(medium: &mut Vec<u8>, sector: usize, bytes: &[u8; SECTOR]) {
    let at = sector * SECTOR;
    if medium.len() < at + SECTOR {
        medium.resize(at + SECTOR, 0);
    }
    medium[at..at + SECTOR].copy_from_slice(bytes);
}
