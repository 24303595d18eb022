//! Servers under measurement: each a process of its own on a fresh folder, gone when it is dropped.

mod process;

use anyhow::{Context as _, ensure};
use process::Process;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A server to be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// `weir serve`.
    Weir {
        /// Flags beside the addresses and the folder.
        flags: Vec<String>,
    },
    /// The bare pipe, with so many results an answer.
    Pipe {
        /// Results.
        results: usize,
    },
    /// The pipe without its file: only the call.
    BareCall {
        /// Results.
        results: usize,
    },
}

impl Target {
    /// What it is called in a report.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Weir { .. } => "weir",
            Self::Pipe { .. } => "pipe",
            Self::BareCall { .. } => "bare call",
        }
    }
}

/// Where servers are found and where their folders are made.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    weir: PathBuf,
    folder: PathBuf,
}

/// A running server.
pub(crate) struct Server {
    process: Process,
    // After the process: the folder goes last.
    _folder: TempDir,
}

impl Place {
    /// `weir` as named, or else beside this program; folders in `folder`, or else where temporary files go.
    ///
    /// # Errors
    /// If there is no such program or folder.
    pub(crate) fn new(weir: Option<PathBuf>, folder: Option<PathBuf>) -> anyhow::Result<Self> {
        let weir = match weir {
            Some(weir) => weir,
            None => std::env::current_exe()?.with_file_name("weir"),
        };
        ensure!(weir.is_file(), "{} is missing; --weir names it", weir.display());
        let folder = folder.unwrap_or_else(std::env::temp_dir);
        ensure!(folder.is_dir(), "no folder {}", folder.display());
        Ok(Self { weir, folder })
    }

    /// Where folders are made.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a server on a fresh folder, and waits until it takes calls.
    ///
    /// # Errors
    /// If it does not start; with what it said.
    pub(crate) fn start(&self, target: &Target) -> anyhow::Result<Server> {
        let folder = tempfile::Builder::new().prefix("weir-bench-").tempdir_in(&self.folder)?;
        let mut command = match target {
            Target::Weir { .. } => Command::new(&self.weir),
            Target::Pipe { .. } | Target::BareCall { .. } => Command::new(std::env::current_exe()?),
        };
        command.args(arguments(target, folder.path()));
        let process = Process::start(command, target.name()).with_context(|| format!("starting {}", target.name()))?;
        Ok(Server { process, _folder: folder })
    }
}

impl Server {
    /// Address of its gRPC port.
    pub(crate) fn address(&self) -> &str {
        self.process.address()
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

fn arguments(target: &Target, folder: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    match target {
        Target::Weir { flags } => {
            arguments.extend(["serve", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"].map(OsString::from));
            arguments.extend(["--data-dir".into(), folder.join("data").into()]);
            arguments.extend(flags.iter().map(OsString::from));
        }
        Target::Pipe { results } | Target::BareCall { results } => {
            arguments.extend(["pipe-server".into(), "--file".into(), folder.join("pipe").into()]);
            arguments.extend(["--results".into(), results.to_string().into()]);
            if matches!(target, Target::BareCall { .. }) {
                arguments.push("--bare-call".into());
            }
        }
    }
    arguments
}
