//! The document: which sections there are, and where they may stand.

use super::broker_section;
use super::channel;
use super::contract;
use super::fault::Findings;
use super::file::FileConfig;
use super::node::Node;
use super::section::{Field, Section};

/// The section that a platform's description of its planes begins with.
pub(super) const PATTERNS: &str = "communication_patterns";
/// The channels.
pub(super) const INTERNAL_PLANE: &str = "internal_plane";
/// What the channels promise.
pub(super) const CONTRACT: &str = "contract";
/// The server's settings.
pub(super) const BROKER: &str = "broker";
/// Planes that are served by others.
pub(super) const OTHER_PLANES: [&str; 2] = ["capability_plane", "collaboration_plane"];

/// Reads a document.
pub(super) fn read(root: &Node, findings: &mut Findings) -> FileConfig {
    let mut config = FileConfig::default();
    // A file of comments is every default.
    if root.is_null() {
        return config;
    }
    let [capability, collaboration] = OTHER_PLANES;
    let at_root = [PATTERNS, INTERNAL_PLANE, CONTRACT, BROKER, capability, collaboration];
    let Some(top) = Section::open(root, "", &at_root, findings) else {
        return config;
    };
    let nested = top.field(PATTERNS).filter(|field| !field.node.is_null()).and_then(|field| {
        let in_patterns = [INTERNAL_PLANE, CONTRACT, capability, collaboration];
        Section::open(field.node, &field.path, &in_patterns, findings)
    });
    for plane in OTHER_PLANES {
        for field in [top.field(plane), nested.as_ref().and_then(|section| section.field(plane))].into_iter().flatten()
        {
            let message = "left alone: weir serves the internal plane; nothing in here has an effect on it";
            findings.note(field.key_at, &field.path, message);
        }
    }
    if let Some(field) = once(&top, nested.as_ref(), INTERNAL_PLANE, findings) {
        config.policies = channel::read_all(&field, findings);
    }
    if let Some(field) = once(&top, nested.as_ref(), CONTRACT, findings) {
        contract::check(&field, findings);
    }
    if let Some(field) = top.field(BROKER) {
        config.settings = broker_section::read(&field, findings);
    }
    config
}

/// A section that may stand at the root or among the patterns, and not in both places.
fn once<'n>(top: &Section<'n>, nested: Option<&Section<'n>>, name: &str, findings: &mut Findings) -> Option<Field<'n>> {
    match (top.field(name), nested.and_then(|section| section.field(name))) {
        (Some(at_root), Some(nested)) => {
            let (first, second) = if at_root.key_at < nested.key_at { (at_root, nested) } else { (nested, at_root) };
            let message = format!("given twice; the first stands in line {} as {}", first.key_at.line, first.path);
            findings.fault(second.key_at, &second.path, message);
            Some(first)
        }
        (at_root, nested) => at_root.or(nested),
    }
}
