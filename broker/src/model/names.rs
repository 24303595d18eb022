//! What may be a name (design, section 5). The same verdict everywhere: publish, join, fetch, query.
//!
//! | name | rule |
//! |---|---|
//! | tenant, agent | 1 to 128 of `A-Z a-z 0-9 . _ ~ -`; one that begins with `~` is weir's own |
//! | policy | 1 to 64 of `a-z 0-9 _ -` |
//! | task, execution, message, group, member, instance | 1 to 256 bytes of UTF-8 without control characters; a message id that begins with `~weir/` is weir's own |
//!
//! Names are compared byte for byte: no case folding, no Unicode normalization, no patterns. None is ever a file name.
//! Tenants and agents have no colon, so that `tenant:agent` splits in one way only.

use super::fault::{FieldFault, Rule};
use super::limits::{AGENT_BYTES_MAX, NAME_BYTES_MAX, POLICY_NAME_BYTES_MAX};

/// The scope of an operator's group: all tenants.
pub const EVERY_TENANT: &str = "*";

/// The sender of messages that weir itself writes.
pub const WEIR_AGENT: &str = "~weir";

/// How the ids of messages begin that weir itself writes, and no others.
pub const WEIR_MESSAGE: &str = "~weir/";

/// Checks a tenant or agent that a caller gave as `field`.
///
/// # Errors
/// The rule broken: required, length, reserved or characters.
pub fn check_agent(field: &'static str, name: &str) -> Result<(), FieldFault> {
    check_length(field, name, AGENT_BYTES_MAX)?;
    if name.starts_with('~') {
        return Err(Rule::Reserved.broken_by(field));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'-');
    if name.bytes().all(plain) { Ok(()) } else { Err(Rule::NameCharacters.broken_by(field)) }
}

/// Checks the scope of a group: a tenant, or [`EVERY_TENANT`].
///
/// # Errors
/// As [`check_agent`].
pub fn check_scope(field: &'static str, scope: &str) -> Result<(), FieldFault> {
    if scope == EVERY_TENANT { Ok(()) } else { check_agent(field, scope) }
}

/// Checks the name of a channel policy.
///
/// # Errors
/// The rule broken: required, length or characters.
pub fn check_policy(field: &'static str, name: &str) -> Result<(), FieldFault> {
    check_length(field, name, POLICY_NAME_BYTES_MAX)?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
    if name.bytes().all(plain) { Ok(()) } else { Err(Rule::PolicyCharacters.broken_by(field)) }
}

/// Checks an opaque name: task, execution, message, group, member, instance.
///
/// # Errors
/// The rule broken: required, length or control characters (C0, DEL and C1).
pub fn check_opaque(field: &'static str, name: &str) -> Result<(), FieldFault> {
    check_length(field, name, NAME_BYTES_MAX)?;
    // Where all is printable ASCII there is no need to look at characters.
    let printable = name.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if printable || !name.chars().any(char::is_control) { Ok(()) } else { Err(Rule::Control.broken_by(field)) }
}

fn check_length(field: &'static str, name: &str, max: usize) -> Result<(), FieldFault> {
    if name.is_empty() {
        return Err(Rule::Required.broken_by(field));
    }
    check_at_most(field, name, max)
}

/// Checks that a text has at most `max` bytes; it may be empty.
///
/// # Errors
/// The length rule, with `max` as its limit.
pub fn check_at_most(field: &'static str, text: &str, max: usize) -> Result<(), FieldFault> {
    if text.len() <= max { Ok(()) } else { Err(Rule::Length(u32::try_from(max).unwrap_or(u32::MAX)).broken_by(field)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPOSED: &str = "caf\u{e9}";
    const DECOMPOSED: &str = "cafe\u{301}";

    fn rule<T>(verdict: Result<T, FieldFault>) -> Result<T, Rule> {
        verdict.map_err(|fault| fault.rule)
    }

    fn agent(name: &str) -> Result<(), Rule> {
        rule(check_agent("agent_id", name))
    }

    fn opaque(name: &str) -> Result<(), Rule> {
        rule(check_opaque("task_id", name))
    }

    #[test]
    fn s14_names_that_could_be_taken_for_two_pairs_or_a_pattern_are_no_tenants_or_agents() {
        for name in ["a:b", ":b", "a:", "b:c", "*", ">", "a/b", "../x", "a b", "%2F", COMPOSED, DECOMPOSED, "a\0b"] {
            assert_eq!(agent(name), Err(Rule::NameCharacters), "{name:?}");
        }
        assert_eq!(agent(""), Err(Rule::Required));
        assert_eq!(agent("~weir"), Err(Rule::Reserved));
        for name in ["a", "b", "c", "a.b", "Bot", "bot", "..", "-", "a~2", &"a".repeat(128)] {
            assert_eq!(agent(name), Ok(()), "{name:?}");
        }
        for bytes in [129, 255, 256, 10_000] {
            assert_eq!(agent(&"a".repeat(bytes)), Err(Rule::Length(128)), "{bytes}");
        }
    }

    #[test]
    fn s14_opaque_names_may_be_any_text_without_control_characters() {
        for name in
            ["a:b", ":b", "a:", "*", ">", "a.b", "a/b", "../x", "a b", "%2F", "Bot", "bot", COMPOSED, DECOMPOSED]
        {
            assert_eq!(opaque(name), Ok(()), "{name:?}");
        }
        assert_eq!(opaque(""), Err(Rule::Required));
        assert_eq!(opaque(&"a".repeat(255)), Ok(()));
        assert_eq!(opaque(&"a".repeat(256)), Ok(()));
        assert_eq!(opaque(&"\u{e9}".repeat(129)), Err(Rule::Length(256)));
        assert_eq!(opaque(&"a".repeat(10_000)), Err(Rule::Length(256)));
        for name in ["a\0b", "a\nb", "a\u{7f}", "a\u{85}"] {
            assert_eq!(opaque(name), Err(Rule::Control), "{name:?}");
        }
    }

    #[test]
    fn s14_a_refusal_names_the_field_and_the_rule() {
        let fault = check_agent("tenant", "a:b").unwrap_err();
        assert_eq!(fault.to_string(), "tenant: only the characters A-Z a-z 0-9 . _ ~ -");
    }

    #[test]
    fn a_scope_is_a_tenant_or_a_star() {
        assert_eq!(check_scope("scope", "*"), Ok(()));
        assert_eq!(check_scope("scope", "acme"), Ok(()));
        assert_eq!(rule(check_scope("scope", "**")), Err(Rule::NameCharacters));
    }

    #[test]
    fn a_policy_name_is_short_and_in_small_letters() {
        let policy = |name| rule(check_policy("policy", name));
        assert_eq!(policy("task_events"), Ok(()));
        assert_eq!(policy("2nd-line"), Ok(()));
        assert_eq!(policy(""), Err(Rule::Required));
        assert_eq!(policy("Task"), Err(Rule::PolicyCharacters));
        assert_eq!(policy("a/b"), Err(Rule::PolicyCharacters));
        assert_eq!(policy(&"a".repeat(65)), Err(Rule::Length(64)));
    }
}
