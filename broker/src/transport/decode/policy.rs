//! Channel policies as callers of the API declare them.

use super::required;
use crate::model::Refusal;
use crate::model::policy::{ChannelPolicy, KeyTemplate, PolicyOwner};
use weir_proto::server as wire;

/// A policy with its defaults filled in. It belongs to callers of the API, whatever the request says.
pub(crate) fn policy(policy: Option<wire::Policy>) -> Result<ChannelPolicy, Refusal> {
    let wire = required("policy", policy)?;
    let given = |number: u64, default: u64| if number == 0 { default } else { number };
    let default = ChannelPolicy::named(wire.name);
    let retention_ms = given(wire.retention_ms, default.retention_ms);
    let policy = ChannelPolicy {
        key: key_template(&wire.key_template)?,
        retention_ms,
        replay: wire.replay.unwrap_or(default.replay),
        depth_alert: given(wire.depth_alert, default.depth_alert),
        max_depth: (wire.max_depth != 0).then_some(wire.max_depth),
        require_artifact: wire.require_artifact,
        remember_ms: given(wire.remember_ms, default.remember_ms.max(retention_ms)),
        payload_bytes_max: given(wire.payload_bytes_max, default.payload_bytes_max),
        owner: PolicyOwner::Api,
        name: default.name,
    };
    policy.validate().map_err(|refusal| Refusal { field: format!("policy.{}", refusal.field), ..refusal })?;
    Ok(policy)
}

fn key_template(text: &str) -> Result<KeyTemplate, Refusal> {
    let template = [KeyTemplate::TenantAgent, KeyTemplate::Tenant].into_iter().find(|key| key.text() == text);
    match template {
        Some(template) => Ok(template),
        None if text.is_empty() => Ok(KeyTemplate::TenantAgent),
        None => {
            let rule = "{tenant}:{agent_id} or {tenant}: the tenant owns the data, so it is part of every key";
            Err(Refusal::invalid("policy.key_template", rule))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named() -> wire::Policy {
        wire::Policy { name: "refunds".into(), ..Default::default() }
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        assert_eq!(policy(Some(named())).unwrap(), ChannelPolicy::named("refunds"));
        assert!(!policy(Some(wire::Policy { replay: Some(false), ..named() })).unwrap().replay);
    }

    #[test]
    fn a_longer_retention_takes_the_memory_of_executions_along() {
        let year = 365 * 24 * 3_600_000;
        assert_eq!(policy(Some(wire::Policy { retention_ms: year, ..named() })).unwrap().remember_ms, year);
    }

    #[test]
    fn each_fault_is_named_as_the_proto_names_it() {
        let faults = [
            ("policy.name", wire::Policy { name: "A b".into(), ..named() }),
            ("policy.key_template", wire::Policy { key_template: "{agent_id}".into(), ..named() }),
            ("policy.remember_ms", wire::Policy { remember_ms: 1, ..named() }),
            ("policy.payload_bytes_max", wire::Policy { payload_bytes_max: 1 << 30, ..named() }),
        ];
        for (field, faulty) in faults {
            assert_eq!(policy(Some(faulty)).unwrap_err().field, field);
        }
        assert_eq!(policy(None).unwrap_err().field, "policy");
    }
}
