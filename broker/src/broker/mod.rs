//! The handle that embedders and the transport share.
//!
//! Every call becomes one command for the sequencer, the one thread that owns the engine; what it answers has been made
//! durable before it arrives here. A call holds its bytes' share of one budget until it is carried out, so that nothing
//! queues without bound.

mod answer;
mod builder;
mod checkpointing;
mod consume;
mod lanes;
mod listing;
mod loading;
mod opening;
mod sequencer;

pub use builder::{BrokerBuilder, OpenError, SyncPolicy};
pub use consume::{ConsumeStream, Fetched, Joined, SessionEvent};
pub use listing::{Health, Status};
#[cfg(test)]
pub(crate) use loading::load;

use crate::engine::{Command, MessageHead, NameHasher, Reply, Ticket, admitted_head_of};
use crate::journal::Journal;
use crate::model::{
    BeginResult, ChannelInfo, ChannelRef, Complete, CompleteResult, Execution, Explanation, GroupInfo, GroupRef,
    GroupSpec, LeaseRef, MemberInfo, ParkedInfo, Publish, Published, Reason, Refusal, Resolve, SessionRef, Settle,
    SettleResult, limits, policy::ChannelPolicy,
};
use crate::read::{Reader, TailCache};
use crate::state::Store;
use bytes::Bytes;
use sequencer::Input;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use tokio::sync::{Semaphore, oneshot};

/// Bytes of calls that may wait for the sequencer.
const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of a frame kept for entries and record headers.
const FRAME_ROOM: u64 = 256 * 1024;
/// What a call counts beside its payload.
const CALL_BYTES: usize = 512;

/// A running broker. Clones share it; dropping the last one closes it and blocks until that is
/// done; [`close`](Self::close) does the same without blocking.
#[derive(Clone)]
pub struct Broker {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    inbox: mpsc::Sender<Input>,
    budget: Arc<Semaphore>,
    tickets: AtomicU64,
    hasher: NameHasher,
    reader: Arc<Reader>,
    tail: Arc<TailCache>,
    store: Arc<dyn Store>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) health: Arc<listing::HealthCell>,
    /// Longest frame of the journal.
    frame_bytes_max: u64,
    /// Publish replies leave before their sync.
    interval: bool,
    thread: parking_lot::Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker").field("durable", &self.shared.journal.durable()).finish_non_exhaustive()
    }
}

impl Broker {
    /// A broker on this data folder, to be set up further.
    #[must_use]
    pub fn builder(data_dir: impl Into<std::path::PathBuf>) -> BrokerBuilder {
        BrokerBuilder::new(data_dir)
    }

    /// Whether a publish is answered after its bytes are synced: true but with [`SyncPolicy::Interval`].
    #[must_use]
    pub fn publishes_durably(&self) -> bool {
        !self.shared.interval
    }

    /// Declares a policy, or changes one.
    ///
    /// # Errors
    /// INVALID_ARGUMENT naming the field; POLICY_OWNED_BY_FILE for one the configuration file declares.
    pub async fn put_policy(&self, policy: ChannelPolicy) -> Result<(), Refusal> {
        policy.validate()?;
        self.call(Command::PutPolicy(policy), 0).await.map(|_| ())
    }

    /// All policies.
    ///
    /// # Errors
    /// CLOSED.
    pub async fn policies(&self) -> Result<Vec<ChannelPolicy>, Refusal> {
        match self.call(Command::ListPolicies, 0).await? {
            Reply::Policies(policies) => Ok(policies),
            other => Err(unexpected(&other)),
        }
    }

    /// Stores up to 1,000 messages of one channel, all or none.
    ///
    /// # Errors
    /// INVALID_ARGUMENT or TOO_LARGE naming the field, NOT_FOUND for the policy, DEPTH_EXCEEDED with `retry_after_ms`,
    /// FENCED, DEADLINE_PASSED, DRAINING. Nothing was stored then.
    pub async fn publish(&self, publish: Publish) -> Result<Published, Refusal> {
        let bytes = publish.messages.iter().map(Bytes::len).sum::<usize>();
        let command = self.headed(publish)?;
        match self.call(command, bytes).await? {
            Reply::Published(published) => Ok(published),
            other => Err(unexpected(&other)),
        }
    }

    /// Checks what can be checked of a publish without the broker's memory, and reads its messages' heads.
    fn headed(&self, publish: Publish) -> Result<Command, Refusal> {
        check_channel(&publish.channel)?;
        if publish.messages.is_empty() {
            return Err(Refusal::invalid("messages", "at least one message"));
        }
        if publish.messages.len() > limits::PUBLISH_MESSAGES_MAX {
            let most = limits::PUBLISH_MESSAGES_MAX;
            return Err(Refusal::invalid("messages", format!("at most {most} messages")).with("limit", most));
        }
        self.check_frame(publish.messages.iter().map(|bytes| bytes.len() as u64).sum())?;
        let total: u64 = publish.messages.iter().map(|bytes| bytes.len() as u64).sum();
        if total > limits::REQUEST_BYTES_MAX {
            let most = limits::REQUEST_BYTES_MAX;
            return Err(Refusal {
                field: "messages".to_owned(),
                ..Refusal::new(Reason::TooLarge, format!("at most {most} bytes in one publish"))
            }
            .with("limit", most));
        }
        let mut messages = Vec::with_capacity(publish.messages.len());
        for (i, bytes) in publish.messages.into_iter().enumerate() {
            let head = self.head(&bytes, || format!("messages[{i}]"))?;
            messages.push((bytes, head));
        }
        Ok(Command::Publish { channel: publish.channel, messages })
    }

    /// Whether messages of so many bytes fit a frame of this broker's journal, with room for what is decided with them.
    fn check_frame(&self, bytes: u64) -> Result<(), Refusal> {
        let most = self.shared.frame_bytes_max.saturating_sub(FRAME_ROOM);
        if bytes > most {
            let text = format!("at most {most} bytes at once in journal segments of this size");
            return Err(Refusal::new(Reason::TooLarge, text).with("limit", most));
        }
        Ok(())
    }

    fn head(&self, bytes: &[u8], path: impl Fn() -> String) -> Result<Arc<MessageHead>, Refusal> {
        admitted_head_of(self.shared.hasher, bytes).map_err(|fault| fault.refusal(&path()))
    }

    /// Makes a group, or finds it made the same way; the second value says which.
    ///
    /// # Errors
    /// INVALID_ARGUMENT, NOT_FOUND for the policy, ALREADY_EXISTS with another spec, OFFSET_BEYOND_END.
    pub async fn create_group(&self, spec: GroupSpec) -> Result<(GroupInfo, bool), Refusal> {
        check_spec(&spec)?;
        match self.call(Command::CreateGroup(spec), 0).await? {
            Reply::GroupCreated(info, made) => Ok((*info, made)),
            other => Err(unexpected(&other)),
        }
    }

    /// A group as of now.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub async fn group(&self, group: GroupRef) -> Result<GroupInfo, Refusal> {
        check_group(&group)?;
        match self.call(Command::GetGroup(group), 0).await? {
            Reply::Group(info) => Ok(*info),
            other => Err(unexpected(&other)),
        }
    }

    /// All groups of a scope; with an empty scope, of all.
    ///
    /// # Errors
    /// CLOSED.
    pub async fn groups(&self, scope: &str) -> Result<Vec<GroupInfo>, Refusal> {
        match self.call(Command::ListGroups(scope.to_owned()), 0).await? {
            Reply::Groups(groups) => Ok(groups),
            other => Err(unexpected(&other)),
        }
    }

    /// Members of a group.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub async fn members(&self, group: GroupRef) -> Result<Vec<MemberInfo>, Refusal> {
        check_group(&group)?;
        match self.call(Command::ListMembers(group), 0).await? {
            Reply::Members(members) => Ok(members),
            other => Err(unexpected(&other)),
        }
    }

    /// Messages of a group that are set aside, at most 1,000 of them.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub async fn parked(&self, group: GroupRef) -> Result<Vec<ParkedInfo>, Refusal> {
        check_group(&group)?;
        match self.call(Command::ListParked(group), 0).await? {
            Reply::Parked(parked) => Ok(parked),
            other => Err(unexpected(&other)),
        }
    }

    /// A channel as of now.
    ///
    /// # Errors
    /// NOT_FOUND, INVALID_ARGUMENT.
    pub async fn channel(&self, channel: ChannelRef) -> Result<ChannelInfo, Refusal> {
        check_channel(&channel)?;
        match self.call(Command::GetChannel(channel), 0).await? {
            Reply::Channel(info) => Ok(*info),
            other => Err(unexpected(&other)),
        }
    }

    /// Ends leases. One answer for each settle, in order; a stale lease changes nothing.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for too many at once.
    pub async fn settle(&self, session: SessionRef, settles: Vec<Settle>) -> Result<Vec<SettleResult>, Refusal> {
        if settles.len() > limits::SETTLEMENTS_MAX {
            return Err(Refusal::invalid("settlements", format!("at most {} at once", limits::SETTLEMENTS_MAX)));
        }
        match self.call(Command::Settle(session, settles), 0).await? {
            Reply::Settled(results) => Ok(results),
            other => Err(unexpected(&other)),
        }
    }

    /// Leases with a duration of their own go on for so many milliseconds from now.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a duration out of bounds.
    pub async fn extend(
        &self,
        session: SessionRef,
        extensions: Vec<(LeaseRef, u64)>,
    ) -> Result<Vec<SettleResult>, Refusal> {
        if extensions.len() > limits::SETTLEMENTS_MAX {
            return Err(Refusal::invalid("extensions", format!("at most {} at once", limits::SETTLEMENTS_MAX)));
        }
        if extensions.iter().any(|(_, ms)| *ms == 0 || *ms > limits::LEASE_MS_MAX) {
            return Err(Refusal::invalid("lease_ms", format!("1 to {}", limits::LEASE_MS_MAX)));
        }
        match self.call(Command::Extend(session, extensions), 0).await? {
            Reply::Settled(results) => Ok(results),
            other => Err(unexpected(&other)),
        }
    }

    /// "I am about to act": durable before it is answered. After anything but [`BeginResult::Ok`] the caller must not act.
    ///
    /// # Errors
    /// INVALID_ARGUMENT where the lease is on no request, or the group does not execute; DRAINING.
    pub async fn begin(&self, session: SessionRef, lease: LeaseRef) -> Result<BeginResult, Refusal> {
        match self.call(Command::Begin(session, lease), 0).await? {
            Reply::Begun(result) => Ok(result),
            other => Err(unexpected(&other)),
        }
    }

    /// Settle, outcome and follow-ups in one frame.
    ///
    /// # Errors
    /// As [`Broker::publish`] for the messages; INVALID_ARGUMENT for an indefinite state. Nothing was changed then.
    pub async fn complete(&self, session: SessionRef, complete: Complete) -> Result<CompleteResult, Refusal> {
        crate::model::names::check_agent("tenant", &complete.tenant).map_err(Refusal::from)?;
        crate::model::names::check_opaque("execution_id", &complete.execution_id).map_err(Refusal::from)?;
        if complete.artifact_ref.len() > limits::ARTIFACT_REF_BYTES_MAX {
            let rule = format!("at most {} bytes", limits::ARTIFACT_REF_BYTES_MAX);
            return Err(Refusal::invalid("artifact_ref", rule));
        }
        let mut heads = Vec::new();
        let mut bytes = 0;
        for (i, (channel, message)) in complete.publishes.iter().enumerate() {
            check_channel(channel)?;
            bytes += message.len();
            heads.push(self.head(message, || format!("publishes[{i}].message"))?);
        }
        if bytes as u64 > limits::REQUEST_BYTES_MAX {
            let most = limits::REQUEST_BYTES_MAX;
            return Err(
                Refusal::new(Reason::TooLarge, format!("at most {most} bytes in one complete")).with("limit", most)
            );
        }
        self.check_frame(bytes as u64)?;
        match self.call(Command::Complete(session, Box::new(complete), heads), bytes).await? {
            Reply::Completed(result) => Ok(result),
            other => Err(unexpected(&other)),
        }
    }

    /// What is known of an execution.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub async fn execution(&self, tenant: &str, execution_id: &str) -> Result<Execution, Refusal> {
        check_execution(tenant, execution_id)?;
        match self.call(Command::GetExecution(tenant.to_owned(), execution_id.to_owned()), 0).await? {
            Reply::Execution(execution) => Ok(*execution),
            other => Err(unexpected(&other)),
        }
    }

    /// The whole story of an execution, and what it comes to.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub async fn explain(&self, tenant: &str, execution_id: &str) -> Result<Explanation, Refusal> {
        check_execution(tenant, execution_id)?;
        match self.call(Command::Explain(tenant.to_owned(), execution_id.to_owned()), 0).await? {
            Reply::Explained(explanation) => Ok(*explanation),
            other => Err(unexpected(&other)),
        }
    }

    /// Ends an UNKNOWN, with evidence.
    ///
    /// # Errors
    /// NOT_FOUND; EXECUTION_NOT_UNKNOWN; INVALID_ARGUMENT without evidence or for an indefinite state.
    pub async fn resolve(&self, resolve: Resolve) -> Result<Execution, Refusal> {
        check_execution(&resolve.tenant, &resolve.execution_id)?;
        if resolve.state.is_some_and(|state| !state.is_definite()) {
            return Err(Refusal::invalid("state", "a definite state, or NOT_EXECUTED"));
        }
        if resolve.evidence.len() > limits::EVIDENCE_BYTES_MAX {
            return Err(Refusal::invalid("evidence", format!("at most {} bytes", limits::EVIDENCE_BYTES_MAX)));
        }
        match self.call(Command::Resolve(resolve), 0).await? {
            Reply::Execution(execution) => Ok(*execution),
            other => Err(unexpected(&other)),
        }
    }

    /// Sends a command to the sequencer and waits for its answer.
    async fn call(&self, command: Command, bytes: usize) -> Result<Reply, Refusal> {
        let (answer, reply) = oneshot::channel();
        self.send(command, bytes, answer).await?;
        received(reply.await)
    }

    async fn send(
        &self,
        command: Command,
        bytes: usize,
        answer: oneshot::Sender<Result<Reply, Refusal>>,
    ) -> Result<Ticket, Refusal> {
        let share = u32::try_from((bytes + CALL_BYTES).min(QUEUE_BYTES_MAX)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.shared.budget).acquire_many_owned(share).await.map_err(|_| closed())?;
        let ticket = self.shared.next_ticket();
        self.shared
            .inbox
            .send(Input::Call { ticket, command, answer: Some(answer), permit: Some(permit) })
            .map_err(|_| closed())?;
        Ok(ticket)
    }
}

impl Drop for Shared {
    /// Without [`Broker::close`] the broker closes when its last handle goes. It is waited for: a process that ends while
    /// RocksDB is at work would tear down what that stands on.
    fn drop(&mut self) {
        let (done, _) = oneshot::channel();
        // A sequencer that is gone has closed already.
        let _ = self.inbox.send(Input::Stop(done));
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the sequencer ended by a panic");
        }
    }
}

impl Shared {
    fn next_ticket(&self) -> Ticket {
        self.tickets.fetch_add(1, Ordering::Relaxed)
    }
}

fn received(reply: Result<Result<Reply, Refusal>, oneshot::error::RecvError>) -> Result<Reply, Refusal> {
    match reply {
        Ok(Ok(Reply::Refused(refusal))) | Ok(Err(refusal)) => Err(refusal),
        Ok(Ok(reply)) => Ok(reply),
        Err(_) => Err(closed()),
    }
}

fn closed() -> Refusal {
    Refusal::new(Reason::Closed, "the broker is closed")
}

/// The sequencer answered a command with another's reply: a fault of weir, told rather than hidden.
fn unexpected(reply: &Reply) -> Refusal {
    let words = format!("the broker answered out of turn: {reply:?}");
    Refusal::new(Reason::DataLoss, words.chars().take(200).collect::<String>())
}

/// Rules for the names in a channel's key (the policy's template is checked with the policy at hand).
fn check_channel(channel: &ChannelRef) -> Result<(), Refusal> {
    crate::model::names::check_policy("policy", &channel.policy).map_err(Refusal::from)?;
    crate::model::names::check_agent("tenant", &channel.tenant).map_err(Refusal::from)?;
    if !channel.agent.is_empty() {
        crate::model::names::check_agent("agent_id", &channel.agent).map_err(Refusal::from)?;
    }
    Ok(())
}

fn check_execution(tenant: &str, execution_id: &str) -> Result<(), Refusal> {
    crate::model::names::check_agent("tenant", tenant).map_err(Refusal::from)?;
    crate::model::names::check_opaque("execution_id", execution_id).map_err(Refusal::from)
}

fn check_group(group: &GroupRef) -> Result<(), Refusal> {
    crate::model::names::check_scope("group.scope", &group.scope).map_err(Refusal::from)?;
    crate::model::names::check_policy("group.policy", &group.policy).map_err(Refusal::from)?;
    crate::model::names::check_opaque("group.name", &group.name).map_err(Refusal::from)
}

fn check_spec(spec: &GroupSpec) -> Result<(), Refusal> {
    use crate::model::Selector;
    check_group(&spec.name)?;
    let tenant = match &spec.selector {
        Selector::Channel { tenant, agent } => {
            if !agent.is_empty() {
                crate::model::names::check_agent("selector.agent_id", agent).map_err(Refusal::from)?;
            }
            Some(tenant)
        }
        Selector::Tenant(tenant) => Some(tenant),
        Selector::All => None,
    };
    match tenant {
        Some(tenant) => {
            crate::model::names::check_agent("selector.tenant", tenant).map_err(Refusal::from)?;
            if spec.name.scope != crate::model::names::EVERY_TENANT && spec.name.scope != *tenant {
                return Err(Refusal::invalid("selector", "a tenant's group selects channels of that tenant"));
            }
        }
        None if spec.name.scope != crate::model::names::EVERY_TENANT => {
            return Err(Refusal::invalid("selector", "only a group of scope * selects *:*"));
        }
        None => {}
    }
    if spec.max_attempts == 0 || spec.max_attempts > limits::ATTEMPTS_MAX {
        return Err(Refusal::invalid("max_attempts", format!("1 to {}", limits::ATTEMPTS_MAX)));
    }
    if spec.skip_if_final && !spec.executes {
        return Err(Refusal::invalid("skip_if_final", "only for a group that executes"));
    }
    Ok(())
}
