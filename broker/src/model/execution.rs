//! What the broker knows of an execution.

use serde::{Deserialize, Serialize};

/// A final state as a message reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FinalState {
    /// Done, with its effect.
    Completed,
    /// Ended without success.
    Failed,
    /// Called off.
    Canceled,
    /// Not taken on.
    Rejected,
    /// Nobody knows; not failed.
    Unknown,
}

impl FinalState {
    /// Anything but UNKNOWN.
    #[must_use]
    pub const fn is_definite(self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// Its name, as printed and as in the data files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Canceled => "CANCELED",
            Self::Rejected => "REJECTED",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// What acting on a request does to the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Effect {
    /// Not said. Counts as [`Effect::Unsafe`] once begun.
    #[default]
    Unspecified,
    /// None: a read.
    None,
    /// Doing it again changes nothing.
    Idempotent,
    /// Doing it again does it twice.
    Unsafe,
}

impl Effect {
    /// Whether another attempt after a lost one needs to know first what became of it.
    #[must_use]
    pub const fn is_unsafe(self) -> bool {
        matches!(self, Self::Unspecified | Self::Unsafe)
    }
}

/// Where an execution stands in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ExecutionState {
    /// Asked for, or merely mentioned; nobody has begun.
    Requested,
    /// Somebody said "I am about to act".
    Begun,
    /// Definite.
    Completed,
    /// Definite.
    Failed,
    /// Definite.
    Canceled,
    /// Definite.
    Rejected,
    /// Not known. Ends by a definite report or an operator's NOT_EXECUTED.
    Unknown,
    /// Its request went before anybody began. Not final: yields to any report.
    Expired,
}

impl ExecutionState {
    /// The definite final state, if it has one.
    #[must_use]
    pub const fn definite(self) -> Option<FinalState> {
        match self {
            Self::Completed => Some(FinalState::Completed),
            Self::Failed => Some(FinalState::Failed),
            Self::Canceled => Some(FinalState::Canceled),
            Self::Rejected => Some(FinalState::Rejected),
            Self::Requested | Self::Begun | Self::Unknown | Self::Expired => None,
        }
    }

    /// Its name, as printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requested => "REQUESTED",
            Self::Begun => "BEGUN",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Canceled => "CANCELED",
            Self::Rejected => "REJECTED",
            Self::Unknown => "UNKNOWN",
            Self::Expired => "EXPIRED",
        }
    }
}

impl From<FinalState> for ExecutionState {
    fn from(state: FinalState) -> Self {
        match state {
            FinalState::Completed => Self::Completed,
            FinalState::Failed => Self::Failed,
            FinalState::Canceled => Self::Canceled,
            FinalState::Rejected => Self::Rejected,
            FinalState::Unknown => Self::Unknown,
        }
    }
}

/// Why an execution is UNKNOWN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum UnknownReason {
    /// The lease whose begin stands was lost.
    LeaseLost,
    /// Somebody published or settled it as UNKNOWN.
    Reported,
    /// The message was settled DONE after a begin, without a result.
    NoResult,
    /// The message was set aside after a begin.
    Rejected,
    /// Attempts ran out, one of them lost.
    AttemptsExhausted,
    /// The deadline passed after a begin.
    Deadline,
    /// The request was purged after a begin.
    Purged,
}

impl UnknownReason {
    /// Its name, as printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LeaseLost => "lease_lost",
            Self::Reported => "reported",
            Self::NoResult => "no_result",
            Self::Rejected => "rejected",
            Self::AttemptsExhausted => "attempts_exhausted",
            Self::Deadline => "deadline",
            Self::Purged => "purged",
        }
    }
}

/// What the whole story of an execution comes to (design, section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// COMPLETED, and one begin that was not withdrawn.
    EffectOnce,
    /// COMPLETED, with several such begins.
    EffectRepeated,
    /// A final state without a begin.
    ReportedOnly,
    /// Ended without success after a begin.
    NoEffectReported,
    /// Nobody knows.
    EffectUnknown,
    /// Reports contradict each other.
    Contradiction,
    /// Nobody began it.
    NeverBegun,
    /// Begun, and its holder still has it.
    InProgress,
}

impl Verdict {
    /// Its name, as printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EffectOnce => "EFFECT_ONCE",
            Self::EffectRepeated => "EFFECT_REPEATED",
            Self::ReportedOnly => "REPORTED_ONLY",
            Self::NoEffectReported => "NO_EFFECT_REPORTED",
            Self::EffectUnknown => "EFFECT_UNKNOWN",
            Self::Contradiction => "CONTRADICTION",
            Self::NeverBegun => "NEVER_BEGUN",
            Self::InProgress => "IN_PROGRESS",
        }
    }
}
