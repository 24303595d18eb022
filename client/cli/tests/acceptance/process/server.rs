//! A `weir serve` on a folder of its own.

use crate::process::PATIENCE;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tonic::transport::{Channel, Endpoint};
use weir_proto::test::test_clock_service_client::TestClockServiceClient;
use weir_proto::test::{AdvanceRequest, NowRequest};

const HOW_TO_BUILD: &str = "cargo build --workspace --features weir-broker/test-clock";

/// A command that runs the `weir` beside this test's `weirctl`, with nothing in its environment but what a test says.
pub(crate) fn weir() -> Command {
    weir_under(&[])
}

/// The same, run by another program with these arguments.
fn weir_under(runner: &[String]) -> Command {
    let path = Path::new(env!("CARGO_BIN_EXE_weirctl")).with_file_name("weir");
    assert!(path.exists(), "{} is missing: {HOW_TO_BUILD}", path.display());
    let mut command = match runner {
        [] => Command::new(path),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(path);
            command
        }
    };
    command.env_clear().env("WEIR_LOG", "warn").stdin(Stdio::null());
    if let Some(path) = std::env::var_os("PATH").filter(|_| !runner.is_empty()) {
        command.env("PATH", path);
    }
    command
}

/// A server on a temporary folder. It is killed when dropped.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    child: Option<Child>,
    flags: Vec<String>,
    /// The program that runs it, with its arguments; none if it is run as it is.
    runner: Vec<String>,
    /// Address of the gRPC port; the same over restarts.
    pub(crate) grpc: String,
    /// Address of the HTTP port; the same over restarts.
    pub(crate) http: String,
}

impl Server {
    /// Starts one with these further flags, and waits until it takes calls.
    pub(crate) fn start(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let (grpc, http) = ("127.0.0.1:0".to_owned(), "127.0.0.1:0".to_owned());
        let mut server = Self { folder, child: None, flags, runner: Vec::new(), grpc, http };
        server.start_again();
        server
    }

    /// Starts it on the same folder and ports, this once run by another program, and waits until it takes calls.
    pub(crate) fn start_again_under(&mut self, runner: &[&str]) {
        self.runner = runner.iter().map(|word| (*word).to_owned()).collect();
        self.start_again();
        self.runner.clear();
    }

    /// Starts it on the same folder and ports, and waits until it takes calls.
    pub(crate) fn start_again(&mut self) {
        let begun = Instant::now();
        // The system may have lent a port of ours to somebody's outgoing connection.
        while let Err(words) = self.try_start() {
            let taken = words.contains("in use") && begun.elapsed() < PATIENCE;
            assert!(taken, "weir ended before it took calls:\n{words}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn try_start(&mut self) -> Result<(), String> {
        let mut child = self.serve().stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        self.child = Some(child);
        let mut words = String::new();
        for line in lines.by_ref() {
            let line = line.unwrap();
            if let Some(addresses) = line.strip_prefix("listening grpc=") {
                let (grpc, http) = addresses.split_once(" http=").unwrap();
                (self.grpc, self.http) = (grpc.to_owned(), http.trim().to_owned());
                // Somebody has to empty the pipe while the server runs.
                std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("weir: {line}")));
                return Ok(());
            }
            words.push_str(&line);
            words.push('\n');
        }
        self.child.take().unwrap().wait().unwrap();
        Err(words)
    }

    fn serve(&self) -> Command {
        let mut command = weir_under(&self.runner);
        command.arg("serve").arg("--data-dir").arg(self.data());
        command.args(["--listen", &self.grpc, "--http-listen", &self.http]).args(&self.flags);
        command
    }

    /// The folder the data folder lies in; nothing else is there.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Starts it and kills it again after `delay`, wherever it is by then.
    pub(crate) fn start_and_kill(&mut self, delay: Duration) {
        self.child = Some(self.serve().stderr(Stdio::null()).spawn().unwrap());
        std::thread::sleep(delay);
        self.kill();
    }

    /// Kills it, and starts it on the same folder.
    pub(crate) fn crash_and_start(&mut self) {
        self.kill();
        self.start_again();
    }

    /// The same, its clock where it was: a new process starts at wall time, and is moved on as far as the old one was
    /// ahead of it.
    pub(crate) async fn crash_at_the_same_time(&mut self) {
        let before = self.now().await;
        self.crash_and_start();
        let after = self.now().await;
        self.advance(before.saturating_sub(after)).await;
    }

    /// SIGTERM.
    pub(crate) fn terminate(&self) {
        let pid = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }

    /// Waits for the end of the process; its exit code, or none if a signal ended it.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let mut child = self.child.take().unwrap();
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return status.code();
            }
            if start.elapsed() > PATIENCE {
                child.kill().unwrap();
                panic!("the server did not end");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A gRPC channel, as a client with default settings has it. It connects with its first call, and again.
    pub(crate) fn wire(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.grpc)).unwrap().connect_lazy()
    }

    /// Broker time, in milliseconds since the Unix epoch.
    pub(crate) async fn now(&self) -> u64 {
        let answer = TestClockServiceClient::new(self.wire()).now(NowRequest::default()).await;
        answer.unwrap_or_else(|status| panic!("no test clock: {HOW_TO_BUILD} ({status})")).into_inner().now_unix_ms
    }

    /// Moves broker time on; what is due then is done when this returns.
    pub(crate) async fn advance(&self, millis: u64) {
        let answer = TestClockServiceClient::new(self.wire()).advance(AdvanceRequest { millis }).await;
        answer.unwrap_or_else(|status| panic!("no test clock: {HOW_TO_BUILD} ({status})"));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs `weir` to its end. One that serves instead is killed: it should not have.
pub(crate) fn weir_to_its_end(arguments: &[&str]) -> Output {
    let mut child = weir().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            let mut words = String::new();
            child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
            panic!("weir {arguments:?} did not end: {words}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}
