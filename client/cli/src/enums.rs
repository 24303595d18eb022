//! Enums of the wire by their short names: `COMPLETED`, not `FINAL_STATE_COMPLETED`.

use crate::output::Tree;

/// Makes a function that names a value of `$type` without the prefix `$prefix`. Unspecified comes out as nothing, a
/// number this version does not know as that number.
macro_rules! short_names {
    ($($(#[$doc:meta])* $function:ident: $type:ty, $prefix:literal;)*) => {
        $($(#[$doc])*
        pub(crate) fn $function(value: i32) -> Tree {
            name(value, $prefix, <$type>::try_from(value).ok().map(|known| known.as_str_name()))
        })*
    };
}

short_names! {
    /// A final state: `COMPLETED`.
    final_state: weir_proto::v1::FinalState, "FINAL_STATE_";
    /// What the ledger says of an execution: `BEGUN`.
    execution_state: weir_proto::v1::ExecutionState, "EXECUTION_STATE_";
    /// A judgement: `EFFECT_ONCE`.
    verdict: weir_proto::v1::Verdict, "VERDICT_";
    /// How a lease ended: `LOST`.
    lease_end: weir_proto::v1::LeaseEnd, "LEASE_END_";
    /// Kind of a remark: `FENCED`.
    remark_kind: weir_proto::v1::ExecutionRemarkKind, "EXECUTION_REMARK_KIND_";
    /// What made a message a duplicate: `MESSAGE_ID`.
    duplicate_kind: weir_proto::v1::DuplicateKind, "DUPLICATE_KIND_";
    /// Why messages are gone: `TTL`.
    gone_cause: weir_proto::v1::GoneCause, "GONE_CAUSE_";
    /// Whether a broker serves: `SERVING`.
    server_state: weir_proto::v1::ServerState, "SERVER_STATE_";
    /// Where a group starts: `EARLIEST`.
    start_from: weir_proto::v1::StartFrom, "START_FROM_";
    /// How recipients are meant: `DIRECT`.
    recipient_mode: weir_proto::v1::RecipientMode, "RECIPIENT_MODE_";
    /// An effect by its full name, as it stands in input lines: `EFFECT_UNSAFE`.
    effect: weir_proto::v1::Effect, "";
}

fn name(value: i32, prefix: &str, full: Option<&str>) -> Tree {
    match full {
        None => Tree::Text(value.to_string()),
        Some(full) if full.ends_with("_UNSPECIFIED") => Tree::Null,
        Some(full) => Tree::Text(full.strip_prefix(prefix).unwrap_or(full).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_proto::v1::{Effect, FinalState};

    #[test]
    fn a_value_goes_by_its_short_name() {
        assert_eq!(final_state(FinalState::Completed.into()), Tree::from("COMPLETED"));
        assert_eq!(effect(Effect::Unsafe.into()), Tree::from("EFFECT_UNSAFE"));
    }

    #[test]
    fn unspecified_is_nothing_and_an_unknown_number_stays_one() {
        assert_eq!(final_state(0), Tree::Null);
        assert_eq!(effect(0), Tree::Null);
        assert_eq!(final_state(77), Tree::from("77"));
    }
}
