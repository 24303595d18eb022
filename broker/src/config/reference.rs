//! The reference of the configuration, as Markdown, from the declarations it is read by.

use super::channel_field::{CHANNEL_FIELDS, Takes};
use super::setting::SETTINGS;

const HEAD: &str = "\
# Configuration

Generated from the declarations in `src/config`; a test finds drift. Channels stand under `internal_plane` (in
`communication_patterns` or at the root), the server's settings under `broker`. `weir check-config FILE` finds all
faults of a file at once, `weir config-schema` prints its JSON schema. Flags come before environment variables, those
before the file, the file before the defaults.
";

/// The reference of the configuration file, the flags and the environment variables.
#[must_use]
pub fn reference() -> String {
    let mut out = HEAD.to_owned();
    out.push_str("\n## Channels\n\n| field | takes | default | meaning |\n|---|---|---|---|\n");
    for field in CHANNEL_FIELDS {
        let default = match (field.default_text(), &field.takes) {
            (Some(text), _) => format!("`{text}`"),
            (None, Takes::Name) => "required".to_owned(),
            (None, _) => "off".to_owned(),
        };
        out.push_str(&format!("| `{}` | {} | {default} | {} |\n", field.key, field.takes(), field.doc));
    }
    out.push_str("\n## Server\n\n| setting | flag, variable | takes | default | meaning |\n|---|---|---|---|---|\n");
    for setting in SETTINGS {
        out.push_str(&format!(
            "| `{}` | `--{}`, `{}` | {} | `{}` | {} |\n",
            setting.key,
            setting.flag,
            setting.env,
            setting.takes(),
            setting.default_text(),
            setting.doc
        ));
    }
    out
}
