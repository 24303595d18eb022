//! The thread that writes index files of sealed segments, so that the journal's writer never does.

use super::{IndexFiles, MessageIndex};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// A handle to the thread. Dropping it lets the file at hand be finished, then joins the thread.
pub(super) struct IndexWriter {
    index: Arc<MessageIndex>,
    thread: Option<JoinHandle<()>>,
}

impl IndexWriter {
    /// Starts the thread.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(super) fn start(index: Arc<MessageIndex>, files: Arc<IndexFiles>) -> io::Result<Self> {
        let of_thread = Arc::clone(&index);
        let thread = thread::Builder::new().name("weir-index".to_owned()).spawn(move || run(&of_thread, &files))?;
        Ok(Self { index, thread: Some(thread) })
    }
}

impl Drop for IndexWriter {
    fn drop(&mut self) {
        self.index.stop();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that writes index files ended by a panic");
        }
    }
}

fn run(index: &MessageIndex, files: &IndexFiles) {
    while let Some((segment, entries)) = index.next_to_write() {
        let written = files.write(segment, &entries);
        if let Err(error) = &written {
            tracing::warn!(%segment, %error, "the index of a segment stays in memory: its file cannot be written");
        }
        let is_there = index.file_written(segment, written.is_ok());
        if !is_there && let Err(error) = files.remove(segment) {
            tracing::warn!(%segment, %error, "the index file of a segment that is gone stays until the next start");
        }
    }
}
