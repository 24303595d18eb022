//! `weirctl` as a process.

use crate::process::Server;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

impl Server {
    /// `weirctl`, to be run.
    pub(crate) fn weirctl_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weirctl"));
        let endpoint = format!("http://{}", self.grpc);
        command.env_clear().args(["--endpoint", &endpoint]).args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs `weirctl` to its end.
    pub(crate) fn weirctl(&self, arguments: &[&str]) -> Output {
        self.weirctl_command(arguments).output().unwrap()
    }

    /// Runs `weirctl` in the background, its data going to a file and its words nowhere.
    pub(crate) fn weirctl_into(&self, file: &Path, arguments: &[&str]) -> Guarded {
        let out = File::create(file).unwrap();
        Guarded(self.weirctl_command(arguments).stdout(out).stderr(Stdio::null()).spawn().unwrap())
    }

    /// What `weirctl -o json ...` says; it must succeed.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.weirctl(&[&["-o", "json"], arguments].concat());
        assert!(output.status.success(), "{arguments:?}: {}", words(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The JSON lines that `weirctl` writes; it must succeed.
    pub(crate) fn lines(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.weirctl(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", words(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The counts `weirctl pub` of a file ends with; it must succeed.
    pub(crate) fn publish_file(&self, file: &Path, flags: &[&str]) -> Value {
        let file = file.to_str().unwrap();
        self.lines(&[&["pub", "--policy", "task_events", "--file", file], flags].concat()).pop().unwrap()
    }
}

/// What a command said on its standard error.
pub(crate) fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A process that is killed when dropped.
pub(crate) struct Guarded(pub(crate) Child);

impl Guarded {
    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Waits for its end; whether it ended well.
    pub(crate) fn ended_well(mut self) -> bool {
        self.0.wait().unwrap().success()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // A process that has ended already is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
