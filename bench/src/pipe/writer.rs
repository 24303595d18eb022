//! The one thread that writes: takes what waits, writes it, syncs, and lets the answers go.

use super::file::{FILE_BYTES, RecycledFile};
use bytes::Bytes;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::thread;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

/// Publishes that may wait for the writer; more wait in their connections.
const WAITING_MAX: usize = 8192;
/// Bytes after which no more is taken into a group.
const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What is done with the bytes.
pub(super) enum Syncing {
    /// They are written to this file and synced.
    File(PathBuf),
    /// Nothing.
    Nothing,
}

/// Where an answer goes.
pub(super) enum AnswerTo {
    Stream(mpsc::Sender<Result<Bytes, Status>>),
    Call(oneshot::Sender<Bytes>),
}

/// The bytes of one publish, and what is said once they are synced.
pub(super) struct Append {
    pub(super) bytes: Bytes,
    pub(super) answer: Bytes,
    pub(super) to: AnswerTo,
}

/// Starts the writer; the second value is what ends it.
pub(super) fn start(syncing: Syncing) -> io::Result<(mpsc::Sender<Append>, oneshot::Receiver<io::Error>)> {
    let file = match syncing {
        Syncing::File(path) => Some(RecycledFile::create(&path, FILE_BYTES)?),
        Syncing::Nothing => None,
    };
    let (appends, waiting) = mpsc::channel(WAITING_MAX);
    let (failed, ended) = oneshot::channel();
    thread::Builder::new().name("pipe-writer".into()).spawn(move || {
        if let Err(error) = run(waiting, file) {
            // Whoever listened may be gone, and the process with it.
            drop(failed.send(error));
        }
    })?;
    Ok((appends, ended))
}

fn run(mut arriving: mpsc::Receiver<Append>, mut file: Option<RecycledFile>) -> io::Result<()> {
    let mut waiting = VecDeque::new();
    let mut group = Vec::new();
    loop {
        if waiting.is_empty() {
            let Some(append) = arriving.blocking_recv() else { return Ok(()) };
            waiting.push_back(append);
        }
        while let Ok(append) = arriving.try_recv() {
            waiting.push_back(append);
        }
        let mut bytes = 0;
        while bytes < GROUP_BYTES_MAX
            && let Some(append) = waiting.pop_front()
        {
            bytes += append.bytes.len();
            group.push(append);
        }
        if let Some(file) = &mut file {
            let mut parts: Vec<IoSlice<'_>> = group.iter().map(|append: &Append| IoSlice::new(&append.bytes)).collect();
            file.append(&mut parts)?;
        }
        group.drain(..).for_each(let_go);
    }
}

fn let_go(append: Append) {
    // A client that is gone needs no answer.
    match append.to {
        AnswerTo::Stream(stream) => drop(stream.blocking_send(Ok(append.answer))),
        AnswerTo::Call(call) => drop(call.send(append.answer)),
    }
}
