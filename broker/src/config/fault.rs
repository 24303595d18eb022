//! What is wrong with a file, and where.

use super::node::Mark;
use std::fmt;

/// Most faults that are told of one file; a file with more is told how many there are.
pub(super) const FAULTS_MAX: usize = 1_000;

/// One thing that is wrong with a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFault {
    /// Line in the file, from 1.
    pub line: usize,
    /// Column in the line, in characters, from 1.
    pub column: usize,
    /// The place in the document, such as `internal_plane[0].retention_h`; empty where the whole document is meant.
    pub key_path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.key_path.is_empty() {
            write!(f, "{}: ", self.key_path)?;
        }
        f.write_str(&self.message)
    }
}

/// Something in a file that is allowed and worth a word: a section that weir leaves alone.
///
/// It has the shape of a fault and is none: the file is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigNote(pub ConfigFault);

impl fmt::Display for ConfigNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Gathers the faults and notes of one file.
#[derive(Debug, Default)]
pub(super) struct Findings {
    faults: Vec<ConfigFault>,
    left_out: usize,
    notes: Vec<ConfigNote>,
}

impl Findings {
    /// Adds a fault.
    pub(super) fn fault(&mut self, at: Mark, key_path: &str, message: impl Into<String>) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(finding(at, key_path, message));
        } else {
            self.left_out += 1;
        }
    }

    /// Adds a note.
    pub(super) fn note(&mut self, at: Mark, key_path: &str, message: impl Into<String>) {
        self.notes.push(ConfigNote(finding(at, key_path, message)));
    }

    /// How many faults there are so far.
    pub(super) fn fault_count(&self) -> usize {
        self.faults.len() + self.left_out
    }

    /// The notes if there is no fault, else the faults in the order of the file.
    pub(super) fn finish(mut self) -> Result<Vec<ConfigNote>, Vec<ConfigFault>> {
        if self.faults.is_empty() {
            return Ok(self.notes);
        }
        self.faults.sort_by_key(|fault| (fault.line, fault.column));
        if self.left_out > 0 {
            let last = self.faults.last().map_or(Mark::START, |fault| Mark { line: fault.line, column: fault.column });
            let message = format!("and {} more faults in this file", self.left_out);
            self.faults.push(finding(last, "", message));
        }
        Err(self.faults)
    }
}

fn finding(at: Mark, key_path: &str, message: impl Into<String>) -> ConfigFault {
    ConfigFault { line: at.line, column: at.column, key_path: key_path.to_owned(), message: message.into() }
}
