//! How the program ends.

use crate::output::escape;
use crate::refused::Refused;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// The exit codes, from the mildest to the one that outweighs the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Code {
    /// Something was refused or went wrong.
    Error = 1,
    /// The command line was not understood; nothing was sent.
    Usage = 2,
    /// The named thing is not there.
    NotFound = 3,
    /// No grant for this, or no credentials.
    Denied = 4,
    /// The channel, the tenant's rate or the disk is full.
    Backpressure = 5,
    /// The broker cannot be reached, or is not serving.
    Unavailable = 6,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// Why a verb did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It has to be told on stderr.
    Told(Code, String),
    /// It was told already.
    Silent(Code),
    /// Whoever read our data has closed the pipe: they have enough, and that is no fault.
    ReaderGone,
}

impl Failure {
    /// A failure with the general code.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self::Told(Code::Error, text.into())
    }

    /// The named thing is not there.
    pub(crate) fn not_found(text: impl Into<String>) -> Self {
        Self::Told(Code::NotFound, text.into())
    }

    /// A failure of the command line.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::Told(Code::Usage, text.into())
    }

    /// Tells the failure, and returns how the process ends.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Told(code, text) => {
                eprintln!("weirctl: {}", escape::controls(&text));
                code.into()
            }
            Self::Silent(code) => code.into(),
            Self::ReaderGone => ExitCode::SUCCESS,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Told(_, text) => f.write_str(text),
            Self::Silent(code) => write!(f, "ended with {code:?}"),
            Self::ReaderGone => f.write_str("the reader of the output is gone"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Self::Told(refused.code(), refused.to_string())
    }
}

impl From<tonic::Status> for Failure {
    fn from(status: tonic::Status) -> Self {
        Refused::from(status).into()
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::ReaderGone } else { Self::error(error.to_string()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_of_the_manual() {
        let codes = [
            (Code::Error, 1),
            (Code::Usage, 2),
            (Code::NotFound, 3),
            (Code::Denied, 4),
            (Code::Backpressure, 5),
            (Code::Unavailable, 6),
        ];
        for (code, number) in codes {
            assert_eq!(code as u8, number);
        }
    }

    #[test]
    fn a_closed_pipe_is_no_fault() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(matches!(failure, Failure::ReaderGone));
        let failure = Failure::from(io::Error::from(io::ErrorKind::StorageFull));
        assert!(matches!(failure, Failure::Told(Code::Error, _)));
    }
}
