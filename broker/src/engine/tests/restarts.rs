//! One seed, many verbs, crashes at any step: an engine loaded from checkpoint and journal equals the running one in all
//! that must survive, order holds, and the books balance.

use super::super::DeliveryMeta;
use super::harness::*;
use crate::model::{FinalState, Outcome, SessionRef};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::collections::HashMap;

/// What a group must show the same before and after a crash.
fn picture(world: &mut World, group: &str) -> String {
    let info = world.audit(group).info;
    format!(
        "{:?} waiting={} delayed={} in_flight={} held={} parked={}",
        info.counts, info.waiting, info.delayed, info.in_flight, info.held, info.parked
    )
}

fn run(seed: u64) -> String {
    let mut rng = SmallRng::seed_from_u64(seed);
    let limits = super::super::CacheLimits { channels: 4, executions: 4, heads: 4 };
    let mut world = World::with_limits(limits);
    world.create(crate::model::GroupSpec { executes: false, max_attempts: 3, ..spec("h") });
    let mut held: HashMap<(&str, u128), Vec<DeliveryMeta>> = HashMap::new();
    let mut settled: HashMap<(&str, String), u64> = HashMap::new();
    let mut id = 0;
    for _ in 0..120 {
        let group = if rng.random_bool(0.5) { "g" } else { "h" };
        let who = u128::from(rng.random_range(1..4u32));
        let member = SessionRef { timeout_ms: 5_000, ..session_of(group, who) };
        let task = format!("t{}", rng.random_range(0..4u32));
        match rng.random_range(0..12u32) {
            0..=2 => {
                id += 1;
                let draft = match rng.random_range(0..4u32) {
                    0 => request(&task, &format!("x{}", rng.random_range(0..6u32)))
                        .with(|m| m.message_id = format!("{id}")),
                    1 => report(
                        &task,
                        &format!("{id}"),
                        &format!("x{}", rng.random_range(0..6u32)),
                        FinalState::Completed,
                    ),
                    2 => event(&task, &format!("{id}")).with(|m| m.ttl_ms = 3_000),
                    _ => event(&task, &format!("{id}")),
                };
                world.publish(vec![draft]);
            }
            3..=5 => {
                let got = world.fetch(&member, rng.random_range(1..4u32));
                for delivery in &got {
                    let last = settled.get(&(group, delivery.task_id.to_string()));
                    assert!(last.is_none_or(|last| *last < delivery.offset.get()), "settled messages stay settled");
                }
                held.entry((group, who)).or_default().extend(got);
            }
            6..=8 => {
                let mine = held.entry((group, who)).or_default();
                if !mine.is_empty() {
                    let delivery = mine.remove(rng.random_range(0..mine.len()));
                    let outcome = match rng.random_range(0..6u32) {
                        0 => Outcome::Retry { delay_ms: rng.random_range(0..3_000u64), reason: "r".to_owned() },
                        1 => Outcome::Release,
                        2 if rng.random_bool(0.2) => Outcome::Reject { reason: "p".to_owned() },
                        _ => Outcome::Done,
                    };
                    let done = outcome == Outcome::Done;
                    if world.settle(&member, &delivery, outcome) == crate::model::SettleResult::Ok && done {
                        let before = settled.insert((group, delivery.task_id.to_string()), delivery.offset.get());
                        assert!(before < Some(delivery.offset.get()), "in offset order");
                    }
                }
            }
            9 => {
                if let Some(delivery) = held.get(&("g", who)).and_then(|mine| mine.first()).cloned() {
                    world.call(super::super::Command::Begin(session_of("g", who), lease(&delivery)));
                }
            }
            10 => world.pass(rng.random_range(0..4_000u64)),
            _ => world.checkpoint(),
        }
        if rng.random_bool(0.15) {
            let before = (picture(&mut world, "g"), picture(&mut world, "h"));
            world.restart();
            if rng.random_bool(0.5) {
                world.restart();
            }
            assert_eq!((picture(&mut world, "g"), picture(&mut world, "h")), before, "seed {seed}");
        }
        world.assert_leases_are_unique();
    }
    format!("{} {}", picture(&mut world, "g"), picture(&mut world, "h"))
}

#[test]
fn what_must_survive_survives_crashes_at_any_step() {
    for seed in 0..300 {
        run(seed);
    }
}

#[test]
fn one_seed_is_one_story() {
    assert_eq!(run(7), run(7));
}
