//! What each reason of the closed set means for a caller.

use tonic::Code;
use weir_proto::v1::ErrorReason as Reason;

/// The gRPC code a reason comes with.
pub(super) fn code_of(reason: Reason) -> Code {
    match reason {
        Reason::Unspecified => Code::Unknown,
        Reason::InvalidArgument | Reason::TooLarge => Code::InvalidArgument,
        Reason::Unauthenticated => Code::Unauthenticated,
        Reason::PermissionDenied => Code::PermissionDenied,
        Reason::NotFound => Code::NotFound,
        Reason::AlreadyExists => Code::AlreadyExists,
        Reason::DepthExceeded | Reason::RateLimited | Reason::StorageFull => Code::ResourceExhausted,
        Reason::LeaseLost | Reason::StaleSession => Code::Aborted,
        Reason::Fenced
        | Reason::ExecutionBegun
        | Reason::OutOfOrder
        | Reason::GroupNotEmpty
        | Reason::PolicyOwnedByFile
        | Reason::DeadlinePassed
        | Reason::ExecutionNotUnknown => Code::FailedPrecondition,
        Reason::OffsetTrimmed | Reason::OffsetBeyondEnd => Code::OutOfRange,
        Reason::Starting | Reason::Draining | Reason::Closed | Reason::JournalFailed | Reason::Overloaded => {
            Code::Unavailable
        }
        Reason::DataLoss => Code::DataLoss,
        Reason::Internal => Code::Internal,
    }
}

/// Whether the same call may succeed later, unchanged.
pub(super) fn is_retryable(reason: Reason) -> bool {
    matches!(code_of(reason), Code::ResourceExhausted | Code::Unavailable)
}

/// Whether the write may have happened although the call failed.
pub(super) fn may_have_applied(reason: Reason) -> bool {
    matches!(reason, Reason::Closed | Reason::JournalFailed | Reason::Internal)
}
