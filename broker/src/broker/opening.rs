//! Opening a data folder: state, then the journal after it, then the engine, then the threads.

use super::answer::chain;
use super::builder::{BrokerBuilder, OpenError, SyncPolicy};
use super::checkpointing::Checkpoints;
use super::lanes::Lanes;
use super::listing::HealthCell;
use super::loading::{Loaders, load};
use super::sequencer::{Input, Sequencer};
use super::{Broker, QUEUE_BYTES_MAX, Shared};
use crate::engine::{Arrival, Counters, Engine, MessageHead, NameHasher, Resident, Want, head_of};
use crate::journal::{self, Applied, Journal, JournalConfig, RecoveredFrame, Recovery, SyncMode, entry};
use crate::model::policy::ChannelPolicy;
use crate::model::{ChannelNo, GroupNo, Lsn, PolicyNo, Refusal, SegmentNo, SessionId, UnixMillis};
use crate::read::{Feed, IndexFiles, MessageIndex, ReadError, Reader, Records, TailCache};
use crate::state::rows::{self, RowError};
use crate::state::{AppliedRow, Checkpointer, Family, SCAN_ROWS_MAX, Scan, Store, StoreError};
use serde::de::DeserializeOwned;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, mpsc};
use tokio::sync::Semaphore;

pub(super) fn open(builder: BrokerBuilder) -> Result<Broker, OpenError> {
    for policy in &builder.policies {
        policy.validate().map_err(|refusal| policy_refused(policy, &refusal))?;
    }
    if builder.segment_bytes < SEGMENT_BYTES_MIN {
        return Err(OpenError::Setting(format!("segment_bytes: at least {SEGMENT_BYTES_MIN}")));
    }
    let dir = &builder.data_dir;
    builder.fs.create_dir(dir).map_err(|e| OpenError::Folder(dir.clone(), e))?;
    let store = store_of(&builder)?;
    let applied = store.applied().map_err(|e| state_failed(&e))?;

    let tail = Arc::new(TailCache::new(builder.tail_bytes));
    let index = Arc::new(MessageIndex::new());
    let feed = Arc::new(Feed::new(Arc::clone(&index), Arc::clone(&tail)));
    let config = JournalConfig {
        segment_bytes: builder.segment_bytes,
        spares: builder.spares,
        sync: match builder.sync {
            SyncPolicy::Always => SyncMode::Always,
            SyncPolicy::Interval(every) => SyncMode::Interval(every),
        },
        ..JournalConfig::new(dir.join("journal"))
    };
    let known = applied.as_ref().map(|row| Applied { segment: row.segment, lsn: row.lsn, journal_id: row.journal_id });
    let (journal, recovery) =
        Journal::open(Arc::clone(&builder.fs), config, known, feed).map_err(|e| journal_failed(&e))?;
    let journal = Arc::new(journal);
    if let Some(cut) = &recovery.cut {
        tracing::warn!(?cut, "a torn tail was cut from the journal; nothing in it was ever confirmed");
    }

    let hasher = NameHasher::new(recovery.journal_id);
    let broker_time = recovery.broker_time.max(applied.as_ref().map_or(UnixMillis(0), |row| row.broker_time));
    let mut engine = engine_of(&builder, &*store, hasher, applied.as_ref())?;
    replay(&mut engine, &*store, hasher, recovery)?;

    let segments: HashSet<_> = journal.segments().iter().map(|info| info.segment).collect();
    // Before anything is started: put_policies has nobody to tell a refusal to.
    engine.check_policies(&builder.policies).map_err(|(policy, refusal)| policy_refused(policy, &refusal))?;

    let index_dir = dir.join("index");
    let files =
        IndexFiles::open(Arc::clone(&builder.fs), &index_dir, journal.id(), |segment| segments.contains(&segment))
            .map_err(|e| OpenError::Folder(index_dir.clone(), e))?;
    let reader = Reader::open(
        Arc::clone(&tail),
        Arc::clone(&index),
        files,
        Arc::clone(&journal) as Arc<dyn Records>,
        Arc::clone(&store),
    )
    .map_err(OpenError::Thread)?;
    let sealed: Vec<_> =
        journal.segments().iter().filter(|info| info.last_lsn.is_some()).map(|info| info.segment).collect();
    missing_segment(&sealed).map_or(Ok(()), |segment| {
        Err(OpenError::DataLoss(format!("segment {segment} of the journal is missing, and others after it are there")))
    })?;
    let from = applied.as_ref().map_or(SegmentNo(0), |row| row.segment);
    reader.adopt(from, &sealed).map_err(|e| places_failed(&e))?;
    let reader = Arc::new(reader);

    builder.clock.at_least(broker_time);
    let now = builder.clock.now();
    engine.start(now);

    let (inbox, inputs) = mpsc::channel();
    let closed = inbox.clone();
    // A sequencer that is gone knows.
    journal.when_closed(move || drop(closed.send(Input::JournalClosed)));
    let arrived = inbox.clone();
    let loaders = Loaders::start(&store, &reader, hasher, move |arrival| {
        // A sequencer that is gone wants nothing any more.
        let _ = arrived.send(Input::Arrived(arrival));
    })
    .map_err(OpenError::Thread)?;
    let checkpointer = Checkpointer::start(Arc::clone(&store)).map_err(OpenError::Thread)?;
    let checkpoints =
        Checkpoints::new(builder.checkpoints, checkpointer, Arc::clone(&index), Arc::clone(&journal), now);
    let health = Arc::new(HealthCell::new());
    let sequencer = Sequencer {
        engine,
        clock: Arc::clone(&builder.clock),
        journal: Arc::clone(&journal),
        loaders,
        checkpoints,
        health: Arc::clone(&health),
        inbox: inputs,
        own: inbox.clone(),
        lanes: Lanes::default(),
        answers: HashMap::new(),
        streams: HashMap::new(),
        attaching: HashMap::new(),
        round: Default::default(),
        stop: None,
        now,
    };
    put_policies(&inbox, &builder);
    let thread = std::thread::Builder::new()
        .name("weir-sequencer".to_owned())
        .spawn(move || sequencer.run())
        .map_err(OpenError::Thread)?;
    Ok(Broker {
        shared: Arc::new(Shared {
            inbox,
            budget: Arc::new(Semaphore::new(QUEUE_BYTES_MAX)),
            tickets: AtomicU64::new(FIRST_TICKET),
            hasher,
            reader,
            tail,
            store,
            journal,
            health,
            frame_bytes_max: Journal::frame_bytes_max(builder.segment_bytes),
            interval: matches!(builder.sync, SyncPolicy::Interval(_)),
            thread: parking_lot::Mutex::new(Some(thread)),
        }),
    })
}

fn store_of(builder: &BrokerBuilder) -> Result<Arc<dyn Store>, OpenError> {
    #[cfg(test)]
    if let Some(store) = &builder.store {
        return Ok(Arc::clone(store));
    }
    open_store(&builder.data_dir.join("state"))
}

#[cfg(feature = "rocksdb")]
fn open_store(folder: &Path) -> Result<Arc<dyn Store>, OpenError> {
    let store = crate::state::RocksStore::open(folder).map_err(|e| state_failed(&e))?;
    Ok(Arc::new(store))
}

#[cfg(not(feature = "rocksdb"))]
fn open_store(_: &Path) -> Result<Arc<dyn Store>, OpenError> {
    Err(OpenError::State("this weir was built without the feature `rocksdb` and keeps none".to_owned()))
}

fn state_failed(error: &StoreError) -> OpenError {
    match error {
        StoreError::Damaged { .. } => OpenError::DataLoss(chain(error)),
        _ => OpenError::State(chain(error)),
    }
}

fn journal_failed(error: &journal::OpenError) -> OpenError {
    match error {
        journal::OpenError::DataLoss { .. } | journal::OpenError::WrongJournal { .. } => {
            OpenError::DataLoss(chain(error))
        }
        _ => OpenError::Journal(chain(error)),
    }
}

/// Why the places of messages cannot be read. What the storage refuses is no loss: the next start may read it.
fn places_failed(error: &ReadError) -> OpenError {
    match error {
        ReadError::Journal(journal::ReadError::Io { .. }) => OpenError::Journal(chain(error)),
        ReadError::State(state) => state_failed(state),
        ReadError::Journal(_) | ReadError::Extent(_) => OpenError::DataLoss(chain(error)),
    }
}

/// The first segment that is not there though a later one is. None is ever given back, so each number from 1 on has to be.
fn missing_segment(sealed: &[SegmentNo]) -> Option<SegmentNo> {
    (1..).map(SegmentNo).zip(sealed).find(|(expected, found)| expected != *found).map(|(expected, _)| expected)
}

fn policy_refused(policy: &ChannelPolicy, refusal: &Refusal) -> OpenError {
    OpenError::Setting(format!("policy {}: {refusal}", policy.name))
}

/// Smallest segment: half of it, a frame, holds the entries of one turn and a small message.
const SEGMENT_BYTES_MIN: u64 = 1024 * 1024;
/// Tickets below are the opening's own.
const FIRST_TICKET: u64 = 1 << 20;

/// The policies of the builder are the first calls that the sequencer carries out. They were checked: none is refused.
fn put_policies(inbox: &mpsc::Sender<Input>, builder: &BrokerBuilder) {
    for (ticket, policy) in (0..).zip(&builder.policies) {
        let command = crate::engine::Command::PutPolicy(policy.clone());
        // The receiver is in this very function's caller.
        let _ = inbox.send(Input::Call { ticket, command, answer: None, permit: None });
    }
}

/// The engine as state left it.
fn engine_of(
    builder: &BrokerBuilder,
    store: &dyn Store,
    hasher: NameHasher,
    applied: Option<&AppliedRow>,
) -> Result<Engine, OpenError> {
    let mut resident = Resident::default();
    each(store, Family::Policies, |key, row| {
        resident.policies.push((PolicyNo(u32::from_be_bytes(fixed(key)?)), row));
        Ok(())
    })?;
    each(store, Family::Groups, |key, row| {
        resident.groups.push((GroupNo(u32::from_be_bytes(fixed(key)?)), row));
        Ok(())
    })?;
    each(store, Family::Sessions, |key, row| {
        resident.sessions.push((SessionId(u128::from_be_bytes(fixed(key)?)), row));
        Ok(())
    })?;
    each(store, Family::Deliveries, |key, row| {
        resident.deliveries.push((rows::parse_delivery_key(key)?, row));
        Ok(())
    })?;
    each(store, Family::Settles, |key, row: rows::SettleBlockRow| {
        resident.settle_blocks.push((u64::from_be_bytes(fixed(key)?), row.last_at));
        Ok(())
    })?;
    let counters = applied.map_or_else(Counters::default, |row| Counters {
        epoch: row.epoch,
        channel: ChannelNo(row.next_channel.get().saturating_sub(1)),
        policy: PolicyNo(row.next_policy.get().saturating_sub(1)),
        group: GroupNo(row.next_group.get().saturating_sub(1)),
    });
    let lsn = applied.map_or(Lsn(0), |row| row.lsn);
    let time = applied.map_or(UnixMillis(0), |row| row.broker_time);
    Ok(Engine::new(hasher, builder.engine, resident, counters, lsn, time))
}

/// All rows of a family, page by page.
fn each<R: DeserializeOwned>(
    store: &dyn Store,
    family: Family,
    mut take: impl FnMut(&[u8], R) -> Result<(), RowError>,
) -> Result<(), OpenError> {
    let mut after: Option<Vec<u8>> = None;
    loop {
        let scan = Scan { prefix: &[], after: after.as_deref(), limit: SCAN_ROWS_MAX };
        let page = store.scan(family, scan).map_err(|e| state_failed(&e))?;
        for (key, value) in &page {
            rows::decode(value).and_then(|row| take(key, row)).map_err(|e| OpenError::DataLoss(e.to_string()))?;
        }
        match page.into_iter().next_back() {
            Some((key, _)) => after = Some(key),
            None => return Ok(()),
        }
    }
}

fn fixed<const N: usize>(key: &[u8]) -> Result<[u8; N], RowError> {
    key.try_into().map_err(|_| RowError(format!("a key of {} bytes where {N} are due", key.len())))
}

/// Gives the frames that state does not hold their effect.
fn replay(engine: &mut Engine, store: &dyn Store, hasher: NameHasher, recovery: Recovery) -> Result<(), OpenError> {
    for frame in recovery.frames {
        let RecoveredFrame { lsn, entries, records, .. } = frame.map_err(|e| journal_failed(&e))?;
        let entries = entry::decode(&entries).map_err(|e| OpenError::DataLoss(format!("frame {lsn}: {e}")))?;
        let heads: Vec<Arc<MessageHead>> = records
            .iter()
            .map(|record| head_of(hasher, &record.bytes))
            .collect::<Result<_, _>>()
            .map_err(|e| OpenError::DataLoss(format!("frame {lsn}: {e}")))?;
        loop {
            let missing = engine.replay_needs(&entries, &heads);
            if missing.is_empty() {
                break;
            }
            for key in missing {
                let arrival = load(store, None, hasher, Want::Row(key)).map_err(|e| OpenError::State(chain(&e)))?;
                if let Arrival::Row(key, row) = arrival {
                    engine.admit(key, row).map_err(|e| OpenError::DataLoss(e.to_string()))?;
                }
            }
        }
        engine.replay(lsn, &entries, &heads);
    }
    Ok(())
}
