//! Bringing rows into the engine's memory, off its thread.

use super::answer::chain;
use crate::engine::{Arrival, Loaded, NameHasher, RowKey, TaskPage, Want, head_of};
use crate::journal;
use crate::model::{ChannelNo, Offset};
use crate::read::{ReadError, Reader};
use crate::state::rows::{
    self, RowError, TaskRow, channel_key, channel_name_key, channel_name_prefix, cursor_key, execution_key, pair_key,
    parse_channel_name_key, parse_task_key, settles_key, task_channel_prefix, task_key, task_prefix, totals_key,
};
use crate::state::{Family, Scan, Store, StoreError};
use crate::telemetry;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// Threads that load.
const THREADS: usize = 2;
/// When a message is read again that the system would not read.
pub(super) const READ_AGAIN_AFTER: [Duration; 4] =
    [Duration::from_millis(5), Duration::from_millis(50), Duration::from_millis(250), Duration::from_millis(750)];
/// Rows of one page of a backlog.
const PAGE_ROWS: usize = 1_024;

/// Why something could not be loaded. The broker cannot go on without it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// State does not answer.
    #[error("state: {0}")]
    Store(#[from] StoreError),
    /// State answers with bytes that are no such row.
    #[error("state: {0}")]
    Row(#[from] RowError),
    /// State could not say where a message is.
    #[error("finding message {1} of channel number {0}: {2}")]
    Message(ChannelNo, Offset, String),
}

/// Loads one thing that the engine wants.
pub(crate) fn load(
    store: &dyn Store,
    reader: Option<&Reader>,
    hasher: NameHasher,
    want: Want,
) -> Result<Arrival, LoadError> {
    match want {
        Want::Row(key) => {
            let loaded = load_row(store, reader, hasher, &key)?;
            Ok(Arrival::Row(key, loaded))
        }
        Want::Names { group, policy, tenant, after, finished } => {
            let prefix = channel_name_prefix(policy, tenant.as_deref());
            let from = after.as_ref().map(|(tenant, agent)| channel_name_key(policy, tenant, agent));
            let scan = Scan { prefix: &prefix, after: from.as_deref(), limit: PAGE_ROWS };
            let rows = store.scan(Family::ChannelNames, scan)?;
            let full = rows.len() == PAGE_ROWS;
            let mut names = Vec::with_capacity(rows.len());
            for (key, value) in rows {
                let (_, tenant, agent) = parse_channel_name_key(&key)?;
                let no = value.as_ref().try_into().map(u64::from_be_bytes);
                names.push((
                    tenant,
                    agent,
                    ChannelNo(no.map_err(|_| RowError("channel number of odd size".to_owned()))?),
                ));
            }
            let through =
                if full { names.last().map(|(tenant, agent, _)| (tenant.clone(), agent.clone())) } else { None };
            Ok(Arrival::Names { group, policy, after, names, through, finished })
        }
        Want::Tasks { group, channel, after, finished } => {
            Ok(Arrival::Tasks { group, channel, page: task_page(store, channel, after)?, finished })
        }
    }
}

fn load_row(store: &dyn Store, reader: Option<&Reader>, hasher: NameHasher, key: &RowKey) -> Result<Loaded, LoadError> {
    let (family, bytes) = match key {
        RowKey::ChannelName(policy, tenant, agent) => (Family::ChannelNames, channel_name_key(*policy, tenant, agent)),
        RowKey::Channel(no) => (Family::Channels, channel_key(*no)),
        RowKey::Pair(pair) => (Family::Dedup, pair_key(*pair)),
        RowKey::Execution(execution) => (Family::Executions, execution_key(*execution)),
        RowKey::Cursor(group, channel) => (Family::Cursors, cursor_key(*group, *channel)),
        RowKey::Settles(block) => (Family::Settles, settles_key(*block)),
        RowKey::Totals(policy, tenant) => (Family::Totals, totals_key(*policy, tenant)),
        RowKey::Task(channel, task) => {
            let prefix = task_prefix(*channel, *task);
            let mut parts = Vec::new();
            let mut after: Option<Vec<u8>> = None;
            loop {
                let scan = Scan { prefix: &prefix, after: after.as_deref(), limit: PAGE_ROWS };
                let rows = store.scan(Family::Tasks, scan)?;
                let full = rows.len() == PAGE_ROWS;
                after = rows.last().map(|(key, _)| key.clone());
                parts.extend(rows.into_iter().map(|(_, value)| value));
                if !full {
                    return Ok(Loaded::Parts(parts));
                }
            }
        }
        RowKey::Head(channel, offset) => {
            let failed = |words: String| LoadError::Message(*channel, *offset, words);
            let reader = reader.ok_or_else(|| failed("asked for before messages can be read".to_owned()))?;
            let read = read_message(reader, *channel, *offset, &mut READ_AGAIN_AFTER.into_iter())
                .map_err(|e| failed(chain(&e)))?;
            let head = read.and_then(|bytes| head_of(hasher, &bytes).map_err(|e| e.to_string()));
            return Ok(match head {
                Ok(head) => Loaded::Head(head),
                Err(what) => {
                    report_unreadable(*channel, *offset, &what);
                    Loaded::Unreadable(what)
                }
            });
        }
    };
    Ok(Loaded::Value(store.get(family, &bytes)?))
}

/// The bytes of a message that was confirmed, or why they cannot be read. Only that message is concerned, whatever the
/// journal says of it. A system that refuses to read (no file handles, a single I/O error) is asked again for a second
/// before its word is taken: what is unreadable is set aside, and bytes that are fine should not be. `pauses` are what is left of
/// that second, so that many messages on a bad disk share it.
///
/// # Errors
/// [`ReadError::State`]: the broker cannot go on.
pub(super) fn read_message(
    reader: &Reader,
    channel: ChannelNo,
    offset: Offset,
    pauses: &mut impl Iterator<Item = Duration>,
) -> Result<Result<Bytes, String>, ReadError> {
    loop {
        return match reader.get(channel, offset) {
            Ok(Some(bytes)) => Ok(Ok(bytes)),
            Ok(None) => Ok(Err("it is not in the journal".to_owned())),
            Err(error @ ReadError::State(_)) => Err(error),
            Err(error) => {
                if let ReadError::Journal(journal::ReadError::Io { .. }) = &error
                    && let Some(pause) = pauses.next()
                {
                    std::thread::park_timeout(pause);
                    continue;
                }
                Ok(Err(chain(&error)))
            }
        };
    }
}

/// A message that was confirmed cannot be read: this is the one loss that weir never keeps to itself.
pub(super) fn report_unreadable(channel: ChannelNo, offset: Offset, what: &str) {
    telemetry::metrics::data_lost();
    tracing::error!(channel = channel.get(), offset = offset.get(), what, "DATA_LOSS: a stored message cannot be read");
}

/// Whole tasks of a channel after `after`; at least one, if there is one.
fn task_page(store: &dyn Store, channel: ChannelNo, after: Option<u128>) -> Result<TaskPage, LoadError> {
    let prefix = task_channel_prefix(channel);
    // Behind every row of the task `after`: no row of it has a greater first offset.
    let mut from = after.map(|task| task_key(channel, task, Offset(u64::MAX)));
    let mut page = TaskPage { after, through: None, tasks: BTreeMap::new() };
    loop {
        let scan = Scan { prefix: &prefix, after: from.as_deref(), limit: PAGE_ROWS };
        let rows = store.scan(Family::Tasks, scan)?;
        let full = rows.len() == PAGE_ROWS;
        from = rows.last().map(|(key, _)| key.clone());
        for (key, value) in rows {
            let (_, task, _) = parse_task_key(&key)?;
            let row: TaskRow = rows::decode(&value)?;
            page.tasks.entry(task).or_default().extend(row.messages);
        }
        if !full {
            return Ok(page);
        }
        // The last task may go on in the next rows: leave it to the next page, unless it is the only one.
        if page.tasks.len() > 1 {
            page.tasks.pop_last();
            page.through = page.tasks.last_key_value().map(|(task, _)| *task);
            return Ok(page);
        }
    }
}

/// Threads that load what is asked and hand it to `deliver`.
pub(crate) struct Loaders {
    wants: Option<mpsc::Sender<Want>>,
    threads: Vec<JoinHandle<()>>,
}

impl Loaders {
    /// Starts the threads.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(crate) fn start(
        store: &Arc<dyn Store>,
        reader: &Arc<Reader>,
        hasher: NameHasher,
        deliver: impl Fn(Result<Arrival, LoadError>) + Send + Clone + 'static,
    ) -> std::io::Result<Self> {
        let (wants, queue) = mpsc::channel::<Want>();
        let queue = Arc::new(parking_lot::Mutex::new(queue));
        let mut threads = Vec::new();
        for n in 0..THREADS {
            let (queue, store, reader) = (Arc::clone(&queue), Arc::clone(store), Arc::clone(reader));
            let deliver = deliver.clone();
            let thread = std::thread::Builder::new().name(format!("weir-load-{n}")).spawn(move || {
                loop {
                    // The lock is held while waiting: the other thread waits for the lock instead of the queue.
                    let next = queue.lock().recv();
                    let Ok(want) = next else { return };
                    deliver(load(&*store, Some(&reader), hasher, want));
                }
            })?;
            threads.push(thread);
        }
        Ok(Self { wants: Some(wants), threads })
    }

    /// Asks for something. The engine and the lanes bound what is asked at a time.
    pub(crate) fn ask(&self, want: Want) {
        if let Some(wants) = &self.wants {
            // The threads end only when this is dropped.
            let _ = wants.send(want);
        }
    }
}

impl Drop for Loaders {
    fn drop(&mut self) {
        drop(self.wants.take());
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a loading thread ended by a panic");
            }
        }
    }
}
