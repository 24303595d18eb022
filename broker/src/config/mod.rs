//! The configuration: the YAML file that declares channels, and the server's settings.
//!
//! ```yaml
//! communication_patterns:
//!   internal_plane:            # may also stand at the root
//!     - { channel: task_events, semantic: S4, key: "{tenant}:{agent_id}", retention_h: 24 }
//!   contract:                  # what the channels promise; weir checks that it is what it keeps
//!     ordering: same_task_ordered
//! broker:                      # settings of the server
//!   listen: 127.0.0.1:7447
//! ```
//!
//! A file is read in three steps. `parse` turns text into a tree in which every node knows its line and column;
//! `section`, `channel`, `contract` and `broker_section` walk that tree and gather *all* faults; what is left is a
//! [`FileConfig`]. [`Settings::resolve`] then lays flags over the environment over the file over the defaults.
//!
//! What may be written is declared once: the server's settings in [`SETTINGS`], a channel's fields in
//! [`CHANNEL_FIELDS`]. Flags, environment variables, the file, its [`schema`] and its [`reference`] follow from there.

mod address;
mod broker_section;
mod channel;
mod channel_field;
mod contract;
mod exposure;
mod fault;
mod file;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod node;
mod overrides;
mod parse;
mod planes;
mod reference;
mod schema;
mod section;
mod setting;
mod settings;
mod suggest;
mod value;

pub use channel_field::{CHANNEL_FIELDS, ChannelField};
pub use exposure::ExposedAddress;
pub use fault::{ConfigFault, ConfigNote};
pub use file::{FileConfig, FileError};
pub use overrides::{EnvironmentFault, Overrides};
pub use reference::reference;
pub use schema::schema;
pub use setting::{SETTINGS, Setting};
pub use settings::{Settings, SettingsConflict, SyncMode, Syncing};

#[cfg(test)]
mod tests;
