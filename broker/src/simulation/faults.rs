//! Each call of a workload to its storage fails once, at every position.

use super::books::Books;
use super::comparison::{compare, finish};
use super::machine::Machine;
use super::story::Story;
use crate::broker::OpenError;
use std::io::ErrorKind;

const STEPS: u32 = 40;

#[derive(Clone, Copy, Debug)]
enum After {
    Kill,
    PowerCut,
}

/// One workload, whose `nth` call fails; how many calls there were.
async fn run(seed: u64, fault: Option<(u64, ErrorKind)>, after: After) -> u64 {
    let name = format!("seed {seed}, {fault:?}, then {after:?}");
    let machine = Machine::new(seed);
    let mut books = Books::default();
    if let Some((nth, kind)) = fault {
        machine.disk.fail_call(nth, kind);
    }
    match machine.open() {
        Ok(broker) => Story::new(seed, machine.clock.clone()).tell(&broker, &mut books, 1, STEPS).await,
        Err(OpenError::DataLoss(what)) => panic!("{name}: {what}"),
        Err(_) => {}
    }
    let calls = machine.disk.calls();
    match after {
        After::Kill => machine.disk.kill(),
        After::PowerCut => machine.disk.power_cut(),
    }
    books.life_ends();
    let broker = machine.open().unwrap_or_else(|error| panic!("{name}: a sound folder is refused: {error}"));
    compare(&broker, &mut books, &name).await;
    finish(&broker, &mut books, &machine.clock, &name).await;
    calls
}

async fn at_every_position(kind: ErrorKind, after: After) {
    let calls = run(7, None, after).await;
    assert!(calls > 60, "{calls} calls are no workload");
    // Threads share the disk, so the count differs a little from run to run.
    for nth in 0..calls + 5 {
        run(7, Some((nth, kind)), after).await;
    }
}

#[tokio::test]
async fn a_failed_call_at_any_position_loses_and_invents_nothing_when_the_process_dies() {
    at_every_position(ErrorKind::Other, After::Kill).await;
}

#[tokio::test]
async fn a_failed_call_at_any_position_loses_and_invents_nothing_when_power_is_cut() {
    at_every_position(ErrorKind::Other, After::PowerCut).await;
}

#[tokio::test]
async fn a_full_disk_at_any_position_loses_and_invents_nothing() {
    at_every_position(ErrorKind::StorageFull, After::PowerCut).await;
}
