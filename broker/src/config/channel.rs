//! `internal_plane:`, the channels a file declares.

use super::channel_field::{CHANNEL_FIELDS, DEPTH_ALERT_PREFIX, DEPTH_MAX, Draft, PAIR, SEMANTIC, TEMPLATES, Takes};
use super::fault::Findings;
use super::node::{Node, Value, shown};
use super::section::{Field, Section};
use super::value;
use crate::model::names::check_policy;
use crate::model::policy::{ChannelPolicy, HOUR_MS, KeyTemplate, PolicyOwner};
use std::collections::BTreeMap;

/// Most channels one file declares.
pub(super) const CHANNELS_MAX: usize = 1_000;

/// The policy weir itself keeps; nobody else declares it.
const UNKNOWN_EXECUTIONS: &str = "unknown_executions";

/// Reads the list of channels: one policy for each entry without a fault.
pub(super) fn read_all(plane: &Field<'_>, findings: &mut Findings) -> Vec<ChannelPolicy> {
    let Some(entries) = plane.list("a list of channels, each `- { channel: name, ... }`", findings) else {
        return Vec::new();
    };
    if entries.is_empty() {
        plane.fault("declares no channel; leave it out to have `task_events` and `events`", findings);
    }
    if entries.len() > CHANNELS_MAX {
        plane.fault(format!("declares {} channels; at most {CHANNELS_MAX}", entries.len()), findings);
        return Vec::new();
    }
    let mut first_lines: BTreeMap<String, usize> = BTreeMap::new();
    let mut policies = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let path = format!("{}[{index}]", plane.path);
        policies.extend(read_one(entry, &path, &mut first_lines, findings));
    }
    policies
}

fn read_one(
    entry: &Node,
    path: &str,
    first_lines: &mut BTreeMap<String, usize>,
    findings: &mut Findings,
) -> Option<ChannelPolicy> {
    let faults_before = findings.fault_count();
    let keys: Vec<&str> = CHANNEL_FIELDS.iter().map(|field| field.key).collect();
    let fields = Section::open(entry, path, &keys, findings)?;
    let mut draft = Draft::default();
    for declared in CHANNEL_FIELDS {
        match fields.field(declared.key) {
            Some(field) => read_field(&declared.takes, &field, &mut draft, findings),
            None if matches!(declared.takes, Takes::Name) => {
                findings.fault(entry.at, path, format!("`{}` is missing: every channel has a name", declared.key));
            }
            None => {}
        }
    }
    if let (Some(name), Some(field)) = (&draft.name, fields.field("channel")) {
        match first_lines.get(name) {
            Some(line) => field.fault(format!("`{name}` is declared twice; the first stands in line {line}"), findings),
            None => {
                first_lines.insert(name.clone(), field.node.at.line);
            }
        }
    }
    check_together(&fields, &draft, findings);
    let policy = policy(draft)?;
    // The model's own rules come last: what the rules above let through has to satisfy them too.
    if findings.fault_count() == faults_before
        && let Err(refusal) = policy.validate()
    {
        findings.fault(entry.at, path, refusal.to_string());
    }
    Some(policy)
}

fn read_field(takes: &Takes, field: &Field<'_>, draft: &mut Draft, findings: &mut Findings) {
    match takes {
        Takes::Name => draft.name = name(field, findings),
        Takes::Semantic => check_semantic(field, findings),
        Takes::Template => draft.key = template(field, findings),
        Takes::Count { min, max, place, .. } => *place(draft) = field.count(*min, *max, findings),
        Takes::Truth { place, .. } => *place(draft) = field.truth(findings),
        Takes::DepthAlert => draft.depth_alert = depth_alert(field, findings),
        Takes::DedupOn => check_dedup(field, findings),
    }
}

fn name(field: &Field<'_>, findings: &mut Findings) -> Option<String> {
    let text = field.text("a name", findings)?;
    if text == UNKNOWN_EXECUTIONS {
        field.fault("weir keeps this one itself; it cannot be declared", findings);
        return None;
    }
    if check_policy("channel", text).is_err() {
        field.fault(format!("a name is 1 to 64 of a-z, 0-9, _ and -, not `{}`", shown(text)), findings);
        return None;
    }
    Some(text.to_owned())
}

fn check_semantic(field: &Field<'_>, findings: &mut Findings) {
    let Some(text) = field.text(&format!("`{SEMANTIC}`"), findings) else {
        return;
    };
    let is = match text {
        SEMANTIC => return,
        "S1" => "S1 (request-response) is a direct call between two components and no broker's work".to_owned(),
        "S2" => "S2 (stream) is a connection between two components and no broker's work".to_owned(),
        "S3" => "S3 (task handle) belongs to the component that runs the task and is no broker's work".to_owned(),
        other => format!("`{}` is no semantic that weir knows", shown(other)),
    };
    field.fault(format!("{is}; weir keeps S4, durable channels"), findings);
}

fn template(field: &Field<'_>, findings: &mut Findings) -> Option<KeyTemplate> {
    let [agents, tenants] = TEMPLATES.map(KeyTemplate::text);
    let wanted = format!("a template in quotes, \"{agents}\" or \"{tenants}\"");
    let text = field.text(&wanted, findings)?;
    let known = TEMPLATES.into_iter().find(|template| template.text() == text);
    if known.is_none() {
        let reason = if !text.contains("{tenant}") {
            "has no {tenant}: every channel belongs to one tenant, so that a tenant sees and slows down only itself"
        } else if text.contains("{task_id}") {
            "has a {task_id}: a task needs no channel of its own, its messages are in order within the agent's channel"
        } else {
            "is none that weir knows"
        };
        field.fault(format!("`{}` {reason}; expected {wanted}", shown(text)), findings);
    }
    known
}

fn depth_alert(field: &Field<'_>, findings: &mut Findings) -> Option<u64> {
    let wanted = format!("`{DEPTH_ALERT_PREFIX}N`, such as {DEPTH_ALERT_PREFIX}10000");
    let text = field.text(&wanted, findings)?;
    match text.strip_prefix(DEPTH_ALERT_PREFIX) {
        Some(number) => field.told(value::count(number, 1, DEPTH_MAX), findings),
        None => {
            field.fault(format!("expected {wanted}, found `{}`", shown(text)), findings);
            None
        }
    }
}

fn check_dedup(field: &Field<'_>, findings: &mut Findings) {
    let pair = PAIR.join(", ");
    let Some(items) = field.list(&format!("the list [{pair}]"), findings) else {
        return;
    };
    let mut words: Vec<&str> = Vec::new();
    for item in items {
        match &item.value {
            Value::Scalar { text, .. } => words.push(text),
            Value::Refused => return,
            Value::List(_) | Value::Map(_) => {
                findings.fault(item.at, &field.path, format!("expected a field's name, found {}", item.kind()));
                return;
            }
        }
    }
    words.sort_unstable();
    if words != PAIR {
        let message = format!(
            "weir finds repeats by [{pair}] only for now: leave dedup_on out or write exactly that; a repeated \
             message_id within a task is found besides"
        );
        field.fault(message, findings);
    }
}

/// Settings that are each right and cannot hold together. Each is told where the one that has to give way stands.
fn check_together(fields: &Section<'_>, draft: &Draft, findings: &mut Findings) {
    let defaults = ChannelPolicy::named("");
    let retention_h = draft.retention_h.unwrap_or(defaults.retention_ms / HOUR_MS);
    if let (Some(remember_h), Some(field)) = (draft.remember_h, fields.field("remember_h"))
        && remember_h < retention_h
    {
        let message = format!(
            "contradiction: {remember_h} h is less than the retention of {retention_h} h, so a repeat of a message that \
             is still there would not be known"
        );
        field.fault(message, findings);
    }
    if let (Some(max_depth), Some(alert), Some(field)) = (draft.max_depth, draft.depth_alert, fields.field("max_depth"))
        && max_depth < alert
    {
        let message =
            format!("contradiction: publishes would be refused at {max_depth}, before the alert at {alert} is given");
        field.fault(message, findings);
    }
}

/// The policy of a channel that has a name; what is not written is at its default.
fn policy(draft: Draft) -> Option<ChannelPolicy> {
    let defaults = ChannelPolicy::named(draft.name?);
    let hours = |written: Option<u64>, default: u64| written.map_or(default, |hours| hours.saturating_mul(HOUR_MS));
    let retention_ms = hours(draft.retention_h, defaults.retention_ms);
    Some(ChannelPolicy {
        key: draft.key.unwrap_or(defaults.key),
        retention_ms,
        replay: draft.replay.unwrap_or(defaults.replay),
        depth_alert: draft.depth_alert.unwrap_or(defaults.depth_alert),
        max_depth: draft.max_depth.or(defaults.max_depth),
        require_artifact: draft.require_artifact.unwrap_or(defaults.require_artifact),
        remember_ms: hours(draft.remember_h, defaults.remember_ms.max(retention_ms)),
        payload_bytes_max: draft.payload_bytes_max.unwrap_or(defaults.payload_bytes_max),
        owner: PolicyOwner::File,
        ..defaults
    })
}
