//! A configuration file as a whole.

use super::fault::{ConfigFault, ConfigNote, Findings};
use super::node::Mark;
use super::overrides::Overrides;
use super::parse::{TEXT_BYTES_MAX, parse};
use super::planes;
use crate::model::policy::ChannelPolicy;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What a configuration file says. The default is that of no file at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileConfig {
    /// Where it was read from, so that it can be read again; nothing for text and for no file.
    pub path: Option<PathBuf>,
    /// The server's settings it gives.
    pub settings: Overrides,
    /// The channel policies it declares and therefore owns, in its order; empty if it declares none.
    pub policies: Vec<ChannelPolicy>,
    /// What it holds that weir leaves alone.
    pub notes: Vec<ConfigNote>,
}

/// Why a file was not taken.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It could not be read.
    #[error("{}: cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It was read and is wrong.
    #[error("{}", Faulty { path, faults })]
    Faulty {
        /// The file.
        path: PathBuf,
        /// All that is wrong, in the order of the file; never empty.
        faults: Vec<ConfigFault>,
    },
}

/// A line a fault: `file:line:column: key.path: message`.
struct Faulty<'a> {
    path: &'a Path,
    faults: &'a [ConfigFault],
}

impl fmt::Display for Faulty<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.faults.iter().enumerate() {
            let line_end = if at == 0 { "" } else { "\n" };
            write!(f, "{line_end}{}:{fault}", self.path.display())?;
        }
        Ok(())
    }
}

impl FileConfig {
    /// Reads a configuration from text. An empty one is that of no file.
    ///
    /// # Errors
    /// All that is wrong, in the order of the text; never empty.
    pub fn from_text(text: &str) -> Result<Self, Vec<ConfigFault>> {
        let mut findings = Findings::default();
        let mut config = match parse(text, &mut findings) {
            Some(root) => planes::read(&root, &mut findings),
            None => Self::default(),
        };
        config.notes = findings.finish()?;
        Ok(config)
    }

    /// Reads a configuration file of at most 1 MiB.
    ///
    /// # Errors
    /// If it cannot be read, or all that is wrong with it.
    pub fn from_file(path: &Path) -> Result<Self, FileError> {
        let bytes = read_bounded(path).map_err(|source| FileError::Unreadable { path: path.to_owned(), source })?;
        let read = match str::from_utf8(&bytes) {
            Ok(text) => Self::from_text(text),
            Err(fault) => Err(vec![not_text(&bytes, fault.valid_up_to())]),
        };
        let with_path = |config| Self { path: Some(path.to_owned()), ..config };
        read.map(with_path).map_err(|faults| FileError::Faulty { path: path.to_owned(), faults })
    }
}

/// One byte more than is allowed, so that a longer file is seen to be one.
fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(TEXT_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The fault of a file that stops being UTF-8 after `valid` bytes.
fn not_text(bytes: &[u8], valid: usize) -> ConfigFault {
    let before = String::from_utf8_lossy(bytes.get(..valid).unwrap_or_default());
    let last_line = before.rsplit('\n').next().unwrap_or_default();
    let at = Mark { line: before.matches('\n').count() + 1, column: last_line.chars().count() + 1 };
    let message = "not valid UTF-8 from here on".to_owned();
    ConfigFault { line: at.line, column: at.column, key_path: String::new(), message }
}
