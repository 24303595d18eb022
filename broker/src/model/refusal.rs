//! Why a call was refused: one closed set of reasons for every way into the broker.

use std::fmt;

/// The closed set of reasons (design, section 12). The wire carries the name; clients match on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A field breaks a rule; [`Refusal::field`] names it.
    InvalidArgument,
    /// A message, batch or answer is larger than a limit.
    TooLarge,
    /// What was named does not exist.
    NotFound,
    /// It exists with another spec.
    AlreadyExists,
    /// The channel's slowest group is at `max_depth`.
    DepthExceeded,
    /// A rate or byte budget is used up.
    RateLimited,
    /// The disk is (nearly) full.
    StorageFull,
    /// The lease is over, or was never this caller's.
    LeaseLost,
    /// The session is over; join again.
    StaleSession,
    /// A report from a begin that no longer stands.
    Fenced,
    /// The execution has begun, so this outcome needs `not_executed`.
    ExecutionBegun,
    /// The execution is not UNKNOWN, so there is nothing to resolve.
    NotUnknown,
    /// Not the first unsettled message of its partition.
    OutOfOrder,
    /// The group still has members.
    GroupNotEmpty,
    /// The policy belongs to the configuration file.
    PolicyOwnedByFile,
    /// The deadline of the message has passed.
    DeadlinePassed,
    /// The offset was trimmed or expired.
    OffsetTrimmed,
    /// The offset is not yet written.
    OffsetBeyondEnd,
    /// Recovery is still running.
    Starting,
    /// The broker is draining.
    Draining,
    /// The broker is closed.
    Closed,
    /// A disk failure; what was confirmed stays, nothing new is accepted.
    JournalFailed,
    /// Stored bytes do not verify.
    DataLoss,
    /// A queue inside the broker is full; try again.
    Overloaded,
}

impl Reason {
    /// The name on the wire (`ErrorInfo.reason`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::TooLarge => "TOO_LARGE",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::DepthExceeded => "DEPTH_EXCEEDED",
            Self::RateLimited => "RATE_LIMITED",
            Self::StorageFull => "STORAGE_FULL",
            Self::LeaseLost => "LEASE_LOST",
            Self::StaleSession => "STALE_SESSION",
            Self::Fenced => "FENCED",
            Self::ExecutionBegun => "EXECUTION_BEGUN",
            Self::NotUnknown => "EXECUTION_NOT_UNKNOWN",
            Self::OutOfOrder => "OUT_OF_ORDER",
            Self::GroupNotEmpty => "GROUP_NOT_EMPTY",
            Self::PolicyOwnedByFile => "POLICY_OWNED_BY_FILE",
            Self::DeadlinePassed => "DEADLINE_PASSED",
            Self::OffsetTrimmed => "OFFSET_TRIMMED",
            Self::OffsetBeyondEnd => "OFFSET_BEYOND_END",
            Self::Starting => "STARTING",
            Self::Draining => "DRAINING",
            Self::Closed => "CLOSED",
            Self::JournalFailed => "JOURNAL_FAILED",
            Self::DataLoss => "DATA_LOSS",
            Self::Overloaded => "OVERLOADED",
        }
    }

    /// Whether the same call may succeed later, unchanged.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::DepthExceeded
                | Self::RateLimited
                | Self::StorageFull
                | Self::Starting
                | Self::Draining
                | Self::Closed
                | Self::JournalFailed
                | Self::Overloaded
        )
    }

    /// Whether the write may have happened although the call failed. Only a failing disk leaves that open.
    #[must_use]
    pub const fn may_have_applied(self) -> bool {
        matches!(self, Self::JournalFailed | Self::Closed)
    }
}

/// A refused call. Nothing was changed by it, unless [`Reason::may_have_applied`] says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The field at fault, as its path in the request (`messages[3].task_id`); empty where no field is.
    pub field: String,
    /// For people: what rule was broken, or what to do.
    pub text: String,
    /// When a retry is sensible, in milliseconds from now.
    pub retry_after_ms: Option<u64>,
    /// Facts for programs, such as `limit`, `earliest`, `latest`.
    pub metadata: Vec<(&'static str, String)>,
}

impl Refusal {
    /// A refusal without a field.
    #[must_use]
    pub fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self { reason, field: String::new(), text: text.into(), retry_after_ms: None, metadata: Vec::new() }
    }

    /// `field` breaks the rule that `text` states.
    #[must_use]
    pub fn invalid(field: impl Into<String>, text: impl Into<String>) -> Self {
        Self { field: field.into(), ..Self::new(Reason::InvalidArgument, text) }
    }

    /// The same refusal with one more fact.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.metadata.push((key, value.to_string()));
        self
    }

    /// The same refusal, worth another try after `millis`.
    #[must_use]
    pub const fn retry_after(mut self, millis: u64) -> Self {
        self.retry_after_ms = Some(millis);
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() { f.write_str(&self.text) } else { write!(f, "{}: {}", self.field, self.text) }
    }
}

impl std::error::Error for Refusal {}
