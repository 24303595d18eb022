//! A process that says where it listens.

use anyhow::{Context as _, bail};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;

/// What the line begins with that says where it listens.
const LISTENING: &str = "listening grpc=";

/// Killed when dropped.
pub(super) struct Process {
    child: Child,
    address: String,
}

impl Process {
    /// Starts it with nothing of this environment, and waits until it listens. What it says later goes to standard
    /// error, after `name`.
    pub(super) fn start(mut command: Command, name: &'static str) -> anyhow::Result<Self> {
        command.env_clear().env("WEIR_LOG", "warn").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().with_context(|| format!("{:?}", command.get_program()))?;
        let mut process = Self { child, address: String::new() };
        let mut lines = BufReader::new(process.child.stderr.take().context("no standard error")?).lines();
        let mut words = Vec::new();
        for line in lines.by_ref() {
            let line = line?;
            if let Some(addresses) = line.strip_prefix(LISTENING) {
                process.address = addresses.split(' ').next().unwrap_or_default().to_owned();
                break;
            }
            words.push(line);
        }
        if process.address.is_empty() {
            bail!("it ended before it listened: {}", words.join("\n"));
        }
        // Somebody has to empty the pipe while the server runs; it ends with the process.
        thread::Builder::new().name("server-words".into()).spawn(move || {
            for line in lines.map_while(Result::ok) {
                if writeln!(std::io::stderr(), "{name}: {line}").is_err() {
                    return;
                }
            }
        })?;
        Ok(process)
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already is what is wanted.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
