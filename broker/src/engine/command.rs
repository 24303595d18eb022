//! What the engine is asked, and what it lets out.

use super::head::MessageHead;
use super::want::Want;
use crate::journal::entry::{Entry, ExecutionHash};
use crate::model::{
    BeginResult, ChannelInfo, ChannelNo, ChannelRef, Complete, CompleteResult, Epoch, Execution, ExecutionHint,
    Explanation, FetchLimits, GoneCause, GroupAudit, GroupInfo, GroupRef, GroupSpec, HeldAnswer, LeaseRef, Lsn,
    MemberInfo, Notice, Offset, ParkedInfo, PolicyNo, Published, Refusal, Resolve, SessionId, SessionRef, Settle,
    SettleResult, UnixMillis, Waiting, policy::ChannelPolicy,
};
use bytes::Bytes;
use std::sync::Arc;

/// Names a call, so that its answer finds the caller. Given out by the sequencer, never reused.
pub(crate) type Ticket = u64;

/// A message with its head.
pub(crate) type HeadedMessage = (Bytes, Arc<MessageHead>);

/// What the engine is asked.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    /// Declare or change a policy.
    PutPolicy(ChannelPolicy),
    /// Store messages in one channel: all or none.
    Publish { channel: ChannelRef, messages: Vec<HeadedMessage> },
    /// Make a group, or find it made the same way.
    CreateGroup(GroupSpec),
    /// Hand out messages, or wait for some.
    Fetch(SessionRef, FetchLimits),
    /// The caller of this fetch is gone.
    CancelFetch(SessionId, Ticket),
    /// A stream of deliveries begins for the session.
    Attach(SessionRef, u64),
    /// The stream of this ticket is gone. The session lives on until its timeout.
    Detach(SessionId, Ticket),
    /// The stream may take so many more messages and bytes.
    Credit(SessionId, Ticket, u32, u64),
    /// The session is alive.
    Heartbeat(SessionRef),
    /// The session ends.
    Leave(SessionRef),
    /// Leases end.
    Settle(SessionRef, Vec<Settle>),
    /// Leases with their own duration go on for so many milliseconds from now.
    Extend(SessionRef, Vec<(LeaseRef, u64)>),
    /// The messages of these leases cannot be read, for these reasons; the session did not get them.
    Unreadable(SessionId, Vec<(LeaseRef, String)>),
    /// "I am about to act."
    Begin(SessionRef, LeaseRef),
    /// Settle, outcome and follow-ups in one. The heads are those of `publishes`, in order.
    Complete(SessionRef, Box<Complete>, Vec<Arc<MessageHead>>),
    /// End an UNKNOWN.
    Resolve(Resolve),
    /// What is known of an execution of this tenant.
    GetExecution(String, String),
    /// The whole story of an execution of this tenant.
    Explain(String, String),
    /// A channel by name.
    GetChannel(ChannelRef),
    /// A group by name.
    GetGroup(GroupRef),
    /// All groups of a scope; empty means all.
    ListGroups(String),
    /// Members of a group.
    ListMembers(GroupRef),
    /// Parked messages of a group.
    ListParked(GroupRef),
    /// All policies.
    ListPolicies,
    /// A policy's number, and its channels that a scan of state may miss: those that no checkpoint has.
    UnsavedChannels(String),
    /// Channels by number.
    GetChannels(Vec<ChannelNo>),
    /// Executions of a tenant that a scan of state may miss: those changed since the last checkpoint.
    UnsavedExecutions(String),
    /// Executions by hash.
    GetExecutions(Vec<ExecutionHash>),
    /// All groups with their books, and broker-wide numbers.
    Snapshot,
    /// The books of a group counted over these channels.
    Audit(GroupRef, Vec<ChannelNo>),
    /// From now on only finish what is begun.
    Drain,
}

/// What a call is answered.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Refused(Refusal),
    Done,
    Published(Published),
    GroupCreated(Box<GroupInfo>, bool),
    Fetched { deliveries: Vec<DeliveryMeta>, waiting: Option<Waiting>, held: HeldAnswer, notices: Vec<Notice> },
    Joined { timeout_ms: u64, expires: UnixMillis, held: HeldAnswer, notices: Vec<Notice> },
    Settled(Vec<SettleResult>),
    Begun(BeginResult),
    Completed(CompleteResult),
    Execution(Box<Execution>),
    Explained(Box<Explanation>),
    Channel(Box<ChannelInfo>),
    Channels(Vec<ChannelInfo>),
    Group(Box<GroupInfo>),
    Groups(Vec<GroupInfo>),
    Members(Vec<MemberInfo>),
    Parked(Vec<ParkedInfo>),
    Policies(Vec<ChannelPolicy>),
    UnsavedChannels { policy: PolicyNo, channels: Vec<(String, String, ChannelNo)> },
    UnsavedExecutions(Vec<ExecutionHash>),
    Executions(Vec<Execution>),
    Snapshot(Box<Snapshot>),
    Audited(Box<GroupAudit>),
}

/// A delivery without its bytes, which are read once it may leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeliveryMeta {
    pub(crate) no: ChannelNo,
    pub(crate) channel: ChannelRef,
    pub(crate) offset: Offset,
    pub(crate) task_id: Arc<str>,
    pub(crate) epoch: Epoch,
    pub(crate) attempt: u32,
    pub(crate) acquired: u32,
    pub(crate) failed: u32,
    pub(crate) lease_lost: u32,
    pub(crate) published_at: UnixMillis,
    pub(crate) lease_expires: Option<UnixMillis>,
    pub(crate) time_left_ms: Option<u64>,
    pub(crate) execution: Option<ExecutionHint>,
    pub(crate) skipped: Vec<(GoneCause, u64)>,
}

/// Numbers for metrics and status, all of one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) at: UnixMillis,
    pub(crate) lsn: Lsn,
    pub(crate) groups: Vec<GroupInfo>,
    pub(crate) leases: u64,
    pub(crate) sessions: u64,
    pub(crate) waiting_fetches: u64,
    pub(crate) unknown_entered: u64,
    pub(crate) unknown_left: u64,
    pub(crate) published: u64,
    pub(crate) policies: u64,
    pub(crate) channels: u64,
    pub(crate) rows_in_memory: u64,
    pub(crate) dirty_rows: u64,
}

/// Something that leaves the engine once its frame is durable.
#[derive(Clone, Debug)]
pub(crate) enum Out {
    /// An answer.
    Reply(Ticket, Reply),
    /// Deliveries for the session's stream.
    Deliver(SessionId, Vec<DeliveryMeta>),
    /// A notice for the session's stream.
    Notice(SessionId, Notice),
    /// The session's stream, opened with this ticket, has ended with it, or with its next fetch.
    StreamOver(SessionId, Ticket),
}

/// One stored message.
#[derive(Clone, Debug)]
pub(crate) struct StoredRecord {
    pub(crate) channel: ChannelNo,
    pub(crate) offset: Offset,
    pub(crate) bytes: Bytes,
}

/// One turn of the engine: at most one frame, and what leaves with it.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// The frame's place, where `entries` is not empty.
    pub(crate) lsn: Lsn,
    pub(crate) entries: Vec<Entry>,
    pub(crate) records: Vec<StoredRecord>,
    /// Nothing of this leaves before the frame, and all frames before it, are durable.
    pub(crate) outs: Vec<Out>,
    pub(crate) wants: Vec<Want>,
}
