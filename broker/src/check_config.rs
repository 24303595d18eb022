//! `weir check-config`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use weir_broker::config::{FileConfig, FileError, Overrides, Settings};
use weir_broker::model::policy::{ChannelPolicy, HOUR_MS, PolicyOwner};

/// Checks a file. Faults go to `out`, a line each, and the exit code is 1; otherwise `out` gets the policies in force.
/// What is worth knowing besides goes to `aside`.
///
/// # Errors
/// If the file cannot be read, or the answer not be written.
pub(crate) fn run(path: &Path, out: &mut impl Write, aside: &mut impl Write) -> anyhow::Result<ExitCode> {
    let config = match FileConfig::from_file(path) {
        Ok(config) => config,
        Err(faulty @ FileError::Faulty { .. }) => {
            writeln!(out, "{faulty}")?;
            return Ok(ExitCode::FAILURE);
        }
        Err(unreadable @ FileError::Unreadable { .. }) => return Err(unreadable.into()),
    };
    for note in &config.notes {
        writeln!(aside, "{}:{note}", path.display())?;
    }
    let settings = match Settings::resolve(Overrides::default(), Overrides::default(), config) {
        Ok(settings) => settings,
        Err(conflict) => {
            writeln!(out, "{}: {conflict}", path.display())?;
            return Ok(ExitCode::FAILURE);
        }
    };
    if let Err(exposed) = settings.refuse_exposure() {
        writeln!(aside, "{}: as it stands, `weir serve` will refuse to start: {exposed}", path.display())?;
    }
    for policy in &settings.policies {
        writeln!(out, "{}", summary(policy))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn summary(policy: &ChannelPolicy) -> String {
    let replay = if policy.replay { "replay" } else { "no replay" };
    let max_depth = policy.max_depth.map_or_else(|| "no limit".to_owned(), |depth| format!("refused at {depth}"));
    let artifact = if policy.require_artifact { ", COMPLETED needs an artifact" } else { "" };
    let owner = match policy.owner {
        PolicyOwner::File => "",
        PolicyOwner::Api => " (built in)",
    };
    format!(
        "{}{owner}: key {}, kept {} h, {replay}, alert at {}, {max_depth}, remembered {} h, payload to {} bytes{artifact}",
        policy.name,
        policy.key.text(),
        policy.retention_ms / HOUR_MS,
        policy.depth_alert,
        policy.remember_ms / HOUR_MS,
        policy.payload_bytes_max,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> (ExitCode, String, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.yaml");
        std::fs::write(&path, text).unwrap();
        let (mut out, mut aside) = (Vec::new(), Vec::new());
        let code = run(&path, &mut out, &mut aside).unwrap();
        let folder = format!("{}/", folder.path().display());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&folder, "");
        (code, text(out), text(aside))
    }

    #[test]
    fn faults_are_printed_a_line_each_with_their_place() {
        let (code, out, _) =
            check("internal_plane:\n  - { channel: a, retention: 1 }\n  - { channel: a, replay: 1 }\n");
        assert_eq!(code, ExitCode::FAILURE);
        assert_eq!(
            out,
            "c.yaml:2:19: internal_plane[0].retention: unknown field; did you mean `retention_h`?\n\
             c.yaml:3:16: internal_plane[1].channel: `a` is declared twice; the first stands in line 2\n\
             c.yaml:3:27: internal_plane[1].replay: expected true or false, found `1`\n"
        );
    }

    #[test]
    fn a_good_file_is_summed_up_and_what_is_left_alone_is_said_aside() {
        let text = "internal_plane: [{ channel: a, max_depth: 20000 }]\ncapability_plane: { any: thing }\n";
        let (code, out, aside) = check(text);
        assert_eq!(code, ExitCode::SUCCESS);
        assert_eq!(
            out,
            "a: key {tenant}:{agent_id}, kept 24 h, replay, alert at 10000, refused at 20000, remembered 168 h, payload \
             to 1048576 bytes\n"
        );
        assert!(aside.starts_with("c.yaml:2:1: capability_plane: left alone"), "{aside}");
    }

    #[test]
    fn a_file_without_channels_has_the_built_in_ones_and_an_exposed_address_is_foretold() {
        let (code, out, aside) = check("broker: { listen: 0.0.0.0:7447 }");
        assert_eq!(code, ExitCode::SUCCESS);
        assert!(out.starts_with("task_events (built in): ") && out.contains("\nevents (built in): "), "{out}");
        assert!(aside.contains("will refuse to start: listen 0.0.0.0:7447"), "{aside}");
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error_with_its_cause() {
        let error = run(Path::new("/nowhere/c.yaml"), &mut Vec::new(), &mut Vec::new()).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.starts_with("/nowhere/c.yaml: cannot be read: "), "{text}");
    }
}
