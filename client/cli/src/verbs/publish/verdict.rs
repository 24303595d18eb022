//! What to do about a refused batch.

use crate::refused::Refused;
use tonic::Code;

/// What to do next. A batch is stored all or none, so nothing of a refused one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Reject this message, send the others again.
    Message(usize),
    /// Send both halves on their own, in order.
    Split,
    /// Wait, then send the same again: repeats are found by their ids.
    Wait,
    /// Nothing more for this channel.
    Channel,
    /// Nothing more at all.
    Run,
}

/// Judges the refusal of a batch of `size` messages.
pub(super) fn of(refused: &Refused, size: usize) -> Verdict {
    if refused.is_away() {
        return Verdict::Wait;
    }
    if refused.grpc == Code::ResourceExhausted {
        // Half of a batch may fit where the whole one does not, and what finishes work is admitted where nothing else is.
        return if size > 1 { Verdict::Split } else { Verdict::Wait };
    }
    if let Some(place) = message_place(&refused.field).filter(|place| *place < size) {
        return Verdict::Message(place);
    }
    match refused.grpc {
        Code::PermissionDenied => Verdict::Channel,
        Code::InvalidArgument | Code::FailedPrecondition | Code::AlreadyExists | Code::OutOfRange | Code::Aborted => {
            match refused.field.as_str() {
                "policy" => Verdict::Run,
                "tenant" | "agent_id" => Verdict::Channel,
                _ if size > 1 => Verdict::Split,
                _ => Verdict::Message(0),
            }
        }
        _ => Verdict::Run,
    }
}

/// The place in `messages[3].task_id`.
fn message_place(field: &str) -> Option<usize> {
    let (place, _) = field.strip_prefix("messages[")?.split_once(']')?;
    place.parse().ok()
}

/// The field of the message itself: `task_id` in `messages[3].task_id`.
pub(super) fn own_field(field: &str) -> &str {
    match field.strip_prefix("messages[").and_then(|rest| rest.split_once(']')) {
        Some((_, field)) => field.trim_start_matches('.'),
        None => field,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use weir_proto::v1::ErrorReason;

    fn refused(grpc: Code, reason: ErrorReason, field: &str) -> Refused {
        Refused { grpc, reason: Some(reason), field: field.to_owned(), text: String::new(), retry_after: None }
    }

    #[test]
    fn a_named_message_is_taken_out() {
        let fault = refused(Code::InvalidArgument, ErrorReason::InvalidArgument, "messages[3].task_id");
        assert_eq!(of(&fault, 500), Verdict::Message(3));
        assert_eq!(own_field(&fault.field), "task_id");
        let past = refused(Code::FailedPrecondition, ErrorReason::DeadlinePassed, "messages[0]");
        assert_eq!(of(&past, 2), Verdict::Message(0));
        assert_eq!(own_field(&past.field), "");
    }

    #[test]
    fn a_message_nobody_named_is_found_by_halves() {
        let fault = refused(Code::FailedPrecondition, ErrorReason::Fenced, "");
        assert_eq!(of(&fault, 2), Verdict::Split);
        assert_eq!(of(&fault, 1), Verdict::Message(0));
        let beyond = refused(Code::InvalidArgument, ErrorReason::TooLarge, "messages[9].payload");
        assert_eq!(of(&beyond, 2), Verdict::Split);
    }

    #[test]
    fn a_full_channel_is_tried_by_halves_and_then_waited_for() {
        let full = refused(Code::ResourceExhausted, ErrorReason::DepthExceeded, "");
        assert_eq!(of(&full, 500), Verdict::Split);
        assert_eq!(of(&full, 1), Verdict::Wait);
    }

    #[test]
    fn a_broker_that_is_away_is_waited_for() {
        let draining = refused(Code::Unavailable, ErrorReason::Draining, "");
        assert_eq!(of(&draining, 500), Verdict::Wait);
        assert_eq!(of(&Refused::unanswered(Duration::from_secs(1)), 500), Verdict::Wait);
    }

    #[test]
    fn what_holds_for_all_ends_the_channel_or_the_run() {
        let denied = refused(Code::PermissionDenied, ErrorReason::PermissionDenied, "");
        assert_eq!(of(&denied, 2), Verdict::Channel);
        let tenant = refused(Code::InvalidArgument, ErrorReason::InvalidArgument, "tenant");
        assert_eq!(of(&tenant, 2), Verdict::Channel);
        let policy = refused(Code::NotFound, ErrorReason::NotFound, "policy");
        assert_eq!(of(&policy, 2), Verdict::Run);
        let fault = refused(Code::Internal, ErrorReason::Internal, "");
        assert_eq!(of(&fault, 2), Verdict::Run);
    }
}
