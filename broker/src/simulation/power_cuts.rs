//! Crashes at random instants, two in a row: what was confirmed and what was shown is there.

use super::books::Books;
use super::comparison::{compare, finish};
use super::machine::Machine;
use super::story::Story;
use crate::broker::OpenError;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Pairs of crashes a seed.
const PAIRS: u64 = 2;
const STEPS: u32 = 40;

/// One seed. Panics with the promise that was broken.
pub(super) async fn run(seed: u64, change: impl Fn(&mut Machine)) {
    let mut machine = Machine::new(seed);
    change(&mut machine);
    let mut rng = StdRng::seed_from_u64(seed);
    let mut books = Books::default();
    machine.disk.set_forgets(rng.random_bool(0.7));
    for pair in 0..PAIRS {
        let name = format!("seed {seed}, pair {pair}");
        // The first crash comes in the middle of the work, the second while the broker starts or soon after.
        machine.disk.die_at_call(rng.random_range(10..250));
        if let Some(broker) = opened(&machine, &name) {
            Story::new(seed + pair, machine.clock.clone()).tell(&broker, &mut books, 2 * pair + 1, STEPS).await;
        }
        crash(&machine, &mut books, &mut rng);
        machine.disk.die_at_call(rng.random_range(0..40));
        if let Some(broker) = opened(&machine, &name) {
            Story::new(seed ^ pair, machine.clock.clone()).tell(&broker, &mut books, 2 * pair + 2, 5).await;
        }
        crash(&machine, &mut books, &mut rng);
        // Whatever a whole life after that shows survives a power cut that comes at once.
        for after in ["after two crashes", "after the power cut that followed"] {
            let name = format!("{name}, {after}");
            let broker = machine.open().unwrap_or_else(|error| panic!("{name}: a sound folder is refused: {error}"));
            compare(&broker, &mut books, &name).await;
            machine.disk.power_cut();
            books.life_ends();
        }
    }
    let name = format!("seed {seed}, at the end");
    let broker = machine.open().unwrap_or_else(|error| panic!("{name}: {error}"));
    finish(&broker, &mut books, &machine.clock, &name).await;
}

fn opened(machine: &Machine, name: &str) -> Option<crate::broker::Broker> {
    match machine.open() {
        Ok(broker) => Some(broker),
        Err(OpenError::DataLoss(what)) => panic!("{name}: a sound folder is refused: {what}"),
        Err(_) => None,
    }
}

fn crash(machine: &Machine, books: &mut Books, rng: &mut StdRng) {
    if rng.random_bool(0.7) {
        machine.disk.power_cut()
    } else {
        machine.disk.kill()
    }
    books.life_ends();
}

#[tokio::test]
async fn what_was_confirmed_or_shown_survives_two_crashes_in_a_row() {
    let seeds = if std::env::var_os("WEIR_PROVE").is_some() { 10_000 } else { 500 };
    for seed in 0..seeds {
        run(seed, |_| {}).await;
    }
}
