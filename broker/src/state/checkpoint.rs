//! The thread that writes checkpoints, so that the sequencer never waits for the store.

use super::{Batch, Store, StoreError};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

/// Jobs that may wait while one runs. The engine has one frozen table at a time, so one is enough.
const JOBS_WAITING_MAX: usize = 1;

/// A checkpoint to write.
pub(crate) struct CheckpointJob {
    /// What to write. Its LSN is durable in the journal: nobody writes a state that the journal could still lose.
    pub(crate) batch: Batch,
    /// Told once, on the checkpoint thread, when the batch is durable or has failed. Must not block.
    pub(crate) on_done: Box<dyn FnOnce(Result<(), StoreError>) + Send>,
}

impl fmt::Debug for CheckpointJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckpointJob").field("applied", &self.batch.applied).finish_non_exhaustive()
    }
}

/// Why a job was handed back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotTaken {
    /// Another job is waiting already; offer it again when one is done.
    #[error("a checkpoint is waiting already")]
    Busy(Box<CheckpointJob>),
    /// The thread has ended, which it does only by a panic.
    #[error("the checkpoint thread has ended")]
    Ended(Box<CheckpointJob>),
}

/// A handle to the checkpoint thread. Dropping it finishes what was taken, then joins the thread.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    jobs: Option<SyncSender<CheckpointJob>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Starts the thread.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(crate) fn start(store: Arc<dyn Store>) -> io::Result<Self> {
        let (jobs, taken) = sync_channel(JOBS_WAITING_MAX);
        let thread = thread::Builder::new().name("weir-checkpoint".to_owned()).spawn(move || run(&*store, &taken))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Hands a job over without waiting. Jobs run one by one, in order.
    ///
    /// # Errors
    /// [`NotTaken`], with the job.
    pub(crate) fn submit(&self, job: CheckpointJob) -> Result<(), NotTaken> {
        let Some(jobs) = &self.jobs else { return Err(NotTaken::Ended(Box::new(job))) };
        jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(job) => NotTaken::Busy(Box::new(job)),
            TrySendError::Disconnected(job) => NotTaken::Ended(Box::new(job)),
        })
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the checkpoint thread ended by a panic");
        }
    }
}

fn run(store: &dyn Store, jobs: &Receiver<CheckpointJob>) {
    while let Ok(CheckpointJob { batch, on_done }) = jobs.recv() {
        on_done(store.checkpoint(batch));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::super::contract::applied_at;
    use super::super::{CheckpointFault, MemoryDisk, MemoryStore};
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    fn job(lsn: u64, done: &Sender<(u64, bool)>) -> CheckpointJob {
        let done = done.clone();
        let on_done = Box::new(move |result: Result<(), StoreError>| done.send((lsn, result.is_ok())).unwrap());
        CheckpointJob { batch: Batch::new(applied_at(lsn)), on_done }
    }

    #[test]
    fn jobs_run_in_order_and_each_is_told_once() {
        let store = Arc::new(MemoryStore::open(&MemoryDisk::default()));
        let checkpointer = Checkpointer::start(store.clone()).unwrap();
        let (done, told) = channel();
        for lsn in 1..=20 {
            let mut next = job(lsn, &done);
            while let Err(NotTaken::Busy(back)) = checkpointer.submit(next) {
                next = *back;
            }
        }
        drop(checkpointer);
        assert_eq!(told.try_iter().collect::<Vec<_>>(), (1..=20).map(|lsn| (lsn, true)).collect::<Vec<_>>());
        assert_eq!(store.applied().unwrap(), Some(applied_at(20)));
    }

    #[test]
    fn after_a_failed_checkpoint_the_later_ones_fail_too() {
        let disk = MemoryDisk::default();
        let checkpointer = Checkpointer::start(Arc::new(MemoryStore::open(&disk))).unwrap();
        let (done, told) = channel();
        disk.fail_next_checkpoint(CheckpointFault::Flush);
        checkpointer.submit(job(1, &done)).unwrap();
        assert_eq!(told.recv(), Ok((1, false)));
        checkpointer.submit(job(2, &done)).unwrap();
        assert_eq!(told.recv(), Ok((2, false)));
        assert_eq!(MemoryStore::open(&disk).applied().unwrap(), None);
    }

    #[test]
    fn a_job_that_finds_no_place_comes_back() {
        let store = Arc::new(MemoryStore::open(&MemoryDisk::default()));
        let checkpointer = Checkpointer::start(store).unwrap();
        let (started, is_started) = channel();
        let (go, gate) = channel::<()>();
        let on_done = Box::new(move |_: Result<(), StoreError>| {
            started.send(()).unwrap();
            gate.recv().unwrap();
        });
        checkpointer.submit(CheckpointJob { batch: Batch::new(applied_at(1)), on_done }).unwrap();
        is_started.recv().unwrap();
        let (done, told) = channel();
        checkpointer.submit(job(2, &done)).expect("one may wait");
        let NotTaken::Busy(back) = checkpointer.submit(job(3, &done)).unwrap_err() else { panic!("not busy") };
        assert_eq!(back.batch.applied, applied_at(3));
        go.send(()).unwrap();
        drop(checkpointer);
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [(2, true)], "what was taken is finished");
    }
}
