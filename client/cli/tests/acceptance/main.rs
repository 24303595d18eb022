//! Acceptance: `weir` and `weirctl` as processes, through gRPC, through kills and restarts. One file a subject; a test
//! that shows a scenario has its number in front.
//!
//! Both binaries come from the same target folder; `weir` has to have the test clock:
//! `cargo build --workspace --features weir-broker/test-clock`. `WEIR_PROVE=1` runs larger numbers, `WEIR_SEED` repeats
//! the random instants of a run.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say where")]
#![allow(clippy::disallowed_methods, reason = "real processes take real time; every wait is bounded")]

mod airline;
mod broken_disk;
mod confirmed;
mod draining;
mod executions;
mod fetching;
mod groups;
mod names;
mod numbers;
mod pairs;
mod ports;
mod process;
mod sizes;
