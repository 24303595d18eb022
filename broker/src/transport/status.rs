//! The one mapping from refusals to what the wire says: a `tonic::Status` with `google.rpc` details, or, inside an
//! answer, a `weir.v1.Refusal`.
//!
//! Every status of weir carries `ErrorInfo{domain: "weir", reason}` with `retryable` and `may_have_applied` in its
//! metadata; `BadRequest` where a field is at fault; `RetryInfo` and the trailer `grpc-retry-pushback-ms` where a retry
//! after some time is sensible.

use crate::model::{Reason, Refusal};
use std::collections::HashMap;
use std::time::Duration;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use weir_proto::{ERROR_DOMAIN, server as wire};

/// Clients of gRPC that retry by themselves wait so long.
const PUSHBACK: &str = "grpc-retry-pushback-ms";
const RETRYABLE: &str = "retryable";
const MAY_HAVE_APPLIED: &str = "may_have_applied";
/// Longest text in a status. It travels in a header, and peers bound those.
const TEXT_CHARS_MAX: usize = 1024;

/// A refused call as its status.
pub(super) fn status(refusal: &Refusal) -> Status {
    let mut facts: HashMap<String, String> =
        refusal.metadata.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    facts.insert(RETRYABLE.to_owned(), refusal.reason.is_retryable().to_string());
    facts.insert(MAY_HAVE_APPLIED.to_owned(), refusal.reason.may_have_applied().to_string());

    let mut details = ErrorDetails::new();
    details.set_error_info(refusal.reason.name(), ERROR_DOMAIN, facts);
    if !refusal.field.is_empty() {
        details.add_bad_request_violation(refusal.field.as_str(), short(&refusal.text));
    }
    let mut trailers = MetadataMap::new();
    if let Some(millis) = refusal.retry_after_ms {
        details.set_retry_info(Some(Duration::from_millis(millis)));
        trailers.insert(PUSHBACK, MetadataValue::from(millis));
    }
    let text = short(&refusal.to_string());
    Status::with_error_details_and_metadata(code(refusal.reason), text, details, trailers)
}

/// A refusal as part of an answer, or as the answer to one frame of a stream.
pub(super) fn in_band(refusal: Refusal) -> wire::Refusal {
    wire::Refusal {
        reason: reason(refusal.reason).into(),
        retryable: refusal.reason.is_retryable(),
        may_have_applied: refusal.reason.may_have_applied(),
        text: refusal.text,
        field: refusal.field,
        retry_after_ms: refusal.retry_after_ms.unwrap_or(0),
        metadata: refusal.metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
    }
}

/// Whether a refusal is about the broker or the session rather than about what was asked. Where an answer has room for a
/// refusal of its own, these still come as a status: nothing else sent there now would fare better.
pub(super) const fn ends_the_call(reason: Reason) -> bool {
    match reason {
        Reason::Starting
        | Reason::Draining
        | Reason::Closed
        | Reason::JournalFailed
        | Reason::DataLoss
        | Reason::Overloaded
        | Reason::StaleSession => true,
        Reason::InvalidArgument
        | Reason::TooLarge
        | Reason::NotFound
        | Reason::AlreadyExists
        | Reason::DepthExceeded
        | Reason::RateLimited
        | Reason::StorageFull
        | Reason::LeaseLost
        | Reason::Fenced
        | Reason::ExecutionBegun
        | Reason::NotUnknown
        | Reason::OutOfOrder
        | Reason::GroupNotEmpty
        | Reason::PolicyOwnedByFile
        | Reason::DeadlinePassed
        | Reason::OffsetTrimmed
        | Reason::OffsetBeyondEnd => false,
    }
}

/// The gRPC code of each reason (design, section 12).
const fn code(reason: Reason) -> Code {
    match reason {
        Reason::InvalidArgument | Reason::TooLarge => Code::InvalidArgument,
        Reason::NotFound => Code::NotFound,
        Reason::AlreadyExists => Code::AlreadyExists,
        Reason::DepthExceeded | Reason::RateLimited | Reason::StorageFull => Code::ResourceExhausted,
        Reason::LeaseLost | Reason::StaleSession => Code::Aborted,
        Reason::Fenced
        | Reason::ExecutionBegun
        | Reason::NotUnknown
        | Reason::OutOfOrder
        | Reason::GroupNotEmpty
        | Reason::PolicyOwnedByFile
        | Reason::DeadlinePassed => Code::FailedPrecondition,
        Reason::OffsetTrimmed | Reason::OffsetBeyondEnd => Code::OutOfRange,
        Reason::Starting | Reason::Draining | Reason::Closed | Reason::JournalFailed | Reason::Overloaded => {
            Code::Unavailable
        }
        Reason::DataLoss => Code::DataLoss,
    }
}

const fn reason(reason: Reason) -> wire::ErrorReason {
    match reason {
        Reason::InvalidArgument => wire::ErrorReason::InvalidArgument,
        Reason::TooLarge => wire::ErrorReason::TooLarge,
        Reason::NotFound => wire::ErrorReason::NotFound,
        Reason::AlreadyExists => wire::ErrorReason::AlreadyExists,
        Reason::DepthExceeded => wire::ErrorReason::DepthExceeded,
        Reason::RateLimited => wire::ErrorReason::RateLimited,
        Reason::StorageFull => wire::ErrorReason::StorageFull,
        Reason::LeaseLost => wire::ErrorReason::LeaseLost,
        Reason::StaleSession => wire::ErrorReason::StaleSession,
        Reason::Fenced => wire::ErrorReason::Fenced,
        Reason::ExecutionBegun => wire::ErrorReason::ExecutionBegun,
        Reason::NotUnknown => wire::ErrorReason::ExecutionNotUnknown,
        Reason::OutOfOrder => wire::ErrorReason::OutOfOrder,
        Reason::GroupNotEmpty => wire::ErrorReason::GroupNotEmpty,
        Reason::PolicyOwnedByFile => wire::ErrorReason::PolicyOwnedByFile,
        Reason::DeadlinePassed => wire::ErrorReason::DeadlinePassed,
        Reason::OffsetTrimmed => wire::ErrorReason::OffsetTrimmed,
        Reason::OffsetBeyondEnd => wire::ErrorReason::OffsetBeyondEnd,
        Reason::Starting => wire::ErrorReason::Starting,
        Reason::Draining => wire::ErrorReason::Draining,
        Reason::Closed => wire::ErrorReason::Closed,
        Reason::JournalFailed => wire::ErrorReason::JournalFailed,
        Reason::DataLoss => wire::ErrorReason::DataLoss,
        Reason::Overloaded => wire::ErrorReason::Overloaded,
    }
}

fn short(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(Reason, Code); 24] = [
        (Reason::InvalidArgument, Code::InvalidArgument),
        (Reason::TooLarge, Code::InvalidArgument),
        (Reason::NotFound, Code::NotFound),
        (Reason::AlreadyExists, Code::AlreadyExists),
        (Reason::DepthExceeded, Code::ResourceExhausted),
        (Reason::RateLimited, Code::ResourceExhausted),
        (Reason::StorageFull, Code::ResourceExhausted),
        (Reason::LeaseLost, Code::Aborted),
        (Reason::StaleSession, Code::Aborted),
        (Reason::Fenced, Code::FailedPrecondition),
        (Reason::ExecutionBegun, Code::FailedPrecondition),
        (Reason::NotUnknown, Code::FailedPrecondition),
        (Reason::OutOfOrder, Code::FailedPrecondition),
        (Reason::GroupNotEmpty, Code::FailedPrecondition),
        (Reason::PolicyOwnedByFile, Code::FailedPrecondition),
        (Reason::DeadlinePassed, Code::FailedPrecondition),
        (Reason::OffsetTrimmed, Code::OutOfRange),
        (Reason::OffsetBeyondEnd, Code::OutOfRange),
        (Reason::Starting, Code::Unavailable),
        (Reason::Draining, Code::Unavailable),
        (Reason::Closed, Code::Unavailable),
        (Reason::JournalFailed, Code::Unavailable),
        (Reason::DataLoss, Code::DataLoss),
        (Reason::Overloaded, Code::Unavailable),
    ];

    #[test]
    fn every_reason_comes_back_from_its_status_and_from_its_place_in_an_answer() {
        for (reason, code) in ALL {
            let refusal = Refusal::new(reason, "why").with("limit", 7);
            let status = status(&refusal);
            assert_eq!(status.code(), code, "{reason:?}");
            let info = status.get_details_error_info().unwrap();
            assert_eq!((info.domain.as_str(), info.reason.as_str()), ("weir", reason.name()));
            assert_eq!(info.metadata["limit"], "7");
            assert_eq!(info.metadata["retryable"], reason.is_retryable().to_string());
            assert_eq!(info.metadata["may_have_applied"], reason.may_have_applied().to_string());
            assert!(status.get_details_bad_request().is_none());

            let answer = in_band(refusal);
            assert_eq!(answer.reason().name(), reason.name());
            assert_eq!(wire::ErrorReason::from_name(&info.reason), Some(answer.reason()));
            assert_eq!(answer.metadata["limit"], "7");
        }
    }

    #[test]
    fn a_field_at_fault_is_named_with_its_rule() {
        let status = status(&Refusal::invalid("messages[3].task_id", "required"));
        assert_eq!(status.message(), "messages[3].task_id: required");
        let violations = status.get_details_bad_request().unwrap().field_violations;
        assert_eq!(violations[0].field, "messages[3].task_id");
        assert_eq!(violations[0].description, "required");
    }

    #[test]
    fn a_time_to_wait_comes_as_detail_and_as_trailer() {
        let status = status(&Refusal::new(Reason::DepthExceeded, "full").retry_after(1500));
        assert_eq!(status.get_details_retry_info().unwrap().retry_delay, Some(Duration::from_millis(1500)));
        assert_eq!(status.metadata().get(PUSHBACK).unwrap(), "1500");
    }

    #[test]
    fn a_long_text_is_cut_so_that_headers_stay_bounded() {
        let status = status(&Refusal::new(Reason::NotFound, "x".repeat(100_000)));
        assert_eq!(status.message().len(), TEXT_CHARS_MAX);
    }
}
