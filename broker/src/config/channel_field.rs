//! The fields of a channel in the file, each declared once: meaning, unit, default, bounds.

use super::value::one_of;
use crate::model::limits::{PAYLOAD_BYTES_DEFAULT, PAYLOAD_BYTES_MAX};
use crate::model::policy::{DEPTH_ALERT_DEFAULT, HOUR_MS, KeyTemplate, REMEMBER_MS_DEFAULT, RETENTION_MS_DEFAULT};

/// A field of an entry of `internal_plane`.
#[derive(Debug)]
pub struct ChannelField {
    /// Its name.
    pub key: &'static str,
    /// What it does.
    pub doc: &'static str,
    pub(super) takes: Takes,
}

/// What a field takes, and its default.
#[derive(Debug)]
pub(super) enum Takes {
    /// A policy's name. Has no default.
    Name,
    /// [`SEMANTIC`].
    Semantic,
    /// One of [`TEMPLATES`].
    Template,
    /// A whole number within bounds, both included; without a default it is off.
    Count { default: Option<u64>, min: u64, max: u64, unit: &'static str, place: Place<u64> },
    /// A truth value.
    Truth { default: bool, place: Place<bool> },
    /// [`DEPTH_ALERT_PREFIX`] and a whole number from 1 to [`DEPTH_MAX`].
    DepthAlert,
    /// [`PAIR`].
    DedupOn,
}

type Place<T> = fn(&mut Draft) -> &mut Option<T>;

/// A channel as far as it is written.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) name: Option<String>,
    pub(super) key: Option<KeyTemplate>,
    pub(super) retention_h: Option<u64>,
    pub(super) replay: Option<bool>,
    pub(super) depth_alert: Option<u64>,
    pub(super) max_depth: Option<u64>,
    pub(super) require_artifact: Option<bool>,
    pub(super) remember_h: Option<u64>,
    pub(super) payload_bytes_max: Option<u64>,
}

/// The key templates, the default first.
pub(super) const TEMPLATES: [KeyTemplate; 2] = [KeyTemplate::TenantAgent, KeyTemplate::Tenant];

/// The only semantic weir has.
pub(super) const SEMANTIC: &str = "S4";
/// What stands before the number in `backpressure`.
pub(super) const DEPTH_ALERT_PREFIX: &str = "depth_alert_";
/// The fields that duplicates are found by.
pub(super) const PAIR: [&str; 2] = ["execution_id", "final_state"];
/// Longest time that can be given: ten years of hours.
pub(super) const HOURS_MAX: u64 = 10 * 365 * 24;
/// Greatest depth that can be named.
pub(super) const DEPTH_MAX: u64 = 1_000_000_000;

/// Every field of a channel.
pub const CHANNEL_FIELDS: &[ChannelField] = &[
    ChannelField { key: "channel", doc: "Name of the policy, unique in the file.", takes: Takes::Name },
    ChannelField {
        key: "semantic",
        doc: "Kind of communication; S4, the durable channel, is what a broker does.",
        takes: Takes::Semantic,
    },
    ChannelField {
        key: "key",
        doc: "What the policy has one channel for: each agent of a tenant, or each tenant. Cannot change once there are \
              channels.",
        takes: Takes::Template,
    },
    ChannelField {
        key: "retention_h",
        doc: "How long messages are kept.",
        takes: Takes::Count {
            default: Some(RETENTION_MS_DEFAULT / HOUR_MS),
            min: 1,
            max: HOURS_MAX,
            unit: "h",
            place: |to| &mut to.retention_h,
        },
    },
    ChannelField {
        key: "replay",
        doc: "Whether the channels may be replayed.",
        takes: Takes::Truth { default: true, place: |to| &mut to.replay },
    },
    ChannelField {
        key: "backpressure",
        doc: "From this depth on publishers are told that the channel is deep; nothing is refused.",
        takes: Takes::DepthAlert,
    },
    ChannelField {
        key: "dedup_on",
        doc: "What makes a message a repeat of another. The pair of execution and final state always does.",
        takes: Takes::DedupOn,
    },
    ChannelField {
        key: "max_depth",
        doc: "At this depth publishes are refused; off by default. Not below the depth in `backpressure`.",
        takes: Takes::Count { default: None, min: 1, max: DEPTH_MAX, unit: "messages", place: |to| &mut to.max_depth },
    },
    ChannelField {
        key: "require_artifact",
        doc: "Whether a COMPLETED needs an artifact_ref.",
        takes: Takes::Truth { default: false, place: |to| &mut to.require_artifact },
    },
    ChannelField {
        key: "remember_h",
        doc: "How long executions and their final states are remembered after the last word of them, so that late \
              repeats are known. At least the retention, which is the default where it is longer.",
        takes: Takes::Count {
            default: Some(REMEMBER_MS_DEFAULT / HOUR_MS),
            min: 1,
            max: HOURS_MAX,
            unit: "h",
            place: |to| &mut to.remember_h,
        },
    },
    ChannelField {
        key: "payload_bytes_max",
        doc: "Most bytes of a payload; larger bodies belong into artifact_ref.",
        takes: Takes::Count {
            default: Some(PAYLOAD_BYTES_DEFAULT),
            min: 1,
            max: PAYLOAD_BYTES_MAX,
            unit: "bytes",
            place: |to| &mut to.payload_bytes_max,
        },
    },
];

impl ChannelField {
    /// Its default, as it would be written; nothing where it has to be given, or is off without.
    #[must_use]
    pub fn default_text(&self) -> Option<String> {
        match self.takes {
            Takes::Name => None,
            Takes::Semantic => Some(SEMANTIC.to_owned()),
            Takes::Template => TEMPLATES.first().map(|template| format!("\"{}\"", template.text())),
            Takes::Count { default, .. } => default.map(|number| number.to_string()),
            Takes::Truth { default, .. } => Some(default.to_string()),
            Takes::DepthAlert => Some(format!("{DEPTH_ALERT_PREFIX}{DEPTH_ALERT_DEFAULT}")),
            Takes::DedupOn => Some(format!("[{}]", PAIR.join(", "))),
        }
    }

    /// What it takes, with unit and bounds: `1 to 87600 h`.
    #[must_use]
    pub fn takes(&self) -> String {
        match self.takes {
            Takes::Name => "1 to 64 of a-z, 0-9, _ and -".to_owned(),
            Takes::Semantic => one_of(&[SEMANTIC]),
            Takes::Template => one_of(&TEMPLATES.map(KeyTemplate::text)),
            Takes::Count { min, max, unit, .. } => format!("{min} to {max} {unit}"),
            Takes::Truth { .. } => one_of(&["true", "false"]),
            Takes::DepthAlert => format!("`{DEPTH_ALERT_PREFIX}N`, N from 1 to {DEPTH_MAX}"),
            Takes::DedupOn => format!("`[{}]`", PAIR.join(", ")),
        }
    }
}
