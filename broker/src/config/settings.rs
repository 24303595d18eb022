//! The server's settings as they hold: flags over the environment over the file over the defaults.

use super::address::clash;
use super::file::FileConfig;
use super::node::shown;
use super::overrides::Overrides;
use super::value::one_of;
use crate::model::limits::{ATTEMPTS_DEFAULT, SESSION_TIMEOUT_MS_DEFAULT};
use crate::model::policy::ChannelPolicy;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The defaults of the server's settings.
pub(super) mod default {
    use super::SyncMode;
    use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

    pub(crate) const DATA_DIR: &str = "weir-data";
    pub(crate) const LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7447));
    pub(crate) const HTTP_LISTEN: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7448));
    pub(crate) const INSECURE: bool = false;
    pub(crate) const SYNC: SyncMode = SyncMode::Always;
    pub(crate) const INTERVAL_MS: u64 = 100;
    pub(crate) const SEGMENT_MIB: u64 = 64;
    pub(crate) const CHECKPOINT_MIB: u64 = 256;
    pub(crate) const FAIL_GRACE_MS: u64 = 5_000;
    pub(crate) const DRAIN_LIMIT_MS: u64 = 20_000;
}

/// The word for when publishes are confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// After the sync.
    Always,
    /// At once; a sync follows within the interval.
    Interval,
}

impl SyncMode {
    pub(super) const TEXTS: &[&str] = &[Self::Always.text(), Self::Interval.text()];

    /// As it is written in the configuration.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Interval => "interval",
        }
    }

    pub(super) fn from_text(text: &str) -> Result<Self, String> {
        [Self::Always, Self::Interval]
            .into_iter()
            .find(|mode| mode.text() == text)
            .ok_or_else(|| format!("expected {}, found `{}`", one_of(Self::TEXTS), shown(text)))
    }
}

/// When publishes are confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syncing {
    /// After the sync.
    Always,
    /// At once; a sync follows at the latest after so many milliseconds.
    Interval {
        /// 1 to 1000 ms.
        millis: u64,
    },
}

/// Everything `weir serve` is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Folder that holds all data.
    pub data_dir: PathBuf,
    /// Address of the gRPC API.
    pub listen: SocketAddr,
    /// Address for metrics and health.
    pub http_listen: SocketAddr,
    /// Whether addresses that other machines reach may be served without credentials.
    pub insecure: bool,
    /// When publishes are confirmed.
    pub syncing: Syncing,
    /// Size of a journal file, in bytes.
    pub segment_bytes: u64,
    /// Journal between two checkpoints, in bytes.
    pub checkpoint_bytes: u64,
    /// How long reads are answered after the disk failed, in milliseconds.
    pub fail_grace_ms: u64,
    /// Silence after which a member is lost where its session names no time, in milliseconds.
    pub session_timeout_ms: u64,
    /// Attempts at a message where its group names no number.
    pub max_attempts: u32,
    /// How long a stop waits for members, in milliseconds.
    pub drain_limit_ms: u64,
    /// The configuration file, if there is one: what a reload reads again.
    pub config_file: Option<PathBuf>,
    /// The channel policies: those of the file, which then owns them; where it declares none, the built-in ones, which
    /// callers of the API may change.
    pub policies: Vec<ChannelPolicy>,
}

/// Settings that are each right and cannot hold together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsConflict {
    /// Both listeners ask for one address.
    #[error("listen and http_listen both ask for {0}: give one of them another port")]
    SameAddress(SocketAddr),
}

const MIB: u64 = 1024 * 1024;

impl Settings {
    /// Lays flags over the environment over the file (without one, `FileConfig::default()`) over the defaults.
    ///
    /// # Errors
    /// If settings of different layers contradict each other.
    pub fn resolve(flags: Overrides, environment: Overrides, file: FileConfig) -> Result<Self, SettingsConflict> {
        let given = flags.over(environment).over(file.settings);
        let policies = if file.policies.is_empty() { ChannelPolicy::built_in() } else { file.policies };
        let listen = given.listen.unwrap_or(default::LISTEN);
        let http_listen = given.http_listen.unwrap_or(default::HTTP_LISTEN);
        if clash(listen, http_listen) {
            return Err(SettingsConflict::SameAddress(listen));
        }
        let syncing = match given.sync.unwrap_or(default::SYNC) {
            SyncMode::Always => Syncing::Always,
            SyncMode::Interval => Syncing::Interval { millis: given.interval_ms.unwrap_or(default::INTERVAL_MS) },
        };
        Ok(Self {
            data_dir: given.data_dir.unwrap_or_else(|| PathBuf::from(default::DATA_DIR)),
            listen,
            http_listen,
            insecure: given.insecure.unwrap_or(default::INSECURE),
            syncing,
            segment_bytes: given.segment_mib.unwrap_or(default::SEGMENT_MIB).saturating_mul(MIB),
            checkpoint_bytes: given.checkpoint_mib.unwrap_or(default::CHECKPOINT_MIB).saturating_mul(MIB),
            fail_grace_ms: given.fail_grace_ms.unwrap_or(default::FAIL_GRACE_MS),
            session_timeout_ms: given.session_timeout_ms.unwrap_or(SESSION_TIMEOUT_MS_DEFAULT),
            max_attempts: given.max_attempts.map_or(ATTEMPTS_DEFAULT, |n| u32::try_from(n).unwrap_or(u32::MAX)),
            drain_limit_ms: given.drain_limit_ms.unwrap_or(default::DRAIN_LIMIT_MS),
            config_file: file.path,
            policies,
        })
    }
}
