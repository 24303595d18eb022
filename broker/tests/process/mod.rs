//! A `weir serve` of its own for a test, and what is said to it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::Status;
use tonic::transport::Channel;
use weir_proto::v1::consume_service_client::ConsumeServiceClient;
use weir_proto::v1::group_service_client::GroupServiceClient;
use weir_proto::v1::publish_service_client::PublishServiceClient;
use weir_proto::v1::{self, SettleOutcome};

/// Whatever a test waits for comes within this, or the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    child: Mutex<Child>,
    pid: u32,
    http: String,
    wire: Channel,
}

impl Server {
    /// Starts a server on free ports and waits until it listens.
    pub(crate) async fn start(folder: &Path, flags: &[&str]) -> Self {
        let mut child = command(folder).args(["--listen", "127.0.0.1:0"]).args(flags).spawn().unwrap();
        let (child, line) = tokio::task::spawn_blocking(move || {
            let mut words = BufReader::new(child.stderr.take().unwrap());
            let mut line = String::new();
            while !line.starts_with("listening ") {
                line.clear();
                assert_ne!(words.read_line(&mut line).unwrap(), 0, "the server ended before it listened");
            }
            // What it says later has to go somewhere, or it would wait for a reader.
            std::thread::spawn(move || std::io::copy(&mut words, &mut std::io::sink()));
            (child, line)
        })
        .await
        .unwrap();
        let address = |key: &str| line.split_whitespace().find_map(|word| word.strip_prefix(key)).unwrap().to_owned();
        let wire = Channel::from_shared(format!("http://{}", address("grpc="))).unwrap().connect().await.unwrap();
        Self { pid: child.id(), child: Mutex::new(child), http: address("http="), wire }
    }

    /// Starts a server that has to refuse: its exit code and its words.
    pub(crate) fn refused(folder: &Path, flags: &[&str]) -> (i32, String) {
        let mut child = command(folder).args(flags).spawn().unwrap();
        let mut words = String::new();
        child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
        (child.wait().unwrap().code().unwrap(), words)
    }

    /// The connection, for services that have no word here.
    pub(crate) fn wire(&self) -> Channel {
        self.wire.clone()
    }

    pub(crate) fn consuming(&self) -> ConsumeServiceClient<Channel> {
        ConsumeServiceClient::new(self.wire.clone())
    }

    pub(crate) async fn make_group(&self, name: &str) {
        let request = v1::CreateGroupRequest { group: Some(group(name)), settings: None };
        GroupServiceClient::new(self.wire.clone()).create_group(request).await.unwrap();
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.pid.to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end of the process, and returns its exit code.
    pub(crate) async fn ended(self) -> i32 {
        let ended = tokio::task::spawn_blocking(move || self.child.lock().unwrap().wait().unwrap().code());
        tokio::time::timeout(PATIENCE, ended).await.expect("the process goes on").unwrap().expect("an exit code")
    }

    /// As a power cut would end it, but for what the system had still to write.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// The whole answer to a GET of the HTTP port.
    pub(crate) async fn http(&self, path: &str) -> String {
        let mut socket = TcpStream::connect(&self.http).await.unwrap();
        let ask = format!("GET {path} HTTP/1.1\r\nhost: weir\r\nconnection: close\r\n\r\n");
        socket.write_all(ask.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Scrapes the metrics until they have this line.
    pub(crate) async fn until(&self, line: &str) {
        let scrapes = async { while !self.http("/metrics").await.lines().any(|found| found == line) {} };
        tokio::time::timeout(PATIENCE, scrapes).await.expect("the line never came");
    }
}

/// A test that fails leaves no process behind.
impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(child) = self.child.get_mut() {
            // A process that has ended already is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("serve").arg("--data-dir").arg(folder).args(["--http-listen", "127.0.0.1:0"]);
    command.env_clear().stderr(Stdio::piped()).stdin(Stdio::null());
    command
}

pub(crate) async fn publish(server: &Server, messages: Vec<v1::Message>) -> Result<v1::PublishResponse, Status> {
    let request =
        v1::PublishRequest { policy: "task_events".into(), tenant: "acme".into(), agent_id: "desk".into(), messages };
    let answer = PublishServiceClient::new(server.wire.clone()).publish(request).await;
    answer.map(tonic::Response::into_inner)
}

pub(crate) fn group(name: &str) -> v1::GroupRef {
    v1::GroupRef { scope: "acme".into(), policy: "task_events".into(), name: name.into() }
}

pub(crate) fn session(id: u8, group: v1::GroupRef) -> v1::Session {
    v1::Session {
        session_id: vec![id; 16].into(),
        group: Some(group),
        member: format!("member {id}"),
        held: Some(v1::Held::default()),
        ..Default::default()
    }
}

pub(crate) fn event(task: &str, id: &str) -> v1::Message {
    v1::Message {
        message_id: id.into(),
        task_id: task.into(),
        agent_id: "planner".into(),
        r#type: "event".into(),
        ..Default::default()
    }
}

pub(crate) fn task_request(task: &str, id: &str, execution: &str) -> v1::Message {
    v1::Message { r#type: "task.request".into(), execution_id: execution.into(), ..event(task, id) }
}

pub(crate) fn fetch(session: v1::Session, max_messages: u32, wait_ms: u64) -> v1::FetchRequest {
    v1::FetchRequest { session: Some(session), max_messages, wait_ms, ..Default::default() }
}

pub(crate) fn settlement(delivery: &v1::Delivery, outcome: SettleOutcome) -> v1::Settlement {
    v1::Settlement { epoch: delivery.epoch, offset: delivery.offset, outcome: outcome.into(), ..Default::default() }
}
