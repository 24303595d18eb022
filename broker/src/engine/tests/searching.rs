//! What a group finds of channels and of ended leases after they left memory.

use super::super::{Arrival, Command};
use super::harness::*;
use crate::model::{EndedAs, GroupNo, GroupSpec, PolicyNo, SettleResult, Start};
use crate::state::Family;

#[test]
fn s20_a_latest_group_sees_all_of_a_channel_made_after_it_also_once_it_has_to_find_it() {
    for restart in [false, true] {
        let mut world = World::new();
        world.create(GroupSpec { start: Start::Latest, ..spec("late") });
        world.publish((0..5).map(|n| event(&format!("t{n}"), "m")).collect());
        // A later one of its kind reads none of this, and changes nothing for the earlier one.
        world.create(GroupSpec { start: Start::Latest, ..spec("later") });
        world.publish(vec![event("u", "1")]);
        if restart {
            world.checkpoint();
            world.restart();
        }
        assert_eq!(world.fetch(&session_of("late", 1), 10).len(), 6, "restart {restart}");
        assert_eq!(world.fetch(&session_of("later", 1), 10).len(), 1, "restart {restart}");
        world.audit("late");
        world.audit("later");
    }
}

#[test]
fn names_of_an_earlier_search_or_of_before_a_checkpoint_are_not_taken_for_those_of_this() {
    for (after, of_an_earlier_checkpoint) in [(Some(("acme".to_owned(), "x".to_owned())), 0), (None, 1)] {
        let mut world = World::new();
        world.publish(vec![event("t", "1")]);
        world.checkpoint();
        world.restart();
        world.publish(vec![event("t", "2")]);
        world.checkpoint();
        let turn = world.engine.handle(world.now, 1_000, Command::Heartbeat(session(1)));
        let finished = world.engine.memory.finished - of_an_earlier_checkpoint;
        let (group, policy) = (GroupNo(1), PolicyNo(1));
        let empty = Arrival::Names { group, policy, after, names: Vec::new(), through: None, finished };
        let more = world.engine.arrived(world.now, empty).unwrap();
        let scan = world.engine.memory.groups[&group].scan.as_ref().unwrap();
        assert!(!scan.names_done, "the search goes on");
        world.keep(turn);
        world.keep(more);
        assert_eq!(world.fetch(&session(1), 10).len(), 1);
        assert_eq!(world.info("g").waiting, 1);
    }
}

#[test]
fn an_ended_lease_is_remembered_for_its_time_over_a_restart_and_then_forgotten_in_state_too() {
    let mut world = World::new();
    world.publish(vec![event("t", "1")]);
    let member = session(1);
    let delivery = world.fetch(&member, 1).remove(0);
    world.done(&member, &delivery);
    world.checkpoint();
    world.restart();
    world.publish(vec![event("u", "2")]);
    world.checkpoint();
    assert!(matches!(world.done(&member, &delivery), SettleResult::AlreadySettled(EndedAs::Done)));
    assert_eq!(world.rows(Family::Settles).len(), 1);
    world.restart();
    world.pass(11 * 60_000);
    world.publish(vec![event("u", "3")]);
    world.checkpoint();
    assert_eq!(world.rows(Family::Settles).len(), 0);
    assert!(matches!(world.done(&member, &delivery), SettleResult::LeaseLost));
}
