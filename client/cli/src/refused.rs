//! Why a call was refused, read from the status and its details.

use crate::exit::Code;
use std::error::Error as _;
use std::fmt;
use std::time::Duration;
use tonic::Status;
use tonic_types::StatusExt as _;
use weir_proto::v1::ErrorReason;

/// A refusal: by the broker if it has a reason, else by what lies between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The gRPC code.
    pub(crate) grpc: tonic::Code,
    /// The broker's reason; `None` if the broker did not say one.
    pub(crate) reason: Option<ErrorReason>,
    /// Path of the field at fault; empty if none is.
    pub(crate) field: String,
    /// What happened, in words.
    pub(crate) text: String,
    /// How long the broker asks to wait before a retry.
    pub(crate) retry_after: Option<Duration>,
}

impl Refused {
    /// The refusal of a call that was not answered within `limit`.
    pub(crate) fn unanswered(limit: Duration) -> Self {
        Self {
            grpc: tonic::Code::DeadlineExceeded,
            reason: None,
            field: String::new(),
            text: format!("no answer within {} ms", limit.as_millis()),
            retry_after: None,
        }
    }

    /// The refusal of an answer that makes no sense.
    pub(crate) fn nonsense(text: &str) -> Self {
        Self {
            grpc: tonic::Code::DataLoss,
            reason: None,
            field: String::new(),
            text: text.to_owned(),
            retry_after: None,
        }
    }

    /// The exit code this ends in.
    pub(crate) fn code(&self) -> Code {
        match self.grpc {
            tonic::Code::NotFound => Code::NotFound,
            tonic::Code::PermissionDenied | tonic::Code::Unauthenticated => Code::Denied,
            tonic::Code::ResourceExhausted => Code::Backpressure,
            tonic::Code::Unavailable | tonic::Code::DeadlineExceeded => Code::Unavailable,
            _ if self.is_away() => Code::Unavailable,
            _ => Code::Error,
        }
    }

    /// Whether the broker is away, or the connection to it broke: the same call may succeed later, and a write may have
    /// happened.
    pub(crate) fn is_away(&self) -> bool {
        match self.grpc {
            tonic::Code::Unavailable => true,
            tonic::Code::DeadlineExceeded | tonic::Code::Cancelled | tonic::Code::Unknown | tonic::Code::Internal => {
                self.reason.is_none()
            }
            _ => false,
        }
    }
}

impl From<Status> for Refused {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        let reason = details
            .error_info()
            .filter(|info| info.domain == weir_proto::ERROR_DOMAIN)
            .and_then(|info| ErrorReason::from_name(&info.reason));
        let field = details
            .bad_request()
            .and_then(|bad| bad.field_violations.first())
            .map(|violation| violation.field.clone())
            .unwrap_or_default();
        let text = text(&status);
        Self {
            grpc: status.code(),
            reason,
            text: text.strip_prefix(&format!("{field}: ")).unwrap_or(&text).to_owned(),
            field,
            retry_after: details.retry_info().and_then(|info| info.retry_delay),
        }
    }
}

/// The words of a status, with the causes below it that say more.
fn text(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut cause = status.source();
    while let Some(below) = cause {
        let words = below.to_string();
        if !text.contains(&words) {
            text = if text.is_empty() { words } else { format!("{text}: {words}") };
        }
        cause = below.source();
    }
    text
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Some(reason) => f.write_str(reason.name())?,
            None => write!(f, "{:?}", self.grpc)?,
        }
        if !self.field.is_empty() {
            write!(f, " in {}", self.field)?;
        }
        if !self.text.is_empty() {
            write!(f, ": {}", self.text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use tonic_types::ErrorDetails;

    fn status(code: tonic::Code, reason: &str) -> Status {
        let details = ErrorDetails::with_error_info(reason, "weir", HashMap::new());
        Status::with_error_details(code, "no room", details)
    }

    #[test]
    fn reason_field_and_delay_come_from_the_details() {
        let mut details = ErrorDetails::with_error_info("DEPTH_EXCEEDED", "weir", HashMap::new());
        details.set_retry_info(Some(Duration::from_millis(250)));
        details.add_bad_request_violation("messages[3].task_id", "is empty");
        let status = Status::with_error_details(tonic::Code::ResourceExhausted, "full", details);

        let refused = Refused::from(status);

        assert_eq!(refused.reason, Some(ErrorReason::DepthExceeded));
        assert_eq!(refused.retry_after, Some(Duration::from_millis(250)));
        assert_eq!(refused.to_string(), "DEPTH_EXCEEDED in messages[3].task_id: full");
    }

    #[test]
    fn a_field_is_named_once() {
        let mut details = ErrorDetails::with_error_info("INVALID_ARGUMENT", "weir", HashMap::new());
        details.add_bad_request_violation("policy", "is empty");
        let status = Status::with_error_details(tonic::Code::InvalidArgument, "policy: is empty", details);
        assert_eq!(Refused::from(status).to_string(), "INVALID_ARGUMENT in policy: is empty");
    }

    #[test]
    fn each_kind_of_refusal_has_its_exit_code() {
        let cases = [
            (tonic::Code::NotFound, "NOT_FOUND", Code::NotFound),
            (tonic::Code::PermissionDenied, "PERMISSION_DENIED", Code::Denied),
            (tonic::Code::Unauthenticated, "UNAUTHENTICATED", Code::Denied),
            (tonic::Code::ResourceExhausted, "DEPTH_EXCEEDED", Code::Backpressure),
            (tonic::Code::ResourceExhausted, "RATE_LIMITED", Code::Backpressure),
            (tonic::Code::ResourceExhausted, "STORAGE_FULL", Code::Backpressure),
            (tonic::Code::Unavailable, "DRAINING", Code::Unavailable),
            (tonic::Code::Unavailable, "STARTING", Code::Unavailable),
            (tonic::Code::InvalidArgument, "INVALID_ARGUMENT", Code::Error),
            (tonic::Code::Aborted, "LEASE_LOST", Code::Error),
            (tonic::Code::Internal, "INTERNAL", Code::Error),
        ];
        for (grpc, reason, code) in cases {
            assert_eq!(Refused::from(status(grpc, reason)).code(), code, "{reason}");
        }
    }

    #[test]
    fn a_broken_connection_is_told_from_a_fault_of_the_broker() {
        let wrong_port = Refused::from(Status::unknown("transport error"));
        assert!(wrong_port.is_away());
        assert_eq!(wrong_port.code(), Code::Unavailable);
        assert!(Refused::from(Status::unavailable("tcp connect error")).is_away());
        assert!(!Refused::from(status(tonic::Code::Internal, "INTERNAL")).is_away());
        assert!(!Refused::from(Status::invalid_argument("no")).is_away());
    }

    #[test]
    fn a_reason_of_someone_else_is_not_taken_for_ours() {
        let details = ErrorDetails::with_error_info("NOT_FOUND", "elsewhere", HashMap::new());
        let status = Status::with_error_details(tonic::Code::NotFound, "gone", details);
        assert_eq!(Refused::from(status).reason, None);
    }
}
