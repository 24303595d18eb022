//! What the broker tells of itself: metrics and logs.
//!
//! `catalogue` names every metric. Counters of calls go through the `metrics` facade (`metrics`), which costs nothing
//! unless a recorder is installed, and only the server binary installs one ([`recorder`]). What is known of groups and the
//! broker as a whole is rendered from one snapshot of the engine (`exposition`): all numbers of a scrape are of one
//! moment, and a group that is removed takes its series along.

mod catalogue;
pub(crate) mod causes;
pub(crate) mod exposition;
pub mod logging;
pub(crate) mod metrics;
mod process;
pub mod recorder;
mod text;
