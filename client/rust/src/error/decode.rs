//! From a gRPC status, with or without the broker's details, to a [`ClientError`].

use super::{ClientError, judge};
use std::error::Error;
use std::time::Duration;
use tonic::{Code, ConnectError, Status};
use tonic_types::{ErrorInfo, StatusExt as _};
use weir_proto::ERROR_DOMAIN;
use weir_proto::v1::ErrorReason;

/// Beside `RetryInfo`, where the broker says how long to wait; a negative number says never.
const PUSHBACK: &str = "grpc-retry-pushback-ms";
/// How tonic begins the text of both its errors about message sizes.
const TONIC_SIZE_ERRORS: [&str; 2] =
    ["Error, decoded message length too large", "Error, encoded message length too large"];

impl From<Status> for ClientError {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info().filter(|info| info.domain == ERROR_DOMAIN);
        let mut error = match info {
            Some(info) => from_broker(&status, info),
            None => from_the_way(&status),
        };
        if let Some(violation) = details.bad_request().and_then(|bad| bad.field_violations.first()) {
            error.field.clone_from(&violation.field);
            // The status's own text names the field too, for those who read nothing else.
            if !violation.description.is_empty() {
                error.text.clone_from(&violation.description);
            }
        }
        error.retry_after = details.retry_info().and_then(|retry| retry.retry_delay).filter(|delay| !delay.is_zero());
        match pushback(&status) {
            Some(Pushback::After(delay)) => error.retry_after = error.retry_after.or(Some(delay)),
            Some(Pushback::Never) => error.retryable = false,
            None => {}
        }
        error
    }
}

/// The broker gave a reason. One that this version does not know is judged by its code.
fn from_broker(status: &Status, info: &ErrorInfo) -> ClientError {
    let reason = ErrorReason::from_name(&info.reason);
    let (retryable, may_have_applied) = match reason {
        Some(reason) => (judge::is_retryable(reason), judge::may_have_applied(reason)),
        None => judge_code(status.code()),
    };
    let told = |name: &str| info.metadata.get(name).and_then(|value| value.parse().ok());
    ClientError {
        reason: reason.unwrap_or(ErrorReason::Unspecified),
        retryable: told("retryable").unwrap_or(retryable),
        may_have_applied: told("may_have_applied").unwrap_or(may_have_applied),
        metadata: info.metadata.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        ..ClientError::local(status.code(), status.message())
    }
}

/// No word of the broker: the connection, a proxy, or tonic itself on either side.
fn from_the_way(status: &Status) -> ClientError {
    let mut error = ClientError::local(status.code(), words(status));
    if TONIC_SIZE_ERRORS.iter().any(|start| status.message().starts_with(start)) {
        error.code = Code::InvalidArgument;
        error.reason = ErrorReason::TooLarge;
        // Which side measured cannot be seen: it may have been the answer that was too large.
        error.may_have_applied = true;
    } else if is_in_chain::<ConnectError>(status) {
        error.retryable = true;
    } else if status.source().is_some() {
        // A call that broke off on its way, however tonic coded it.
        error.retryable = true;
        error.may_have_applied = true;
    } else {
        (error.retryable, error.may_have_applied) = judge_code(status.code());
    }
    error
}

/// Whether a repeat is sensible and whether the write may have happened, for a code alone. `CANCELLED` is how tonic's
/// server says that its time was over, `UNKNOWN` how a stream cut short looks.
fn judge_code(code: Code) -> (bool, bool) {
    match code {
        Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded | Code::Unknown => (true, true),
        Code::ResourceExhausted => (true, false),
        Code::Internal => (false, true),
        _ => (false, false),
    }
}

enum Pushback {
    After(Duration),
    Never,
}

fn pushback(status: &Status) -> Option<Pushback> {
    let text = status.metadata().get(PUSHBACK)?.to_str().ok()?;
    let millis: i64 = text.trim().parse().ok()?;
    Some(u64::try_from(millis).map_or(Pushback::Never, |millis| Pushback::After(Duration::from_millis(millis))))
}

/// The status's own words and those of its innermost cause, which alone say what is wrong with a connection.
fn words(status: &Status) -> String {
    let innermost = causes(status).last().map(ToString::to_string);
    match innermost {
        Some(cause) if cause != status.message() => format!("{}: {cause}", status.message()),
        _ => status.message().to_owned(),
    }
}

fn causes(status: &Status) -> impl Iterator<Item = &(dyn Error + 'static)> {
    let mut next = status.source();
    std::iter::from_fn(move || {
        let cause = next?;
        next = cause.source();
        Some(cause)
    })
}

fn is_in_chain<E: Error + 'static>(status: &Status) -> bool {
    causes(status).any(|error| error.is::<E>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use tonic_types::ErrorDetails;

    fn status(code: Code, reason: ErrorReason, details: ErrorDetails) -> Status {
        let mut details = details;
        details.set_error_info(reason.name(), ERROR_DOMAIN, HashMap::from([("limit".into(), "9".into())]));
        Status::with_error_details(code, "no", details)
    }

    #[test]
    fn every_reason_comes_back_with_its_code_and_says_if_a_repeat_is_sensible() {
        for number in 1..64 {
            let Ok(reason) = ErrorReason::try_from(number) else {
                continue;
            };
            let code = judge::code_of(reason);

            let error = ClientError::from(status(code, reason, ErrorDetails::new()));

            assert_eq!((error.code, error.reason), (code, reason));
            assert_eq!(error.retryable, judge::is_retryable(reason), "{reason:?}");
            assert_eq!(error.metadata["limit"], "9");
        }
    }

    #[test]
    fn the_time_to_wait_and_the_field_are_read_from_the_details() {
        let mut details = ErrorDetails::with_retry_info(Some(Duration::from_millis(250)));
        details.add_bad_request_violation("messages[2].task_id", "is required");

        let error = ClientError::from(status(Code::ResourceExhausted, ErrorReason::DepthExceeded, details));

        assert_eq!(error.retry_after, Some(Duration::from_millis(250)));
        assert_eq!(error.field, "messages[2].task_id");
        assert_eq!(error.to_string(), "DEPTH_EXCEEDED: messages[2].task_id: is required");
    }

    #[test]
    fn pushback_in_the_trailers_is_heeded() {
        let mut wait = status(Code::ResourceExhausted, ErrorReason::RateLimited, ErrorDetails::new());
        wait.metadata_mut().insert(PUSHBACK, "40".parse().unwrap());
        let mut never = status(Code::ResourceExhausted, ErrorReason::RateLimited, ErrorDetails::new());
        never.metadata_mut().insert(PUSHBACK, "-1".parse().unwrap());

        assert_eq!(ClientError::from(wait).retry_after, Some(Duration::from_millis(40)));
        assert!(!ClientError::from(never).retryable);
    }

    #[test]
    fn a_message_over_tonics_limit_is_no_reason_to_repeat() {
        let text = "Error, decoded message length too large: found 9 bytes, the limit is: 5 bytes";

        let error = ClientError::from(Status::out_of_range(text));

        assert_eq!((error.code, error.reason), (Code::InvalidArgument, ErrorReason::TooLarge));
        assert!(!error.retryable);
    }

    #[test]
    fn a_call_that_never_reached_the_broker_was_not_applied() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let never_connected = Status::from_error(Box::new(ConnectError(Box::new(refused))));
        let broke_off = Status::from_error(Box::new(std::io::Error::from(std::io::ErrorKind::ConnectionReset)));

        let (never_connected, broke_off) = (ClientError::from(never_connected), ClientError::from(broke_off));

        assert!(never_connected.retryable && !never_connected.may_have_applied);
        assert!(broke_off.retryable && broke_off.may_have_applied);
    }
}
