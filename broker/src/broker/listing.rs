//! Lists, audit, status and health.

use super::{Broker, check_group, unexpected};
use crate::engine::{Command, Reply, Snapshot};
use crate::model::{
    ChannelInfo, ChannelNo, ChannelRef, Execution, ExecutionFilter, GroupAudit, GroupInfo, GroupRef, Lsn, Page, Reason,
    Refusal, Selector, UnixMillis, limits, names,
};
use crate::state::rows::{channel_name_prefix, parse_channel_name_key};
use crate::state::{Family, Scan, StoreError};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What the broker is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Takes everything.
    Serving,
    /// Finishes what is begun.
    Draining,
    /// The disk failed, with the first cause; what is durable is still served.
    Failed(String),
    /// Closed.
    Closed,
}

/// The health as others read it.
#[derive(Debug)]
pub(crate) struct HealthCell(RwLock<Health>);

impl HealthCell {
    pub(crate) const fn new() -> Self {
        Self(RwLock::new(Health::Serving))
    }

    pub(crate) fn get(&self) -> Health {
        self.0.read().clone()
    }

    /// The first failure stays.
    pub(crate) fn set(&self, health: Health) {
        let mut cell = self.0.write();
        if !matches!(*cell, Health::Failed(_)) {
            *cell = health;
        }
    }
}

/// The broker in numbers, of one moment.
#[derive(Clone, Debug)]
pub struct Status {
    /// What it is at.
    pub health: Health,
    /// Broker time.
    pub at: UnixMillis,
    /// Last command that took effect.
    pub applied: Lsn,
    /// Last command that is durable.
    pub durable: Lsn,
    /// Segments of the journal on disk.
    pub segments: u64,
    /// Whether new work is refused because the disk has no more left than what finishing needs.
    pub storage_full: bool,
    /// Every group with its books.
    pub groups: Vec<GroupInfo>,
    /// Live leases.
    pub leases: u64,
    /// Live sessions.
    pub sessions: u64,
    /// Fetches that wait for a message.
    pub waiting_fetches: u64,
    /// Executions that became UNKNOWN since the process started.
    pub unknown_entered: u64,
    /// Executions that ceased to be UNKNOWN since the process started.
    pub unknown_left: u64,
    /// Messages ever published.
    pub published: u64,
    /// Policies.
    pub policies: u64,
    /// Channels ever made.
    pub channels: u64,
    /// Rows in memory, and how many of them a checkpoint has yet to write.
    pub rows_in_memory: u64,
    /// See [`Status::rows_in_memory`].
    pub dirty_rows: u64,
}

impl Broker {
    /// Health, without asking the engine.
    #[must_use]
    pub fn health(&self) -> Health {
        self.shared.health.get()
    }

    /// The broker in numbers.
    ///
    /// # Errors
    /// CLOSED.
    pub async fn status(&self) -> Result<Status, Refusal> {
        let snapshot = self.snapshot().await?;
        Ok(Status {
            health: self.health(),
            at: snapshot.at,
            applied: snapshot.lsn,
            durable: self.shared.journal.durable(),
            segments: self.shared.journal.segments().len() as u64,
            storage_full: self.shared.journal.storage_full(),
            groups: snapshot.groups,
            leases: snapshot.leases,
            sessions: snapshot.sessions,
            waiting_fetches: snapshot.waiting_fetches,
            unknown_entered: snapshot.unknown_entered,
            unknown_left: snapshot.unknown_left,
            published: snapshot.published,
            policies: snapshot.policies,
            channels: snapshot.channels,
            rows_in_memory: snapshot.rows_in_memory,
            dirty_rows: snapshot.dirty_rows,
        })
    }

    async fn snapshot(&self) -> Result<Snapshot, Refusal> {
        match self.call(Command::Snapshot, 0).await? {
            Reply::Snapshot(snapshot) => Ok(*snapshot),
            other => Err(unexpected(&other)),
        }
    }

    /// From now on only what is begun is finished: results are taken, new work is refused. Ends once no lease is out, or
    /// after `limit`.
    ///
    /// # Errors
    /// CLOSED.
    pub async fn drain(&self, limit: Duration) -> Result<(), Refusal> {
        self.shared.health.set(Health::Draining);
        self.call(Command::Drain, 0).await?;
        let idle = async {
            while self.snapshot().await?.leases > 0 {
                tokio::time::sleep(DRAIN_LOOK).await;
            }
            Ok(())
        };
        tokio::time::timeout(limit, idle).await.unwrap_or(Ok(()))
    }

    /// Closes the broker: what was handed in is made durable, a last checkpoint is written, the folder is free again.
    /// Calls that come later are refused.
    ///
    /// # Errors
    /// JOURNAL_FAILED where the disk failed.
    pub async fn close(&self) -> Result<(), Refusal> {
        let (done, ended) = tokio::sync::oneshot::channel();
        if self.shared.inbox.send(super::sequencer::Input::Stop(done)).is_ok() {
            // A sequencer that is gone has closed already.
            let _ = ended.await;
        }
        let thread = self.shared.thread.lock().take();
        if let Some(thread) = thread {
            tokio::task::spawn_blocking(move || thread.join())
                .await
                .map_err(|e| Refusal::new(Reason::Closed, e.to_string()))?
                .map_err(|_| Refusal::new(Reason::JournalFailed, "the sequencer ended by a panic"))?;
            let store = Arc::clone(&self.shared.store);
            let closed = tokio::task::spawn_blocking(move || store.close()).await;
            closed.map_err(|e| Refusal::new(Reason::Closed, e.to_string()))?;
        }
        match self.health() {
            Health::Failed(cause) => Err(Refusal::new(Reason::JournalFailed, cause)),
            _ => {
                self.shared.health.set(Health::Closed);
                Ok(())
            }
        }
    }

    /// Channels of a policy (of one tenant in it), by name.
    ///
    /// # Errors
    /// NOT_FOUND for the policy; DATA_LOSS.
    pub async fn channels(
        &self,
        policy: &str,
        tenant: Option<&str>,
        page_size: u32,
        after: Option<Vec<u8>>,
    ) -> Result<Page<ChannelInfo>, Refusal> {
        names::check_policy("policy", policy).map_err(Refusal::from)?;
        if let Some(tenant) = tenant {
            names::check_agent("tenant", tenant).map_err(Refusal::from)?;
        }
        let size = page_size.clamp(1, limits::PAGE_SIZE_MAX) as usize;
        let (names, next) = self.channel_names(policy, tenant, size, after).await?;
        let numbers = names.into_iter().map(|(_, no)| no).collect();
        match self.call(Command::GetChannels(numbers), 0).await? {
            Reply::Channels(items) => Ok(Page { items, next }),
            other => Err(unexpected(&other)),
        }
    }

    /// Names and numbers of channels, from state and from what no checkpoint has yet.
    async fn channel_names(
        &self,
        policy: &str,
        tenant: Option<&str>,
        size: usize,
        after: Option<Vec<u8>>,
    ) -> Result<(Vec<(Vec<u8>, ChannelNo)>, Option<Vec<u8>>), Refusal> {
        let unsaved = match self.call(Command::UnsavedChannels(policy.to_owned()), 0).await? {
            Reply::UnsavedChannels { policy, channels } => (policy, channels),
            other => return Err(unexpected(&other)),
        };
        let (policy_no, channels) = unsaved;
        let prefix = channel_name_prefix(policy_no, tenant);
        let mut rows: BTreeMap<Vec<u8>, ChannelNo> = channels
            .into_iter()
            .map(|(tenant, agent, no)| (crate::state::rows::channel_name_key(policy_no, &tenant, &agent), no))
            .filter(|(key, _)| key.starts_with(&prefix) && after.as_ref().is_none_or(|after| key > after))
            .collect();
        let store = std::sync::Arc::clone(&self.shared.store);
        let from = after.clone();
        let stored = blocking(move || {
            store.scan(Family::ChannelNames, Scan { prefix: &prefix, after: from.as_deref(), limit: size + 1 })
        })
        .await?;
        for (key, value) in stored {
            parse_channel_name_key(&key).map_err(|e| Refusal::new(Reason::DataLoss, e.to_string()))?;
            let no = value.as_ref().try_into().map(u64::from_be_bytes).map(ChannelNo);
            rows.insert(key, no.map_err(|_| Refusal::new(Reason::DataLoss, "channel number of odd size"))?);
        }
        let more = rows.len() > size;
        let page: Vec<_> = rows.into_iter().take(size).collect();
        let next = if more { page.last().map(|(key, _)| key.clone()) } else { None };
        Ok((page, next))
    }

    /// Executions of a tenant that the filter lets through. A page may hold fewer than asked for, also none, and yet not
    /// be the last.
    ///
    /// # Errors
    /// INVALID_ARGUMENT, DATA_LOSS.
    pub async fn executions(
        &self,
        filter: ExecutionFilter,
        page_size: u32,
        after: Option<Vec<u8>>,
    ) -> Result<Page<Execution>, Refusal> {
        names::check_agent("tenant", &filter.tenant).map_err(Refusal::from)?;
        let size = page_size.clamp(1, limits::PAGE_SIZE_MAX) as usize;
        let hashes = match self.call(Command::UnsavedExecutions(filter.tenant.clone()), 0).await? {
            Reply::UnsavedExecutions(hashes) => hashes,
            other => return Err(unexpected(&other)),
        };
        let mut keys: std::collections::BTreeSet<Vec<u8>> = hashes
            .into_iter()
            .map(crate::state::rows::execution_key)
            .filter(|key| after.as_ref().is_none_or(|after| key > after))
            .collect();
        let store = std::sync::Arc::clone(&self.shared.store);
        let prefix = self.shared.hasher.execution_prefix_bytes(&filter.tenant);
        let from = after.clone();
        let stored = blocking(move || {
            store.scan(Family::Executions, Scan { prefix: &prefix, after: from.as_deref(), limit: size + 1 })
        })
        .await?;
        keys.extend(stored.into_iter().map(|(key, _)| key));
        let more = keys.len() > size;
        let page: Vec<_> = keys.into_iter().take(size).collect();
        let next = if more { page.last().cloned() } else { None };
        let hashes = page.iter().filter_map(|key| key.as_slice().try_into().ok().map(u128::from_be_bytes)).collect();
        let found = match self.call(Command::GetExecutions(hashes), 0).await? {
            Reply::Executions(found) => found,
            other => return Err(unexpected(&other)),
        };
        let items = found
            .into_iter()
            .filter(|x| x.tenant == filter.tenant)
            .filter(|x| filter.state.is_none_or(|state| x.state == state))
            .filter(|x| !filter.unfinished || x.state.definite().is_none())
            .filter(|x| filter.task_id.is_empty() || x.task_id == filter.task_id)
            .collect();
        Ok(Page { items, next })
    }

    /// The books of a group, counted by its running numbers and by walking every channel it reads. Walks a page of
    /// channels at a time; what is published meanwhile may tip the balance, so an answer that does not balance is counted
    /// again a few times.
    ///
    /// # Errors
    /// NOT_FOUND, DATA_LOSS.
    pub async fn audit(&self, group: GroupRef) -> Result<GroupAudit, Refusal> {
        check_group(&group)?;
        let mut audit = self.audit_once(&group).await?;
        for _ in 0..AUDIT_TRIES {
            if audit.balanced {
                break;
            }
            audit = self.audit_once(&group).await?;
        }
        Ok(audit)
    }

    async fn audit_once(&self, group: &GroupRef) -> Result<GroupAudit, Refusal> {
        let info = self.group(group.clone()).await?;
        let tenant = match &info.spec.selector {
            Selector::Channel { tenant, .. } | Selector::Tenant(tenant) => Some(tenant.clone()),
            Selector::All => None,
        };
        let mut after = None;
        let mut total: Option<GroupAudit> = None;
        loop {
            let (names, next) = self.channel_names(&group.policy, tenant.as_deref(), AUDIT_CHANNELS, after).await?;
            let numbers = names
                .iter()
                .filter_map(|(key, no)| {
                    let (_, tenant, agent) = parse_channel_name_key(key).ok()?;
                    info.spec.selector.selects(&tenant, &agent).then_some(*no)
                })
                .collect();
            let page = match self.call(Command::Audit(group.clone(), numbers), 0).await? {
                Reply::Audited(audit) => *audit,
                other => return Err(unexpected(&other)),
            };
            let counted = total.map_or(0, |audit| audit.counted_unsettled) + page.counted_unsettled;
            let expected = page.info.depth() + page.info.parked;
            let identity =
                page.info.counts.offered == page.info.counts.settled_total() + page.info.counts.gone_total() + expected;
            total = Some(GroupAudit { counted_unsettled: counted, balanced: identity && counted == expected, ..page });
            match next {
                Some(key) => after = Some(key),
                None => break,
            }
        }
        total.ok_or_else(|| Refusal::new(Reason::NotFound, format!("there is no group {group}")))
    }

    /// Whether the channel's policy exists: for callers that ask before anything is published.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub async fn policy_of(&self, channel: &ChannelRef) -> Result<crate::model::policy::ChannelPolicy, Refusal> {
        self.policies()
            .await?
            .into_iter()
            .find(|policy| policy.name == channel.policy)
            .ok_or_else(|| Refusal::new(Reason::NotFound, format!("there is no channel policy {:?}", channel.policy)))
    }
}

/// Runs a read of state off the async threads.
async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(read)
        .await
        .map_err(|e| Refusal::new(Reason::Closed, e.to_string()))?
        .map_err(|e| Refusal::new(Reason::DataLoss, e.to_string()))
}

/// How often a drain looks whether the last lease is in.
const DRAIN_LOOK: Duration = Duration::from_millis(20);
/// Channels counted in one step of an audit.
const AUDIT_CHANNELS: usize = 1_000;
/// Times an audit that does not balance is counted again.
const AUDIT_TRIES: usize = 5;
