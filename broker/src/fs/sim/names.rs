//! Which name stands for which file: as the process sees it, and as the medium has it.

use rand::RngExt;
use rand::rngs::StdRng;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Number of a file.
pub(super) type FileNo = usize;

#[derive(Clone)]
enum Change {
    Made(PathBuf, FileNo),
    Renamed(PathBuf, PathBuf, FileNo),
    Removed(PathBuf),
}

impl Change {
    fn apply(self, names: &mut BTreeMap<PathBuf, FileNo>) {
        match self {
            Self::Made(path, file) => {
                names.insert(path, file);
            }
            Self::Renamed(from, to, file) => {
                names.remove(&from);
                names.insert(to, file);
            }
            Self::Removed(path) => {
                names.remove(&path);
            }
        }
    }
}

/// Folders and the names in them. Folders are safe once made, as `create_dir` promises.
#[derive(Default)]
pub(super) struct Names {
    dirs: BTreeSet<PathBuf>,
    seen: BTreeMap<PathBuf, FileNo>,
    safe: BTreeMap<PathBuf, FileNo>,
    /// By folder, in order: what happened since it was last synced.
    changes: BTreeMap<PathBuf, Vec<Change>>,
}

impl Names {
    pub(super) fn make_dir(&mut self, dir: &Path) {
        self.dirs.extend(dir.ancestors().map(Path::to_path_buf));
    }

    pub(super) fn has_dir(&self, dir: &Path) -> bool {
        self.dirs.contains(dir)
    }

    pub(super) fn find(&self, path: &Path) -> Option<FileNo> {
        self.seen.get(path).copied()
    }

    /// Files and folders right in `dir`.
    pub(super) fn list(&self, dir: &Path) -> Vec<String> {
        let within = |path: &&PathBuf| path.parent() == Some(dir);
        let paths = self.seen.keys().filter(within).chain(self.dirs.iter().filter(within));
        paths.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
    }

    pub(super) fn files_in<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = FileNo> + 'a {
        self.seen.iter().filter(move |(path, _)| path.parent() == Some(dir)).map(|(_, file)| *file)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = FileNo> + '_ {
        self.seen.values().copied()
    }

    pub(super) fn make(&mut self, path: &Path, file: FileNo) {
        self.change(path, Change::Made(path.to_path_buf(), file));
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path, file: FileNo) {
        self.change(from, Change::Renamed(from.to_path_buf(), to.to_path_buf(), file));
    }

    pub(super) fn remove(&mut self, path: &Path) {
        self.change(path, Change::Removed(path.to_path_buf()));
    }

    fn change(&mut self, path: &Path, change: Change) {
        change.clone().apply(&mut self.seen);
        self.changes.entry(path.parent().unwrap_or(path).to_path_buf()).or_default().push(change);
    }

    pub(super) fn sync(&mut self, dir: &Path) {
        for change in self.changes.remove(dir).unwrap_or_default() {
            change.apply(&mut self.safe);
        }
    }

    /// Of the changes since a folder's sync, those up to some point, or any of them, were made.
    pub(super) fn power_cut(&mut self, rng: &mut StdRng) {
        for changes in std::mem::take(&mut self.changes).into_values() {
            let journaled = rng.random_bool(0.5);
            let point = rng.random_range(0..=changes.len());
            for (nth, change) in changes.into_iter().enumerate() {
                if if journaled { nth < point } else { rng.random_bool(0.5) } {
                    change.apply(&mut self.safe);
                }
            }
        }
        self.seen.clone_from(&self.safe);
    }
}
