//! Names as they are typed: channels, selectors, scopes. Strict, and never patterns but for the `*` of a selector.

use std::fmt;
use std::str::FromStr;

/// Longest tenant or agent, in characters.
const PART_LENGTH_MAX: usize = 128;

/// The key of a channel: `tenant:agent`, or `tenant` where the policy's key is the tenant alone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ChannelKey {
    /// Owner of the data.
    pub(crate) tenant: String,
    /// The owning agent; empty where the key is the tenant alone.
    pub(crate) agent_id: String,
}

impl ChannelKey {
    /// The key as it came over the wire, unchecked.
    pub(crate) fn new(tenant: impl Into<String>, agent_id: impl Into<String>) -> Self {
        Self { tenant: tenant.into(), agent_id: agent_id.into() }
    }
}

impl fmt::Display for ChannelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tenant)?;
        if self.agent_id.is_empty() {
            return Ok(());
        }
        write!(f, ":{}", self.agent_id)
    }
}

impl FromStr for ChannelKey {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        match text.split_once(':') {
            None => Ok(Self::new(part("tenant", text)?, "")),
            Some((tenant, agent)) => Ok(Self::new(part("tenant", tenant)?, part("agent", agent)?)),
        }
    }
}

/// Which channels a group reads: `tenant:agent`, `tenant`, `tenant:*` or `*:*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selector {
    /// One channel.
    Channel(ChannelKey),
    /// All channels of a tenant.
    Tenant(String),
    /// All channels.
    All,
}

impl Selector {
    /// The scope a group over these channels naturally has.
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::Channel(key) => Scope(key.tenant.clone()),
            Self::Tenant(tenant) => Scope(tenant.clone()),
            Self::All => Scope::operator(),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channel(key) => key.fmt(f),
            Self::Tenant(tenant) => write!(f, "{tenant}:*"),
            Self::All => f.write_str("*:*"),
        }
    }
}

impl FromStr for Selector {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        match text.split_once(':') {
            Some(("*", "*")) => Ok(Self::All),
            Some(("*", _)) => Err(BadName::new("selector", "`*` as tenant goes with `*` as agent only")),
            Some((tenant, "*")) => Ok(Self::Tenant(part("tenant", tenant)?)),
            _ => text.parse().map(Self::Channel),
        }
    }
}

/// The scope of a group: a tenant, or `*` for an operator's group over all tenants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope(pub(crate) String);

impl Scope {
    /// The operator's scope.
    pub(crate) fn operator() -> Self {
        Self("*".to_owned())
    }
}

impl FromStr for Scope {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        if text == "*" {
            return Ok(Self::operator());
        }
        part("scope", text).map(Self)
    }
}

/// A name that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadName {
    what: &'static str,
    rule: &'static str,
}

impl BadName {
    fn new(what: &'static str, rule: &'static str) -> Self {
        Self { what, rule }
    }
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.rule)
    }
}

impl std::error::Error for BadName {}

fn part(what: &'static str, text: &str) -> Result<String, BadName> {
    if text.is_empty() {
        return Err(BadName::new(what, "must not be empty"));
    }
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '~');
    if !text.chars().all(known) {
        return Err(BadName::new(what, "only A-Z a-z 0-9 . _ - and ~ may stand in it"));
    }
    if text.starts_with('~') {
        return Err(BadName::new(what, "names that start with ~ are weir's own"));
    }
    if text.len() > PART_LENGTH_MAX {
        return Err(BadName::new(what, "at most 128 characters"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_channel_is_a_tenant_and_an_agent() {
        let key: ChannelKey = "airline-0:desk".parse().unwrap();
        assert_eq!(key, ChannelKey::new("airline-0", "desk"));
        assert_eq!(key.to_string(), "airline-0:desk");
        let alone: ChannelKey = "acme".parse().unwrap();
        assert_eq!(alone.to_string(), "acme");
    }

    #[test]
    fn a_channel_is_never_a_pattern_and_has_one_colon() {
        for text in
            ["", ":", "a:", ":a", "a:b:c", "a:*", "*", "*:*", "a b:c", "a:b/c", "~weir:a", "a:~b", "ä:b", "a:b\n"]
        {
            assert!(text.parse::<ChannelKey>().is_err(), "{text:?}");
        }
        assert!("a".repeat(128).parse::<ChannelKey>().is_ok());
        assert!("a".repeat(129).parse::<ChannelKey>().is_err());
    }

    #[test]
    fn a_selector_names_one_channel_a_tenant_or_all() {
        for text in ["t:a", "t", "t:*", "*:*"] {
            assert_eq!(text.parse::<Selector>().unwrap().to_string(), text);
        }
        for text in ["", "*", "*:a", "t*:a", "t:a*", "t:*:*", "**:*", ":*"] {
            assert!(text.parse::<Selector>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_selector_knows_the_scope_of_its_group() {
        assert_eq!("t:a".parse::<Selector>().unwrap().scope(), Scope("t".into()));
        assert_eq!("t:*".parse::<Selector>().unwrap().scope(), Scope("t".into()));
        assert_eq!("*:*".parse::<Selector>().unwrap().scope(), Scope::operator());
    }

    #[test]
    fn a_fault_names_the_part_and_the_rule() {
        let fault = "acme:a b".parse::<ChannelKey>().unwrap_err();
        assert_eq!(fault.to_string(), "agent: only A-Z a-z 0-9 . _ - and ~ may stand in it");
    }
}
