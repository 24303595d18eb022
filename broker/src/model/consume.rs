//! Sessions, leases, settles, begins.

use super::{ChannelRef, Epoch, ExecutionState, FinalState, GroupRef, Offset, Refusal, UnixMillis, UnknownReason};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A session's id: 128 random bits. Whoever shows it may act for the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(pub u128);

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Who is calling: carried by every consume call, so that the first one joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRef {
    /// The session.
    pub id: SessionId,
    /// Its group.
    pub group: GroupRef,
    /// The member's name.
    pub member: String,
    /// A static member's id; empty if it has none. A newer session with the same id takes over from the older.
    pub instance: String,
    /// Silence after which the session is lost, in milliseconds; 0 means the broker's default (30 s).
    pub timeout_ms: u64,
    /// The epochs this process really works on. `None` says nothing; an empty list says: none.
    pub held: Option<Vec<Epoch>>,
}

/// How much a fetch wants and how long it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Most messages; at least 1.
    pub max_messages: u32,
    /// Most bytes of the answer, messages and what is told beside them; the first message always fits.
    pub max_bytes: u64,
    /// How long to wait for the first message, in milliseconds.
    pub wait_ms: u64,
    /// The leases' own duration in milliseconds; 0 means they live as long as the session.
    pub lease_ms: u64,
}

/// Why nothing was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// Nothing is unsettled.
    Empty,
    /// All ready tasks are leased to others, or the window is full.
    AllLeased,
    /// All tasks with messages are parked.
    AllParked,
    /// All tasks with messages are held.
    AllHeld,
    /// The group is paused.
    Paused,
    /// A quota is used up.
    Quota,
    /// All tasks with messages wait for a time.
    AllDelayed,
}

/// A message in a member's hands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its channel.
    pub channel: ChannelRef,
    /// Its offset.
    pub offset: Offset,
    /// Its task.
    pub task_id: String,
    /// The message, byte for byte as published.
    pub message: Bytes,
    /// The lease. A settle names it.
    pub epoch: Epoch,
    /// 1 + failed + lease_lost.
    pub attempt: u32,
    /// How often it was handed out, this time included.
    pub acquired: u32,
    /// Attempts that were reported failed.
    pub failed: u32,
    /// Attempts whose lease was lost.
    pub lease_lost: u32,
    /// When it was published.
    pub published_at: UnixMillis,
    /// When the lease ends, for a lease with its own duration.
    pub lease_expires: Option<UnixMillis>,
    /// Milliseconds until the message's deadline, where it has one.
    pub time_left_ms: Option<u64>,
    /// What the ledger says of its execution, as a hint; begin is the authority.
    pub execution: Option<ExecutionHint>,
    /// Messages of the task that went unseen since the group's last delivery of it.
    pub skipped: Vec<(super::GoneCause, u64)>,
}

/// What a delivery says of its execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionHint {
    /// Where it stands.
    pub state: ExecutionState,
    /// What it produced, where it did.
    pub artifact_ref: String,
    /// Since when.
    pub since: UnixMillis,
}

/// Names a lease's message in a call: {epoch, offset}.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseRef {
    /// The lease.
    pub epoch: Epoch,
    /// The message.
    pub offset: Offset,
}

/// How a member ends a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done with it.
    Done,
    /// Give it back; costs no attempt.
    Release,
    /// It failed; try again after a delay.
    Retry {
        /// Milliseconds before the next attempt.
        delay_ms: u64,
        /// For the record; at most 512 bytes are kept.
        reason: String,
    },
    /// Set it aside for an operator.
    Reject {
        /// For the record; at most 512 bytes are kept.
        reason: String,
    },
    /// Begun, and not known what became of it.
    Unknown {
        /// For the record; at most 512 bytes are kept.
        reason: String,
    },
}

/// One settle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settle {
    /// Which lease.
    pub lease: LeaseRef,
    /// How it ends.
    pub outcome: Outcome,
    /// The member vouches that the effect did not happen: withdraws its begin.
    pub not_executed: bool,
}

/// How a lease ended, as remembered for repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EndedAs {
    /// Settled DONE, or completed.
    Done,
    /// Given back.
    Released,
    /// Reported failed.
    Retried,
    /// Set aside.
    Rejected,
    /// Settled UNKNOWN.
    Unknown,
    /// Lost: timed out, withdrawn or taken over. Not a settle.
    Lost,
}

/// The answer to one settle or extend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettleResult {
    /// Taken.
    Ok,
    /// The lease is over; nothing changed.
    LeaseLost,
    /// This very lease was settled before, like this.
    AlreadySettled(EndedAs),
    /// Not allowed for this lease; nothing changed.
    Refused(Refusal),
}

/// The answer to a begin. After anything but [`BeginResult::Ok`] the worker must not act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BeginResult {
    /// Go ahead, and report with this token.
    Ok {
        /// Greater than that of every earlier begin.
        fencing_token: Epoch,
    },
    /// It has ended before: return this result instead of acting.
    AlreadyFinal {
        /// How.
        state: FinalState,
        /// What it produced.
        artifact_ref: String,
        /// Where the report is stored, if a message carries it.
        report: Option<(ChannelRef, Offset)>,
    },
    /// Another lease has begun it. The asking lease is over; its partition is held.
    InProgress {
        /// Whose group.
        group: GroupRef,
        /// Since when.
        since: UnixMillis,
    },
    /// Nobody knows what became of an earlier attempt. The asking lease is over; its partition is held.
    HeldUnknown {
        /// Since when.
        since: UnixMillis,
        /// Why.
        reason: UnknownReason,
    },
    /// The deadline has passed.
    Expired,
    /// Called off.
    Cancelled,
    /// The lease is over.
    LeaseLost,
}

/// Settle, outcome and follow-ups in one frame.
#[derive(Clone, Debug)]
pub struct Complete {
    /// Which lease.
    pub lease: LeaseRef,
    /// Tenant of the execution.
    pub tenant: String,
    /// The execution; it is found by this once the lease is over, and checked while the lease lives.
    pub execution_id: String,
    /// The begin it reports for.
    pub fencing_token: Epoch,
    /// A definite final state.
    pub final_state: FinalState,
    /// What it produced.
    pub artifact_ref: String,
    /// Follow-ups to any channels of the tenant; at most 16. If none carries the pair, weir appends a `task.result`.
    pub publishes: Vec<(ChannelRef, Bytes)>,
}

/// The answer to a complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompleteResult {
    /// Taken.
    Accepted {
        /// The lease was over, but its begin still stood.
        late: bool,
        /// The pair had been stored before; this is its place.
        duplicate: Option<(ChannelRef, Offset)>,
        /// Another definite state had been stored before.
        contradiction: bool,
        /// One for each follow-up, and one for the appended result if there was one.
        results: Vec<super::PublishResult>,
    },
    /// The lease is over and no begin of it stands; kept as evidence where there was a begin.
    LeaseLost,
    /// The begin no longer stands; kept as evidence.
    Fenced,
}

/// What a session is told beside its deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The session has joined, or joined again.
    Assigned,
    /// The lease is over; stop working on it.
    Revoked(LeaseRef),
    /// The execution ended or was called off elsewhere.
    Cancelled {
        /// The lease it is worked on under.
        lease: LeaseRef,
        /// How it ended, if it did.
        state: Option<FinalState>,
    },
    /// The broker is draining.
    Draining,
    /// Nothing to hand out, and why.
    Waiting(Waiting),
}

/// What a call's `held` list came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldAnswer {
    /// Leases of the list that go on: the epoch as listed, and the epoch from now on.
    pub kept: Vec<(Epoch, Epoch)>,
    /// Leases of the list that are over: stop working on them.
    pub lost: Vec<Epoch>,
}
