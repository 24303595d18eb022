//! The ledger's public picture of an execution.

use super::{
    ChannelRef, Effect, Epoch, ExecutionState, FinalState, GroupRef, Offset, UnixMillis, UnknownReason, Verdict,
};

/// What the broker knows of one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Its tenant.
    pub tenant: String,
    /// Its id.
    pub execution_id: String,
    /// The task of its first message.
    pub task_id: String,
    /// A later message named another task.
    pub task_mismatch: bool,
    /// Where it stands.
    pub state: ExecutionState,
    /// Why it is UNKNOWN, while it is.
    pub unknown_reason: Option<UnknownReason>,
    /// When it came to this state.
    pub since: UnixMillis,
    /// When it was first heard of.
    pub first_seen: UnixMillis,
    /// What it produced.
    pub artifact_ref: String,
    /// COMPLETED was reported without an artifact_ref.
    pub no_artifact: bool,
    /// What acting does to the world, as the request says.
    pub effect: Effect,
    /// The first stored request, if one came.
    pub request: Option<(ChannelRef, Offset)>,
    /// Requests stored, each under a message id of its own; a begin of one stands for all.
    pub requests: u32,
    /// The first definite report, if a message carries it.
    pub report: Option<(ChannelRef, Offset)>,
    /// The begin that stands.
    pub begin: Option<BeginInfo>,
    /// Begins answered OK, and how many of them were withdrawn.
    pub begins: u32,
    /// See [`Execution::begins`].
    pub begins_withdrawn: u32,
    /// Messages about it that were published, repeats included.
    pub publish_attempts: u64,
    /// Of these, repeats.
    pub duplicates: u64,
    /// When the last repeat came.
    pub repeated_at: Option<UnixMillis>,
    /// Repeats of a pair with another payload.
    pub payload_mismatches: u64,
    /// Deliveries of its request to executing groups: the first 4 and the last 12.
    pub deliveries: Vec<DeliveryInfo>,
    /// All of them.
    pub deliveries_total: u64,
    /// Late, fenced and contradicting reports and resolutions, oldest first; at most 16.
    pub remarks: Vec<Remark>,
    /// Reports contradict each other.
    pub contradiction: bool,
}

/// A begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeginInfo {
    /// Whose group.
    pub group: GroupRef,
    /// Which member.
    pub member: String,
    /// Under which lease.
    pub epoch: Epoch,
    /// Its fencing token.
    pub token: Epoch,
    /// When.
    pub at: UnixMillis,
    /// Whether its lease still lives.
    pub live: bool,
}

/// One delivery of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryInfo {
    /// To which group.
    pub group: GroupRef,
    /// To which member.
    pub member: String,
    /// Under which lease.
    pub epoch: Epoch,
    /// 1 + failed + lease_lost of that moment.
    pub attempt: u32,
    /// When.
    pub at: UnixMillis,
    /// Whether this lease began the execution.
    pub begun: bool,
    /// How and when it ended, if it did.
    pub ended: Option<(super::EndedAs, UnixMillis)>,
}

/// Something worth telling beside the plain course.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// When.
    pub at: UnixMillis,
    /// What.
    pub kind: RemarkKind,
    /// In words: by whom, with what evidence.
    pub text: String,
}

/// Kinds of remarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum RemarkKind {
    /// Became UNKNOWN.
    BecameUnknown(UnknownReason),
    /// A result that came after its lease was lost, and was taken.
    Late(FinalState),
    /// A result of a begin that no longer stands; refused.
    Fenced(FinalState),
    /// A second, different definite state.
    Contradicting(FinalState),
    /// A report that did not replace the definite state.
    Ignored(FinalState),
    /// An operator's resolution; `None` is NOT_EXECUTED.
    Resolved(Option<FinalState>),
    /// The member vouched that nothing happened.
    NotExecuted,
    /// The deadline passed.
    Expired,
}

/// The whole story of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The facts.
    pub execution: Execution,
    /// What they come to.
    pub verdict: Verdict,
    /// In one sentence.
    pub summary: String,
    /// In order of time.
    pub story: Vec<(UnixMillis, String)>,
}

/// How an operator ends an UNKNOWN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolve {
    /// Tenant of the execution.
    pub tenant: String,
    /// The execution.
    pub execution_id: String,
    /// The definite state found, or `None`: NOT_EXECUTED.
    pub state: Option<FinalState>,
    /// What it produced, where known.
    pub artifact_ref: String,
    /// How this is known; kept in the ledger.
    pub evidence: String,
    /// Who says so.
    pub by: String,
}

/// Which executions to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionFilter {
    /// Whose; never empty.
    pub tenant: String,
    /// Only this state.
    pub state: Option<ExecutionState>,
    /// Only those without a definite state.
    pub unfinished: bool,
    /// Only of this task; empty means any.
    pub task_id: String,
}

/// One page of a listing, and where the next begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Token of the next page; `None` at the end.
    pub next: Option<Vec<u8>>,
}

/// A channel as of now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelInfo {
    /// Which.
    pub channel: ChannelRef,
    /// The next offset.
    pub head: Offset,
    /// The earliest retained offset.
    pub base: Offset,
    /// Bytes published.
    pub bytes: u64,
    /// When it was made.
    pub made_at: UnixMillis,
    /// When it was last published to.
    pub last_publish_at: UnixMillis,
    /// Greatest depth over its groups.
    pub depth: u64,
}
