//! Real processes for the acceptance tests: a `weir` on a folder of its own, `weirctl`, and the airline data.
#![allow(dead_code, clippy::unwrap_used, clippy::panic, reason = "shared by test files; a test says where it fails")]
#![allow(clippy::disallowed_methods, reason = "real processes need real time, and every wait is bounded")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at a condition.
const LOOK: Duration = Duration::from_millis(20);

/// The `weir` beside this test's `weirctl`.
fn weir() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_weirctl")).with_file_name("weir");
    assert!(path.exists(), "{} is missing: cargo build --workspace --features weir-broker/test-clock", path.display());
    path
}

/// A server on a temporary folder, killed when dropped.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    child: Option<Child>,
    flags: Vec<String>,
    pub(crate) grpc: String,
    pub(crate) http: String,
}

impl Server {
    /// Starts one with these further flags.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let mut server = Self { folder, child: None, flags, grpc: String::new(), http: String::new() };
        server.start_again();
        server
    }

    /// Starts it on the same folder and the same ports. Waits until it takes calls.
    pub(crate) fn start_again(&mut self) {
        assert!(self.try_start(), "weir did not start");
    }

    /// The same; false if it ended before it took calls.
    fn try_start(&mut self) -> bool {
        let port = |known: &str| if known.is_empty() { "127.0.0.1:0".to_owned() } else { known.to_owned() };
        let mut child = Command::new(weir())
            .arg("serve")
            .args(["--data-dir", self.folder.path().join("data").to_str().unwrap()])
            .args(["--listen", &port(&self.grpc), "--http-listen", &port(&self.http)])
            .args(&self.flags)
            .env("WEIR_LOG", "warn")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        self.child = Some(child);
        let mut ready = false;
        let mut lines = lines.lines();
        for line in lines.by_ref() {
            let line = line.unwrap();
            if let Some(rest) = line.strip_prefix("listening grpc=") {
                let (grpc, http) = rest.split_once(" http=").unwrap();
                (self.grpc, self.http) = (grpc.to_owned(), http.trim().to_owned());
                ready = true;
                break;
            }
            eprintln!("weir: {line}");
        }
        // Somebody has to empty the pipe while the server runs.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("weir: {line}")));
        ready
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.grpc)
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Starts it and kills it again after `after`, wherever it is by then.
    pub(crate) fn start_and_kill(&mut self, after: Duration) {
        let child = Command::new(weir())
            .arg("serve")
            .args(["--data-dir", self.folder.path().join("data").to_str().unwrap()])
            .args(["--listen", &self.grpc, "--http-listen", &self.http])
            .args(&self.flags)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
        std::thread::sleep(after);
        self.kill();
    }

    /// SIGTERM, and its exit code.
    pub(crate) fn stop(&mut self) -> Option<i32> {
        let mut child = self.child.take().unwrap();
        let status = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(status.success());
        child.wait().unwrap().code()
    }

    /// Kills it, and starts it on the same folder.
    pub(crate) fn crash_and_start(&mut self) {
        self.kill();
        self.start_again();
    }

    /// Runs `weirctl` to its end.
    pub(crate) fn weirctl(&self, arguments: &[&str]) -> Output {
        self.weirctl_command(arguments).output().unwrap()
    }

    /// `weirctl`, to be run.
    pub(crate) fn weirctl_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weirctl"));
        command.args(["--endpoint", &self.endpoint()]).args(arguments).stdin(Stdio::null());
        command
    }

    /// What `weirctl ... -o json` says; it must succeed.
    pub(crate) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.weirctl(&[arguments, &["-o", "json"]].concat());
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {words}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The last line of `weirctl pub` of a file.
    pub(crate) fn publish(&self, file: &Path, flags: &[&str]) -> serde_json::Value {
        let file = file.to_str().unwrap();
        let output = self.weirctl(&[&["pub", "--policy", "task_events", "--file", file], flags].concat());
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words}");
        let text = String::from_utf8(output.stdout).unwrap();
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until `condition` holds.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(LOOK);
    }
}

/// A process that is killed when dropped.
pub(crate) struct Guarded(pub(crate) Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The airline data, if it is there. In CI it has to be.
pub(crate) fn airline() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap();
    let folder = std::env::var_os("WEIR_DATA").map_or_else(|| root.join("shared/data"), PathBuf::from);
    let file = folder.join("airline-agent-events.jsonl");
    if file.exists() {
        return Some(file);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is missing, and CI needs it", file.display());
    eprintln!("skipped: {} is missing (WEIR_DATA names its folder)", file.display());
    None
}

/// Random numbers from a printed seed (splitmix64).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(test: &str) -> Self {
        let seed = std::env::var("WEIR_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
            u64::from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos())
        });
        eprintln!("{test}: WEIR_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}
