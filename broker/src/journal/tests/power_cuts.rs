//! Crashes at random instants, many seeds: what was confirmed is there, in order, without a hole.

use super::rig::{published, submission};
use super::{Rig, Told};
use crate::fs::sim::SimDisk;
use crate::journal::SyncMode;
use crate::journal::error::OpenError;
use crate::model::Lsn;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// Lives of the broker a seed.
const LIVES: u32 = 6;

#[derive(Clone, Copy)]
struct Options {
    sync: SyncMode,
    spares: usize,
    /// How many submissions are publishes that only ask for the write.
    early: f64,
    /// How often the machine goes down with the process.
    power: f64,
}

/// Runs one seed: each life opens, submits in bursts and dies in some call, sometimes while it recovers.
fn run(seed: u64, options: Options) {
    let disk = SimDisk::new(seed);
    let mut rng = StdRng::seed_from_u64(seed ^ 0x5EED);
    let mut confirmed = Lsn(0);
    let mut submitted = Lsn(0);
    for life in 0..LIVES {
        let mut rig = Rig::new(disk.process(), Path::new("/data"));
        (rig.config.sync, rig.config.spares) = (options.sync, options.spares);
        let dies_early = rng.random_bool(0.3);
        disk.die_at_call(rng.random_range(0..if dies_early { 60 } else { 600 }));
        if rng.random_bool(0.3) {
            disk.fail_call(rng.random_range(0..300), ErrorKind::Other);
        }
        match rig.recover() {
            Ok((journal, last)) => {
                assert!(last >= confirmed, "seed {seed}, life {life}: {confirmed} was confirmed, {last} is there");
                assert!(last <= submitted, "seed {seed}, life {life}: {submitted} was submitted, {last} is there");
                // What recovery has shown counts as confirmed.
                confirmed = last;
                submitted = last;
                let told = Told::default();
                let (early, mut count) = (Told::default(), 0);
                while journal.closed().is_none() && submitted.get() - last.get() < 300 {
                    let burst = rng.random_range(1..8);
                    for _ in 0..burst {
                        submitted = submitted.next();
                        if rng.random_bool(options.early) {
                            journal.submit(published(submitted, &early));
                        } else {
                            journal.submit(submission(submitted, &told));
                            count += 1;
                        }
                    }
                    if rng.random_bool(0.7) {
                        told.first(count);
                    }
                }
                if rng.random_bool(0.2) {
                    disk.kill();
                }
                drop(journal);
                let told = told.all();
                assert!(told.is_sorted(), "seed {seed}, life {life}: told out of order");
                assert!(told.is_sorted_by_key(|(_, durable)| !durable), "seed {seed}, life {life}: a hole");
                confirmed = told.iter().rfind(|(_, durable)| *durable).map_or(confirmed, |(lsn, _)| *lsn);
            }
            Err(OpenError::Io { .. }) => {}
            Err(refused) => panic!("seed {seed}, life {life}: {refused}"),
        }
        if rng.random_bool(options.power) { disk.power_cut() } else { disk.kill() }
    }
}

#[test]
fn what_was_confirmed_survives_power_cuts() {
    let options = Options { sync: SyncMode::Always, spares: 0, early: 0.0, power: 1.0 };
    (0..150).for_each(|seed| run(seed, options));
}

#[test]
fn what_was_confirmed_survives_deaths_and_power_cuts_in_turn_with_a_helper_at_work() {
    let options = Options { sync: SyncMode::Always, spares: 2, early: 0.0, power: 0.5 };
    (1000..1100).for_each(|seed| run(seed, options));
}

#[test]
fn with_an_interval_what_waited_for_the_sync_survives_too() {
    let options = Options { sync: SyncMode::Interval(Duration::from_millis(3)), spares: 0, early: 0.9, power: 0.8 };
    (2000..2100).for_each(|seed| run(seed, options));
}
