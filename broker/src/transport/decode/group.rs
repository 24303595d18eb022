//! Names and settings of groups.

use super::{known, required};
use crate::model::names::EVERY_TENANT;
use crate::model::{GroupRef, GroupSpec, Offset, Refusal, Selector, Start};
use weir_proto::server as wire;

/// A group's full name.
pub(crate) fn group_ref(field: &str, group: Option<wire::GroupRef>) -> Result<GroupRef, Refusal> {
    let group = required(field, group)?;
    Ok(GroupRef { scope: group.scope, policy: group.policy, name: group.name })
}

/// What a group is to be made of. `attempts` holds where the caller names no number.
pub(crate) fn group_spec(request: wire::CreateGroupRequest, attempts: u32) -> Result<GroupSpec, Refusal> {
    let name = group_ref("group", request.group)?;
    let settings = request.settings.unwrap_or_default();
    Ok(GroupSpec {
        selector: selector(&settings.selector, &name.scope)?,
        start: start(settings.start)?,
        executes: settings.executes.unwrap_or(true),
        skip_if_final: settings.skip_if_final,
        pressure: settings.pressure.unwrap_or(true),
        window: settings.window,
        max_attempts: if settings.max_attempts == 0 { attempts } else { settings.max_attempts },
        name,
    })
}

/// `tenant:agent`, `tenant`, `tenant:*` or `*:*`; nothing means all of the scope. Names have no colon, so there is one
/// reading.
fn selector(text: &str, scope: &str) -> Result<Selector, Refusal> {
    let names = |tenant: &str, agent: &str| Selector::Channel { tenant: tenant.to_owned(), agent: agent.to_owned() };
    match text.split_once(':') {
        None if text.is_empty() && scope == EVERY_TENANT => Ok(Selector::All),
        None if text.is_empty() => Ok(Selector::Tenant(scope.to_owned())),
        None => Ok(names(text, "")),
        Some(("*", "*")) => Ok(Selector::All),
        Some((tenant, "*")) => Ok(Selector::Tenant(tenant.to_owned())),
        Some((_, "")) => Err(Refusal::invalid("settings.selector", "`tenant:agent`, `tenant`, `tenant:*` or `*:*`")),
        Some((tenant, agent)) => Ok(names(tenant, agent)),
    }
}

fn start(start: Option<wire::GroupStart>) -> Result<Start, Refusal> {
    let start = start.unwrap_or_default();
    let from = known("settings.start.from", start.from)?;
    if start.offset != 0 && from != wire::StartFrom::Offset {
        return Err(Refusal::invalid("settings.start.offset", "only with START_FROM_OFFSET"));
    }
    Ok(match from {
        wire::StartFrom::Unspecified | wire::StartFrom::Earliest => Start::Earliest,
        wire::StartFrom::Latest => Start::Latest,
        wire::StartFrom::Offset => Start::Offset(Offset(start.offset)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(scope: &str, settings: Option<wire::GroupSettings>) -> wire::CreateGroupRequest {
        let group = wire::GroupRef { scope: scope.into(), policy: "task_events".into(), name: "g".into() };
        wire::CreateGroupRequest { group: Some(group), settings }
    }

    #[test]
    fn without_settings_a_group_reads_its_whole_scope_from_the_earliest_and_executes() {
        let spec = group_spec(request("acme", None), 5).unwrap();
        assert_eq!(spec.selector, Selector::Tenant("acme".into()));
        assert_eq!((spec.start, spec.executes, spec.pressure, spec.max_attempts), (Start::Earliest, true, true, 5));
        assert_eq!(group_spec(request("*", None), 5).unwrap().selector, Selector::All);
    }

    #[test]
    fn a_selector_reads_in_one_way_only() {
        let read = |text: &str| selector(text, "acme").map(|selector| selector.to_string());
        for text in ["acme:desk", "acme", "acme:*", "*:*"] {
            assert_eq!(read(text).unwrap(), text);
        }
        assert_eq!(read("acme:").unwrap_err().field, "settings.selector");
    }

    #[test]
    fn an_offset_needs_its_word() {
        let at = |from: wire::StartFrom, offset| start(Some(wire::GroupStart { from: from.into(), offset }));
        assert_eq!(at(wire::StartFrom::Offset, 9).unwrap(), Start::Offset(Offset(9)));
        assert_eq!(at(wire::StartFrom::Latest, 9).unwrap_err().field, "settings.start.offset");
        assert_eq!(start(Some(wire::GroupStart { from: 99, offset: 0 })).unwrap_err().field, "settings.start.from");
    }
}
