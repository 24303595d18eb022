//! The processes of the story. Each writes to a log of its own, and is ended by its own id, whatever happens.

use crate::Failure;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Longest wait for a line, an end or a condition.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks at what is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const SIGKILL: i32 = 9;

/// A process that runs; killed when dropped.
pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a part of this very program.
    pub(crate) fn of_this_program(folder: &Path, name: &str, words: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words);
        Self::start(folder, name, command)
    }

    /// Starts `weir serve` on a free port, and waits until it listens; returns its endpoint too.
    pub(crate) async fn broker(folder: &Path, name: &str) -> Result<(Self, String), Failure> {
        let mut command = Command::new(weir()?);
        // Settings of the caller's own broker are not for this one.
        command.env_clear().arg("serve").arg("--data-dir").arg(folder.join("data"));
        command.args(["--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"]);
        let mut broker = Self::start(folder, name, command)?;
        let line = broker.hear("listening grpc=").await?;
        let address = line.split_whitespace().next().ok_or("the broker names no address")?;
        Ok((broker, format!("http://{address}")))
    }

    fn start(folder: &Path, name: &str, mut command: Command) -> Result<Self, Failure> {
        let log = folder.join(format!("{name}.log"));
        let file = File::create_new(&log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().map_err(|error| format!("{name} does not start: {error}"))?;
        Ok(Self { name: name.to_owned(), child, log })
    }

    /// Waits for a whole line that begins like this, and returns the rest of it.
    pub(crate) async fn hear(&mut self, start: &str) -> Result<String, Failure> {
        let what = format!("{} says {:?}", self.name, start.trim_end());
        until(&what, async || {
            // Asked first, so that its last words are read after its end.
            let ended = self.child.try_wait()?;
            let said = fs::read_to_string(&self.log)?;
            let whole = said.rfind('\n').map_or("", |end| said.split_at(end).0);
            match (whole.lines().find_map(|line| line.strip_prefix(start)), ended) {
                (Some(rest), _) => Ok(Some(rest.to_owned())),
                (None, Some(status)) => Err(self.ended(status)),
                (None, None) => Ok(None),
            }
        })
        .await
    }

    /// Waits until it has ended well, and returns all it said.
    pub(crate) async fn finish(mut self) -> Result<String, Failure> {
        let what = format!("{} ends", self.name);
        until(&what, async || match self.child.try_wait()? {
            Some(status) if status.success() => Ok(Some(fs::read_to_string(&self.log)?)),
            Some(status) => Err(self.ended(status)),
            None => Ok(None),
        })
        .await
    }

    /// SIGKILL: it has no chance to say anything more.
    pub(crate) fn kill(mut self) -> Result<(), Failure> {
        self.child.kill()?;
        let status = self.child.wait()?;
        if status.signal() == Some(SIGKILL) { Ok(()) } else { Err(self.ended(status)) }
    }

    fn ended(&self, status: ExitStatus) -> Failure {
        format!("{} ended with {status}, see its log", self.name).into()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a process that has been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks until there is something to see.
pub(crate) async fn until<T>(
    what: &str,
    mut look: impl AsyncFnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let looking = async {
        loop {
            if let Some(seen) = look().await? {
                return Ok(seen);
            }
            sleep(LOOK_EVERY).await;
        }
    };
    let in_vain = |_| format!("waited {} s in vain until {what}", PATIENCE.as_secs());
    timeout(PATIENCE, looking).await.map_err(in_vain)?
}

/// The server: built beside the folder of the examples.
fn weir() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let path = own.ancestors().nth(2).ok_or("this program lies in no folder")?.join("weir");
    if path.exists() { Ok(path) } else { Err(format!("{} is missing; `make demo` builds it", path.display()).into()) }
}
