//! From flags, environment and file to settings the server may run with.

use crate::serve_flags::ServeFlags;
use anyhow::Context as _;
use std::ffi::OsString;
use std::path::PathBuf;
use weir_broker::config::{FileConfig, Overrides, Settings};

/// The environment variable that names the configuration file.
const CONFIG_ENV: &str = "WEIR_CONFIG";

/// The settings of this start. `lookup` finds an environment variable.
///
/// # Errors
/// All that is wrong with the environment or with the file, settings that contradict each other, an exposed address.
pub(crate) fn settings(flags: ServeFlags, lookup: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<Settings> {
    let environment = Overrides::from_environment(&lookup).map_err(|faults| {
        let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
        anyhow::anyhow!(lines.join("\n"))
    });
    let environment = environment.context("the environment")?;
    let named = lookup(CONFIG_ENV).filter(|path| !path.is_empty()).map(PathBuf::from);
    let file = flags.config.or(named).map_or_else(|| Ok(FileConfig::default()), |path| FileConfig::from_file(&path))?;
    let settings = Settings::resolve(flags.overrides, environment, file)?;
    settings.refuse_exposure()?;
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layer_goes_before_the_next_and_the_reasons_name_their_source() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weir.yaml");
        let text =
            "broker: { max_attempts: 7, fail_grace_ms: 1, drain_limit_ms: 2 }\ninternal_plane: [{ channel: orders }]\n";
        std::fs::write(&path, text).unwrap();
        let flags = || ServeFlags {
            config: Some(path.clone()),
            overrides: Overrides { drain_limit_ms: Some(4), ..Overrides::default() },
        };
        let environment = |name: &str| match name {
            "WEIR_FAIL_GRACE_MS" | "WEIR_DRAIN_LIMIT_MS" => Some(OsString::from("3")),
            _ => None,
        };
        let resolved = settings(flags(), environment).unwrap();
        assert_eq!((resolved.max_attempts, resolved.fail_grace_ms, resolved.drain_limit_ms), (7, 3, 4));
        assert_eq!(resolved.policies.len(), 1);
        assert_eq!(resolved.config_file.as_ref(), Some(&path));

        let by_variable = settings(ServeFlags::default(), |name| (name == CONFIG_ENV).then(|| path.clone().into()));
        assert_eq!(by_variable.unwrap().max_attempts, 7);

        let broken = |name: &str| (name == "WEIR_MAX_ATTEMPTS" || name == "WEIR_SYNC").then(|| OsString::from("often"));
        let text = format!("{:#}", settings(flags(), broken).unwrap_err());
        assert!(text.contains("WEIR_MAX_ATTEMPTS: expected") && text.contains("WEIR_SYNC: expected"), "{text}");

        std::fs::write(&path, "broker: { max_attempts: 0 }\nports: 1\n").unwrap();
        let text = format!("{:#}", settings(flags(), |_| None).unwrap_err());
        assert!(
            text.contains("weir.yaml:1:25: broker.max_attempts: ") && text.contains("weir.yaml:2:1: ports: "),
            "{text}"
        );

        std::fs::write(&path, "broker: { listen: 0.0.0.0:7447 }\n").unwrap();
        let text = format!("{:#}", settings(flags(), |_| None).unwrap_err());
        assert!(text.contains("listen 0.0.0.0:7447") && text.contains("--insecure"), "{text}");
    }
}
