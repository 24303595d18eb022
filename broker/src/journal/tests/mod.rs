//! Tests of the room as a whole.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]

mod broken;
mod format;
mod lives;
mod mutations;
mod overwriting;
mod power_cuts;
mod recovering;
mod rig;
mod writing;

use rig::{Rig, Told};
