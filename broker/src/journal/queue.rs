//! What stands between the sequencer and the writer.

use super::error::JournalError;
use super::submission::{Submission, Waiter};
use crate::model::Lsn;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Shared by the handle and the writer. The lock guards the queue only; no waiter is released under it.
pub(super) struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    durable: AtomicU64,
    backlog: AtomicU64,
    closed: OnceLock<JournalError>,
    /// Whoever is told when it closes.
    to_tell: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Submission>,
    /// Submissions taken in whose waiters have not all gone.
    pending: u64,
    closing: bool,
    /// The writer is gone: nobody would take from the queue.
    ended: bool,
}

impl Shared {
    pub(super) fn new(durable: Lsn) -> Self {
        Self {
            queue: Mutex::default(),
            wake: Condvar::new(),
            durable: AtomicU64::new(durable.get()),
            backlog: AtomicU64::new(0),
            closed: OnceLock::new(),
            to_tell: Mutex::new(None),
        }
    }

    pub(super) fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    pub(super) fn set_durable(&self, lsn: Lsn) {
        self.durable.store(lsn.get(), Ordering::Release);
    }

    pub(super) fn backlog_bytes(&self) -> u64 {
        self.backlog.load(Ordering::Relaxed)
    }

    /// `bytes` of frames are written, or never will be.
    pub(super) fn written(&self, bytes: u64) {
        self.backlog.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn closed(&self) -> Option<&JournalError> {
        self.closed.get()
    }

    /// Nothing more is appended; the first reason stays.
    pub(super) fn close_for(&self, reason: JournalError) {
        self.closed.get_or_init(|| reason);
        self.tell_closed();
    }

    /// Calls `told` once when nothing more is appended, or now if that is so already.
    pub(super) fn when_closed(&self, told: Box<dyn FnOnce() + Send>) {
        *self.to_tell.lock() = Some(told);
        if self.closed().is_some() {
            self.tell_closed();
        }
    }

    fn tell_closed(&self) {
        let told = self.to_tell.lock().take();
        if let Some(told) = told {
            told();
        }
    }

    /// Whether what waits for `applied` may go.
    pub(super) fn outcome(&self, applied: Lsn) -> Option<Result<(), JournalError>> {
        if applied <= self.durable() { Some(Ok(())) } else { self.closed().cloned().map(Err) }
    }

    /// Queues a submission, or, where nothing is before it and nothing has to be written, lets it go at once: its waiters
    /// leave in their turn either way.
    pub(super) fn submit(&self, submission: Submission) {
        let mut queue = self.queue.lock();
        let nothing_to_write = submission.frames.is_empty() && submission.applied <= self.durable();
        if queue.ended || queue.closing || (queue.pending == 0 && nothing_to_write) {
            drop(queue);
            let outcome = self.outcome(submission.applied).unwrap_or(Err(JournalError::Closed));
            release(submission.early_waiters, &outcome);
            release(submission.waiters, &outcome);
            return;
        }
        self.backlog.fetch_add(submission.encoded_len(), Ordering::Relaxed);
        queue.pending += 1;
        queue.waiting.push_back(submission);
        drop(queue);
        self.wake.notify_one();
    }

    /// Takes all that waits.
    pub(super) fn take(&self, into: &mut VecDeque<Submission>) {
        into.append(&mut self.queue.lock().waiting);
    }

    /// Waits for work, or until `due`, takes all that waits, and says whether the journal is closing.
    pub(super) fn wait(&self, into: &mut VecDeque<Submission>, due: Option<Instant>) -> bool {
        let mut queue = self.queue.lock();
        while queue.waiting.is_empty() && !queue.closing {
            match due {
                None => self.wake.wait(&mut queue),
                Some(due) => {
                    if self.wake.wait_until(&mut queue, due).timed_out() {
                        break;
                    }
                }
            }
        }
        into.append(&mut queue.waiting);
        queue.closing
    }

    /// The waiters of `count` submissions have all gone.
    pub(super) fn done(&self, count: u64) {
        let mut queue = self.queue.lock();
        queue.pending = queue.pending.saturating_sub(count);
    }

    /// Asks the writer to write what waits and end.
    pub(super) fn begin_close(&self) {
        self.queue.lock().closing = true;
        self.wake.notify_one();
    }

    /// The writer ends: takes what still waits; whatever is submitted from now on is answered at once.
    pub(super) fn end(&self, into: &mut VecDeque<Submission>) {
        let mut queue = self.queue.lock();
        queue.ended = true;
        into.append(&mut queue.waiting);
    }
}

/// Lets all go with the same outcome, in order.
pub(super) fn release(waiters: Vec<Box<dyn Waiter>>, outcome: &Result<(), JournalError>) {
    for waiter in waiters {
        waiter.release(outcome.clone());
    }
}
