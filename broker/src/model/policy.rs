//! Channel policies: declared kinds of channels.

use super::limits::{PAYLOAD_BYTES_DEFAULT, PAYLOAD_BYTES_MAX};
use super::names::check_policy;
use super::{Reason, Refusal};
use serde::{Deserialize, Serialize};

/// One hour in milliseconds.
pub const HOUR_MS: u64 = 60 * 60 * 1000;
/// Default retention: 24 h.
pub const RETENTION_MS_DEFAULT: u64 = 24 * HOUR_MS;
/// Default depth at which a channel is called deep.
pub const DEPTH_ALERT_DEFAULT: u64 = 10_000;
/// Default time for which executions and their pairs are remembered: 7 days.
pub const REMEMBER_MS_DEFAULT: u64 = 7 * 24 * HOUR_MS;

/// What a channel's key is made of. The tenant is always part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum KeyTemplate {
    /// `{tenant}`: one channel a tenant.
    Tenant,
    /// `{tenant}:{agent_id}`: one channel an agent of a tenant.
    TenantAgent,
}

impl KeyTemplate {
    /// As it is written in the configuration.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Tenant => "{tenant}",
            Self::TenantAgent => "{tenant}:{agent_id}",
        }
    }

    /// Whether an agent id, empty or not, fits this template.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub const fn check_agent(self, agent: &str) -> Result<(), &'static str> {
        match (self, agent.is_empty()) {
            (Self::Tenant, false) => Err("the policy's key is {tenant}: leave the agent empty"),
            (Self::TenantAgent, true) => Err("the policy's key is {tenant}:{agent_id}: name the agent"),
            _ => Ok(()),
        }
    }
}

/// Who may change a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PolicyOwner {
    /// The configuration file.
    File,
    /// Callers of the API.
    Api,
}

/// A declared kind of channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelPolicy {
    /// Its name.
    pub name: String,
    /// What its channels' keys are made of. Never changes once there are channels.
    pub key: KeyTemplate,
    /// How long messages are kept, in milliseconds.
    pub retention_ms: u64,
    /// Whether its channels may be replayed.
    pub replay: bool,
    /// From this depth on a channel is called deep; told, never refused.
    pub depth_alert: u64,
    /// At this depth publishes are refused; without it there is no limit.
    pub max_depth: Option<u64>,
    /// Whether COMPLETED needs an artifact_ref.
    pub require_artifact: bool,
    /// How long executions and their pairs are remembered after the last word of them, in milliseconds; at least the
    /// retention.
    pub remember_ms: u64,
    /// Most bytes of a payload.
    pub payload_bytes_max: u64,
    /// Who may change it.
    pub owner: PolicyOwner,
}

impl ChannelPolicy {
    /// A policy with every setting at its default.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            key: KeyTemplate::TenantAgent,
            retention_ms: RETENTION_MS_DEFAULT,
            replay: true,
            depth_alert: DEPTH_ALERT_DEFAULT,
            max_depth: None,
            require_artifact: false,
            remember_ms: REMEMBER_MS_DEFAULT,
            payload_bytes_max: PAYLOAD_BYTES_DEFAULT,
            owner: PolicyOwner::Api,
        }
    }

    /// The policies a broker has where no configuration declares any: `task_events` and `events`.
    #[must_use]
    pub fn built_in() -> Vec<Self> {
        vec![Self::named("task_events"), Self::named("events")]
    }

    /// Checks that the settings fit each other and their bounds.
    ///
    /// # Errors
    /// The first rule broken, naming its field.
    pub fn validate(&self) -> Result<(), Refusal> {
        check_policy("name", &self.name)?;
        if self.retention_ms == 0 {
            return Err(Refusal::invalid("retention_ms", "more than 0"));
        }
        if self.remember_ms < self.retention_ms {
            return Err(Refusal::invalid("remember_ms", "at least the retention"));
        }
        if self.depth_alert == 0 {
            return Err(Refusal::invalid("depth_alert", "more than 0"));
        }
        if self.max_depth == Some(0) {
            return Err(Refusal::invalid("max_depth", "more than 0; leave it out for no limit"));
        }
        if self.payload_bytes_max == 0 || self.payload_bytes_max > PAYLOAD_BYTES_MAX {
            let rule = format!("1 to {PAYLOAD_BYTES_MAX}; larger bodies belong into artifact_ref");
            return Err(Refusal { reason: Reason::InvalidArgument, ..Refusal::invalid("payload_bytes_max", rule) });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_policies_are_valid_and_each_bound_is_checked() {
        for policy in ChannelPolicy::built_in() {
            policy.validate().unwrap();
        }
        let base = ChannelPolicy::named("p");
        let broken = [
            ("name", ChannelPolicy { name: "P q".to_owned(), ..base.clone() }),
            ("retention_ms", ChannelPolicy { retention_ms: 0, ..base.clone() }),
            ("remember_ms", ChannelPolicy { remember_ms: 1, ..base.clone() }),
            ("depth_alert", ChannelPolicy { depth_alert: 0, ..base.clone() }),
            ("max_depth", ChannelPolicy { max_depth: Some(0), ..base.clone() }),
            ("payload_bytes_max", ChannelPolicy { payload_bytes_max: PAYLOAD_BYTES_MAX + 1, ..base }),
        ];
        for (field, policy) in broken {
            assert_eq!(policy.validate().unwrap_err().field, field);
        }
    }
}
