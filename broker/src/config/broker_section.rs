//! `broker:`, the server's settings in the file.

use super::address::clash;
use super::fault::Findings;
use super::overrides::Overrides;
use super::section::{Field, Section};
use super::setting::{Kind, SETTINGS, Setting};
use super::settings::SyncMode;

/// Reads the section.
pub(super) fn read(section: &Field<'_>, findings: &mut Findings) -> Overrides {
    let mut overrides = Overrides::default();
    // `broker:` with nothing under it is every default.
    if section.node.is_null() {
        return overrides;
    }
    let keys: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
    let Some(fields) = Section::open(section.node, &section.path, &keys, findings) else {
        return overrides;
    };
    for setting in SETTINGS {
        if let Some(field) = fields.field(setting.key) {
            put(setting, &field, &mut overrides, findings);
        }
    }
    check_together(&fields, &overrides, findings);
    overrides
}

fn put(setting: &Setting, field: &Field<'_>, overrides: &mut Overrides, findings: &mut Findings) {
    let takes = setting.takes();
    let text = match setting.kind {
        Kind::Count { .. } | Kind::Truth { .. } => field.plain(&takes, findings),
        Kind::Path { .. } | Kind::Address { .. } | Kind::Sync { .. } => field.text(&takes, findings),
    };
    if let Some(text) = text {
        field.told(setting.put(text, overrides), findings);
    }
}

fn check_together(fields: &Section<'_>, overrides: &Overrides, findings: &mut Findings) {
    if let (Some(field), Some(_)) = (fields.field("interval_ms"), overrides.interval_ms)
        && overrides.sync != Some(SyncMode::Interval)
    {
        let message = "contradiction: there is no interval without `sync: interval`";
        findings.fault(field.key_at, &field.path, message);
    }
    if let (Some(field), Some(listen), Some(http_listen)) =
        (fields.field("http_listen"), overrides.listen, overrides.http_listen)
        && clash(listen, http_listen)
    {
        field.fault(format!("contradiction: `listen` asks for {listen} too; give one of them another port"), findings);
    }
}
