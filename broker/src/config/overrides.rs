//! What one layer - the flags, the environment, the file - says about the server's settings.

use super::setting::SETTINGS;
use super::settings::SyncMode;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The settings that one layer gives; what it leaves out is `None`. Every value here is within its bounds, which
/// [`Setting::put`](super::Setting::put) sees to. What each means stands in [`SETTINGS`] and [`Settings`](super::Settings).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each field is documented where it is declared, in SETTINGS")]
pub struct Overrides {
    pub data_dir: Option<PathBuf>,
    pub listen: Option<SocketAddr>,
    pub http_listen: Option<SocketAddr>,
    pub insecure: Option<bool>,
    pub sync: Option<SyncMode>,
    pub interval_ms: Option<u64>,
    pub segment_mib: Option<u64>,
    pub checkpoint_mib: Option<u64>,
    pub fail_grace_ms: Option<u64>,
    pub session_timeout_ms: Option<u64>,
    pub max_attempts: Option<u64>,
    pub drain_limit_ms: Option<u64>,
}

/// An environment variable that does not hold what its setting takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {message}")]
pub struct EnvironmentFault {
    /// The variable.
    pub name: &'static str,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Overrides {
    /// What the environment says. `lookup` finds a variable; an empty one counts as not set. Variables that begin with
    /// `WEIR_` and are no setting are passed over: orchestrators set such names for their own ends.
    ///
    /// # Errors
    /// Every variable that does not fit its setting.
    pub fn from_environment(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Self, Vec<EnvironmentFault>> {
        let mut overrides = Self::default();
        let mut faults = Vec::new();
        for setting in SETTINGS {
            let Some(value) = lookup(setting.env).filter(|value| !value.is_empty()) else {
                continue;
            };
            let put = match value.to_str() {
                Some(text) => setting.put(text, &mut overrides),
                None => Err("not valid UTF-8".to_owned()),
            };
            if let Err(message) = put {
                faults.push(EnvironmentFault { name: setting.env, message });
            }
        }
        if faults.is_empty() { Ok(overrides) } else { Err(faults) }
    }

    /// These settings; where they say nothing, those of `below`.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            data_dir: self.data_dir.or(below.data_dir),
            listen: self.listen.or(below.listen),
            http_listen: self.http_listen.or(below.http_listen),
            insecure: self.insecure.or(below.insecure),
            sync: self.sync.or(below.sync),
            interval_ms: self.interval_ms.or(below.interval_ms),
            segment_mib: self.segment_mib.or(below.segment_mib),
            checkpoint_mib: self.checkpoint_mib.or(below.checkpoint_mib),
            fail_grace_ms: self.fail_grace_ms.or(below.fail_grace_ms),
            session_timeout_ms: self.session_timeout_ms.or(below.session_timeout_ms),
            max_attempts: self.max_attempts.or(below.max_attempts),
            drain_limit_ms: self.drain_limit_ms.or(below.drain_limit_ms),
        }
    }
}
