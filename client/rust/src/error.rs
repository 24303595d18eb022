//! What a call that failed says: decoded once from a status or an in-band refusal.

mod decode;
mod judge;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
pub use tonic::Code;
use weir_proto::v1::{ErrorReason, Refusal};

/// Why a call, or one part of it, failed.
///
/// Match on [`reason`](Self::reason) where it is set; it is [`ErrorReason::Unspecified`] where not the broker but the way
/// to it failed, and [`code`](Self::code) is all there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// The gRPC code.
    pub code: Code,
    /// The broker's reason, from its closed set.
    pub reason: ErrorReason,
    /// Path of the field at fault (`messages[3].task_id`); empty if none is.
    pub field: String,
    /// What happened, in words.
    pub text: String,
    /// How long the broker asks to wait before a repeat; `None` if it set no time.
    pub retry_after: Option<Duration>,
    /// Whether the same call may succeed later, unchanged.
    pub retryable: bool,
    /// Whether the write may have happened all the same. A repeat under the same ids finds out.
    pub may_have_applied: bool,
    /// More facts by name: `limit`, `earliest`, `latest`, ...
    pub metadata: BTreeMap<String, String>,
}

impl ClientError {
    fn local(code: Code, text: impl Into<String>) -> Self {
        Self {
            code,
            reason: ErrorReason::Unspecified,
            field: String::new(),
            text: text.into(),
            retry_after: None,
            retryable: false,
            may_have_applied: false,
            metadata: BTreeMap::new(),
        }
    }

    /// `field` breaks the rule that `text` states; nothing was sent.
    pub(crate) fn invalid(field: impl Into<String>, text: impl Into<String>) -> Self {
        Self { reason: ErrorReason::InvalidArgument, field: field.into(), ..Self::local(Code::InvalidArgument, text) }
    }

    /// `field` has more bytes than `limit`; nothing was sent.
    pub(crate) fn too_large(field: impl Into<String>, bytes: usize, limit: usize) -> Self {
        let text = format!("{bytes} bytes are more than the limit of {limit}");
        Self {
            reason: ErrorReason::TooLarge,
            field: field.into(),
            metadata: BTreeMap::from([("limit".to_owned(), limit.to_string())]),
            ..Self::local(Code::InvalidArgument, text)
        }
    }

    /// No answer came within `limit`.
    pub(crate) fn unanswered(limit: Duration) -> Self {
        Self {
            retryable: true,
            may_have_applied: true,
            ..Self::local(Code::DeadlineExceeded, format!("no answer within {} ms", limit.as_millis()))
        }
    }

    /// The caller's time was over before the call could be made.
    pub(crate) fn out_of_time() -> Self {
        Self {
            retryable: true,
            ..Self::local(Code::DeadlineExceeded, "the time for this was over before it could be sent")
        }
    }

    /// This part of the client was stopped.
    pub(crate) fn stopped(text: impl Into<String>) -> Self {
        Self::local(Code::Cancelled, text)
    }

    /// The system this runs on did not give what was needed; nothing was sent.
    pub(crate) fn system(text: impl Into<String>) -> Self {
        Self::local(Code::Internal, text)
    }

    /// The broker's answer lacks what the protocol promises.
    pub(crate) fn nonsense(text: impl Into<String>) -> Self {
        Self { may_have_applied: true, ..Self::local(Code::Internal, text) }
    }

    /// The same error, after an earlier attempt that may have been applied.
    pub(crate) fn after(mut self, earlier_may_have_applied: bool) -> Self {
        self.may_have_applied |= earlier_may_have_applied;
        self
    }
}

impl From<Refusal> for ClientError {
    /// A refusal inside an answer says all by itself.
    fn from(refusal: Refusal) -> Self {
        let reason = refusal.reason();
        Self {
            code: judge::code_of(reason),
            reason,
            field: refusal.field,
            text: refusal.text,
            retry_after: (refusal.retry_after_ms > 0).then(|| Duration::from_millis(refusal.retry_after_ms)),
            retryable: refusal.retryable,
            may_have_applied: refusal.may_have_applied,
            metadata: refusal.metadata,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            ErrorReason::Unspecified => write!(f, "{:?}: ", self.code)?,
            reason => write!(f, "{}: ", reason.name())?,
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.text)
    }
}

impl std::error::Error for ClientError {}
