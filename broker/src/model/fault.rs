//! What is wrong with a field: which one, and the rule it breaks.

use super::{Reason, Refusal};
use std::fmt;

/// A field that breaks a rule. Small and without allocation; words are made when it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldFault {
    /// The field, as the protos name it (`task_id`, `recipient.mode`); `message` where it is none the broker knows.
    pub field: &'static str,
    /// The rule.
    pub rule: Rule,
}

/// The closed set of rules about single fields. [`fmt::Display`] states the rule broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The bytes end inside the field.
    Truncated,
    /// A number of the encoding takes more than 64 bits.
    Varint,
    /// No field has this number.
    FieldNumber,
    /// The field is encoded as another kind of value.
    WireType,
    /// The field occurs twice.
    Once,
    /// The text is not UTF-8.
    Utf8,
    /// The number names no value of the enum.
    EnumNumber,
    /// The number is larger than its field holds.
    Range,
    /// The list is longer than this.
    Count(u32),
    /// Two entries have one key.
    RepeatedKey,
    /// The field is empty.
    Required,
    /// The text has more bytes than this.
    Length(u32),
    /// The text has characters outside `A-Z a-z 0-9 . _ ~ -`.
    NameCharacters,
    /// The text begins with `~`.
    Reserved,
    /// The text has characters outside `a-z 0-9 _ -`.
    PolicyCharacters,
    /// The text has control characters.
    Control,
    /// The type is neither one of weir's nor begins with `x.`.
    Type,
    /// A final state without an execution.
    NeedsExecution,
    /// COMPLETED without an artifact, where the policy requires one.
    NeedsArtifact,
    /// The payload or message has more bytes than this.
    Size(u64),
}

impl Rule {
    /// A name for programs; never changes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Varint => "varint",
            Self::FieldNumber => "field_number",
            Self::WireType => "wire_type",
            Self::Once => "once",
            Self::Utf8 => "utf8",
            Self::EnumNumber => "enum_number",
            Self::Range => "range",
            Self::Count(_) => "count",
            Self::RepeatedKey => "repeated_key",
            Self::Required => "required",
            Self::Length(_) => "length",
            Self::NameCharacters | Self::PolicyCharacters => "characters",
            Self::Reserved => "reserved",
            Self::Control => "control_characters",
            Self::Type => "type",
            Self::NeedsExecution => "needs_execution",
            Self::NeedsArtifact => "needs_artifact",
            Self::Size(_) => "size",
        }
    }

    /// This rule, broken by `field`.
    #[must_use]
    pub const fn broken_by(self, field: &'static str) -> FieldFault {
        FieldFault { field, rule: self }
    }

    const fn limit(self) -> Option<u64> {
        match self {
            Self::Count(limit) | Self::Length(limit) => Some(limit as u64),
            Self::Size(limit) => Some(limit),
            _ => None,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the bytes end inside the field"),
            Self::Varint => f.write_str("a number is encoded in more than 64 bits"),
            Self::FieldNumber => f.write_str("no field has this number"),
            Self::WireType => f.write_str("it is encoded as another kind of value"),
            Self::Once => f.write_str("it must occur at most once"),
            Self::Utf8 => f.write_str("it must be UTF-8"),
            Self::EnumNumber => f.write_str("this number names no value"),
            Self::Range => f.write_str("the number is too large"),
            Self::Count(limit) => write!(f, "at most {limit} entries"),
            Self::RepeatedKey => f.write_str("each key at most once"),
            Self::Required => f.write_str("it must not be empty"),
            Self::Length(limit) => write!(f, "at most {limit} bytes"),
            Self::NameCharacters => f.write_str("only the characters A-Z a-z 0-9 . _ ~ -"),
            Self::Reserved => f.write_str("names that begin with ~ (message ids: with ~weir/) belong to weir itself"),
            Self::PolicyCharacters => f.write_str("only the characters a-z 0-9 _ -"),
            Self::Control => f.write_str("no control characters"),
            Self::Type => f.write_str(
                "one of task.request, task.result, event, action.preview, action.result, approval.decision, \
                 task.cancelled, or a name of your own that begins with x.",
            ),
            Self::NeedsExecution => f.write_str("a final state needs an execution_id"),
            Self::NeedsArtifact => f.write_str("the policy requires an artifact_ref with COMPLETED"),
            Self::Size(limit) => {
                write!(f, "at most {limit} bytes; put larger things elsewhere and name them in artifact_ref")
            }
        }
    }
}

impl FieldFault {
    /// The refusal that says so; `path` is where the faulty value stands in the request (`messages[3]`), or empty.
    #[must_use]
    pub fn refusal(self, path: &str) -> Refusal {
        let field = if path.is_empty() { self.field.to_owned() } else { format!("{path}.{}", self.field) };
        let mut refusal = Refusal::invalid(field, self.rule.to_string()).with("rule", self.rule.name());
        if let Rule::Size(_) = self.rule {
            refusal.reason = Reason::TooLarge;
        }
        match self.rule.limit() {
            Some(limit) => refusal.with("limit", limit),
            None => refusal,
        }
    }
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.rule)
    }
}

impl std::error::Error for FieldFault {}

impl From<FieldFault> for Refusal {
    fn from(fault: FieldFault) -> Self {
        fault.refusal("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_path_rule_and_limit() {
        let refusal = Rule::Length(256).broken_by("task_id").refusal("messages[3]");

        assert_eq!(refusal.reason, Reason::InvalidArgument);
        assert_eq!(refusal.field, "messages[3].task_id");
        assert_eq!(refusal.metadata, [("rule", "length".to_owned()), ("limit", "256".to_owned())]);
    }

    #[test]
    fn a_size_is_refused_as_too_large() {
        assert_eq!(Refusal::from(Rule::Size(7).broken_by("payload")).reason, Reason::TooLarge);
    }
}
