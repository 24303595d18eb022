//! The processes of the story, each ended by its own id, whatever happens.

use crate::Failure;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader, Lines};
use tokio::process::{Child, Command};

/// Longest wait for a line or a condition.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process and what it says. Killed when dropped.
pub(crate) struct Actor {
    child: Child,
    lines: Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
}

impl Actor {
    /// An actor of this very program, which speaks on stdout.
    pub(crate) fn of_this_program(words: &[&str]) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.args(words).stdout(Stdio::piped()).stdin(Stdio::null()).kill_on_drop(true).spawn()?;
        let out = child.stdout.take().ok_or("no stdout")?;
        let out: Box<dyn AsyncRead + Send + Unpin> = Box::new(out);
        Ok(Self { child, lines: BufReader::new(out).lines() })
    }

    /// The broker, which speaks on stderr; and where it listens.
    pub(crate) async fn broker(data: &Path, listen: &str) -> Result<(Self, String), Failure> {
        let mut command = Command::new(weir()?);
        command.arg("serve").arg("--data-dir").arg(data).args(["--listen", listen, "--http-listen", "127.0.0.1:0"]);
        command.args(["--session-timeout-ms", "2000"]).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn()?;
        let out = child.stderr.take().ok_or("no stderr")?;
        let out: Box<dyn AsyncRead + Send + Unpin> = Box::new(out);
        let mut actor = Self { child, lines: BufReader::new(out).lines() };
        let line = actor.hear("listening grpc=").await?;
        let address = line.split_whitespace().find_map(|word| word.strip_prefix("grpc=")).ok_or("no address")?;
        Ok((actor, address.to_owned()))
    }

    /// Waits for a line that begins like this.
    pub(crate) async fn hear(&mut self, start: &str) -> Result<String, Failure> {
        let heard = async {
            while let Some(line) = self.lines.next_line().await? {
                if line.starts_with(start) {
                    return Ok(line);
                }
            }
            Err(format!("a process ended before it said {start:?}").into())
        };
        tokio::time::timeout(PATIENCE, heard).await.map_err(|_| format!("nobody said {start:?} in time"))?
    }

    /// SIGKILL.
    pub(crate) async fn kill(mut self) -> Result<(), Failure> {
        self.child.kill().await?;
        Ok(())
    }

    /// Passes its lines on until it ends, which it has to do well.
    pub(crate) async fn play_to_its_end(mut self, indent: &str) -> Result<(), Failure> {
        while let Some(line) = self.lines.next_line().await? {
            println!("{indent}{line}");
        }
        let status = self.child.wait().await?;
        if status.success() { Ok(()) } else { Err(format!("a process ended with {status}").into()) }
    }
}

/// Waits until a question is answered with yes.
pub(crate) async fn until<Answer>(what: &str, mut ask: impl FnMut() -> Answer) -> Result<(), Failure>
where
    Answer: Future<Output = Result<bool, Failure>>,
{
    let asking = async {
        while !ask().await? {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    };
    tokio::time::timeout(PATIENCE, asking).await.map_err(|_| format!("waited in vain until {what}"))?
}

/// The server's binary: beside the examples' folder.
fn weir() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let path = own.ancestors().nth(2).ok_or("no folder")?.join("weir");
    if path.exists() { Ok(path) } else { Err(format!("{} is missing: make build", path.display()).into()) }
}
