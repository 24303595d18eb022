//! The server's settings, each declared once: key, meaning, unit, default, bounds, and where its value goes.

use super::address::address;
use super::overrides::Overrides;
use super::settings::{SyncMode, default};
use super::value;
use crate::model::limits::{
    ATTEMPTS_DEFAULT, ATTEMPTS_MAX, SESSION_TIMEOUT_MS_DEFAULT, SESSION_TIMEOUT_MS_MAX, SESSION_TIMEOUT_MS_MIN,
};
use std::net::SocketAddr;
use std::path::PathBuf;

/// A setting of the server. Its key stands under `broker:` in the file; its flag is the key with dashes.
#[derive(Debug)]
pub struct Setting {
    /// Its name in the file, such as `session_timeout_ms`.
    pub key: &'static str,
    /// Its flag without the leading dashes: the key with dashes inside.
    pub flag: &'static str,
    /// Its environment variable.
    pub env: &'static str,
    /// What it does.
    pub doc: &'static str,
    pub(super) kind: Kind,
}

/// What a setting takes, within which bounds, its default, and its place among the overrides.
#[derive(Debug)]
pub(super) enum Kind {
    Path { default: &'static str, place: Place<PathBuf> },
    Address { default: SocketAddr, place: Place<SocketAddr> },
    Truth { default: bool, place: Place<bool> },
    Sync { default: SyncMode, place: Place<SyncMode> },
    Count { default: u64, min: u64, max: u64, unit: &'static str, place: Place<u64> },
}

type Place<T> = fn(&mut Overrides) -> &mut Option<T>;

/// Longest path, in bytes.
pub(super) const PATH_BYTES_MAX: usize = 4096;

/// Every setting of the server.
pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "data_dir",
        flag: "data-dir",
        env: "WEIR_DATA_DIR",
        doc: "Folder that holds all data; made if it is missing. One server at a time uses it.",
        kind: Kind::Path { default: default::DATA_DIR, place: |to| &mut to.data_dir },
    },
    Setting {
        key: "listen",
        flag: "listen",
        env: "WEIR_LISTEN",
        doc: "Address of the gRPC API. Port 0 takes a free one.",
        kind: Kind::Address { default: default::LISTEN, place: |to| &mut to.listen },
    },
    Setting {
        key: "http_listen",
        flag: "http-listen",
        env: "WEIR_HTTP_LISTEN",
        doc: "Address for metrics and health over HTTP. Port 0 takes a free one.",
        kind: Kind::Address { default: default::HTTP_LISTEN, place: |to| &mut to.http_listen },
    },
    Setting {
        key: "insecure",
        flag: "insecure",
        env: "WEIR_INSECURE",
        doc: "Serve addresses other machines can reach without TLS and credentials: whoever reaches them may do everything.",
        kind: Kind::Truth { default: default::INSECURE, place: |to| &mut to.insecure },
    },
    Setting {
        key: "sync",
        flag: "sync",
        env: "WEIR_SYNC",
        doc: "When a publish is confirmed: `always` after its bytes are synced to disk; `interval` at once, synced every \
              interval_ms, and the reply says that it is not durable yet. All else is always confirmed after the sync.",
        kind: Kind::Sync { default: default::SYNC, place: |to| &mut to.sync },
    },
    Setting {
        key: "interval_ms",
        flag: "interval-ms",
        env: "WEIR_INTERVAL_MS",
        doc: "Longest time between two syncs where `sync` is `interval`: what a power cut may take of the publishes.",
        kind: Kind::Count {
            default: default::INTERVAL_MS,
            min: 1,
            max: 1_000,
            unit: "ms",
            place: |to| &mut to.interval_ms,
        },
    },
    Setting {
        key: "segment_mib",
        flag: "segment-mib",
        env: "WEIR_SEGMENT_MIB",
        doc: "Size of a journal file. Disk space comes back a file at a time; half a file has to hold the largest request.",
        kind: Kind::Count {
            default: default::SEGMENT_MIB,
            min: 40,
            max: 1_024,
            unit: "MiB",
            place: |to| &mut to.segment_mib,
        },
    },
    Setting {
        key: "checkpoint_mib",
        flag: "checkpoint-mib",
        env: "WEIR_CHECKPOINT_MIB",
        doc: "Journal written between two checkpoints of the state: more makes less work while running and more at a start.",
        kind: Kind::Count {
            default: default::CHECKPOINT_MIB,
            min: 1,
            max: 16_384,
            unit: "MiB",
            place: |to| &mut to.checkpoint_mib,
        },
    },
    Setting {
        key: "fail_grace_ms",
        flag: "fail-grace-ms",
        env: "WEIR_FAIL_GRACE_MS",
        doc: "After the disk failed, how long the server still answers reads and says why, before it ends with an error.",
        kind: Kind::Count {
            default: default::FAIL_GRACE_MS,
            min: 0,
            max: 600_000,
            unit: "ms",
            place: |to| &mut to.fail_grace_ms,
        },
    },
    Setting {
        key: "session_timeout_ms",
        flag: "session-timeout-ms",
        env: "WEIR_SESSION_TIMEOUT_MS",
        doc: "A group member not heard of for this long is lost, and its leases with it, where its session names no time.",
        kind: Kind::Count {
            default: SESSION_TIMEOUT_MS_DEFAULT,
            min: SESSION_TIMEOUT_MS_MIN,
            max: SESSION_TIMEOUT_MS_MAX,
            unit: "ms",
            place: |to| &mut to.session_timeout_ms,
        },
    },
    Setting {
        key: "max_attempts",
        flag: "max-attempts",
        env: "WEIR_MAX_ATTEMPTS",
        doc: "Attempts at a message, failed or lost, until it is parked, where its group names no number.",
        kind: Kind::Count {
            default: ATTEMPTS_DEFAULT as u64,
            min: 1,
            max: ATTEMPTS_MAX as u64,
            unit: "attempts",
            place: |to| &mut to.max_attempts,
        },
    },
    Setting {
        key: "drain_limit_ms",
        flag: "drain-limit-ms",
        env: "WEIR_DRAIN_LIMIT_MS",
        doc: "When asked to stop, how long the server waits for members to settle what they hold.",
        kind: Kind::Count {
            default: default::DRAIN_LIMIT_MS,
            min: 0,
            max: 3_600_000,
            unit: "ms",
            place: |to| &mut to.drain_limit_ms,
        },
    },
];

impl Setting {
    /// The setting of a key.
    #[must_use]
    pub fn of(key: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.key == key)
    }

    /// Reads a value and puts it into its place.
    ///
    /// # Errors
    /// What is wrong with the text and what would be right. `into` is as it was.
    pub fn put(&self, text: &str, into: &mut Overrides) -> Result<(), String> {
        match self.kind {
            Kind::Path { place, .. } => *place(into) = Some(path(text)?),
            Kind::Address { place, .. } => *place(into) = Some(address(text)?),
            Kind::Truth { place, .. } => *place(into) = Some(value::truth(text)?),
            Kind::Sync { place, .. } => *place(into) = Some(SyncMode::from_text(text)?),
            Kind::Count { min, max, place, .. } => *place(into) = Some(value::count(text, min, max)?),
        }
        Ok(())
    }

    /// What stands for its value in a help text.
    #[must_use]
    pub const fn placeholder(&self) -> &'static str {
        match self.kind {
            Kind::Path { .. } => "DIR",
            Kind::Address { .. } => "IP:PORT",
            Kind::Truth { .. } => "BOOL",
            Kind::Sync { .. } => "WHEN",
            Kind::Count { unit, .. } => unit,
        }
    }

    /// Whether it is on or off, so that its flag takes no value.
    #[must_use]
    pub const fn is_switch(&self) -> bool {
        matches!(self.kind, Kind::Truth { .. })
    }

    /// Its default, as it would be written.
    #[must_use]
    pub fn default_text(&self) -> String {
        match self.kind {
            Kind::Path { default, .. } => default.to_owned(),
            Kind::Address { default, .. } => default.to_string(),
            Kind::Truth { default, .. } => default.to_string(),
            Kind::Sync { default, .. } => default.text().to_owned(),
            Kind::Count { default, .. } => default.to_string(),
        }
    }

    /// What it takes, with unit and bounds: `1 to 1000 ms`.
    #[must_use]
    pub fn takes(&self) -> String {
        match self.kind {
            Kind::Path { .. } => "a path".to_owned(),
            Kind::Address { .. } => "an IP address and a port".to_owned(),
            Kind::Truth { .. } => value::one_of(&["true", "false"]),
            Kind::Sync { .. } => value::one_of(SyncMode::TEXTS),
            Kind::Count { min, max, unit, .. } => format!("{min} to {max} {unit}"),
        }
    }
}

fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() || text.len() > PATH_BYTES_MAX || text.contains('\0') {
        return Err(format!("expected a path of 1 to {PATH_BYTES_MAX} bytes"));
    }
    Ok(PathBuf::from(text))
}
