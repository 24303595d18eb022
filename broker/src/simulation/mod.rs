//! The whole broker on storage that loses, under a seed, whatever real storage may lose.
//!
//! A [`Machine`](machine::Machine) has a disk, a state and a clock, and outlives the brokers that are opened on it. A
//! [`Story`](story::Story) publishes, fetches, begins, completes, settles and reads at random, and notes in the
//! [`Books`](books::Books), which know nothing of how weir works, what was confirmed and what was shown. After a crash
//! the books are compared with what a broker opened anew hands out.
//!
//! The order in which threads run is the system's, so a seed gives the same calls and faults but not to the letter the
//! same run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]

mod books;
mod comparison;
mod damage;
mod faults;
mod full_disk;
mod machine;
mod mutations;
mod power_cuts;
mod story;
