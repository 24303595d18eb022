//! Messages that were confirmed and cannot be read.

use super::super::{Command, Reply};
use super::harness::*;
use crate::engine::CacheLimits;
use crate::model::{ChannelNo, ExecutionState, Outcome, SessionRef, SettleResult};

/// A world that has forgotten all heads: they come from the disk.
fn from_disk() -> World {
    let mut world = World::with_limits(CacheLimits::default());
    world.publish(vec![request("t", "x"), event("t", "behind"), event("u", "1"), event("u", "2")]);
    world.checkpoint();
    world.restart();
    world
}

fn parked(world: &mut World) -> Vec<(u64, String)> {
    match world.call(Command::ListParked(group_ref("g"))) {
        Reply::Parked(parked) => parked.into_iter().map(|p| (p.offset.get(), p.reason)).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_damaged_message_is_set_aside_where_a_group_reaches_it_and_other_tasks_go_on() {
    for restart in [false, true] {
        let mut world = from_disk();
        world.damage(ChannelNo(1), 0);
        let member = SessionRef { timeout_ms: 600_000, ..session(1) };
        let got = world.fetch(&member, 10);
        assert_eq!(got.iter().map(|d| d.offset.get()).collect::<Vec<_>>(), vec![2]);
        if restart {
            world.checkpoint();
            world.restart();
        }
        let parked = parked(&mut world);
        assert_eq!(parked.len(), 1);
        assert_eq!(parked[0].0, 0);
        assert!(parked[0].1.starts_with("data_loss: segment 1 is damaged"), "{parked:?}");
        assert_eq!(world.done(&member, &got[0]), SettleResult::Ok);
        let next = world.fetch(&member, 10);
        assert_eq!(next.iter().map(|d| d.offset.get()).collect::<Vec<_>>(), vec![3], "what is behind it waits");
        let info = world.audit("g").info;
        assert_eq!((info.parked, info.waiting, info.in_flight), (1, 1, 1));
        assert_eq!(world.explain("x").execution.state, ExecutionState::Requested, "it stays what it is");
    }
}

#[test]
fn a_lease_whose_message_is_lost_afterwards_can_be_ended() {
    let mut world = from_disk();
    let member = SessionRef { timeout_ms: 600_000, ..session(1) };
    let got = world.fetch(&member, 10);
    world.damage(ChannelNo(1), 2);
    world.checkpoint();
    world.restart();
    let of_u = got.iter().find(|d| d.offset.get() == 2).unwrap();
    let retry = Outcome::Retry { delay_ms: 0, reason: String::new() };
    assert_eq!(world.settle(&member, of_u, retry), SettleResult::Ok);
    assert_eq!(world.fetch(&SessionRef { held: None, ..member }, 10), vec![], "nobody gets it");
    assert_eq!(parked(&mut world).len(), 1);
    world.audit("g");
}

#[test]
fn deliveries_that_cannot_be_read_on_their_way_are_set_aside_and_count_no_attempt() {
    let mut world = from_disk();
    let member = SessionRef { timeout_ms: 600_000, ..session(1) };
    let got = world.fetch(&member, 1).remove(0);
    let of_another = session(2);
    world.call(Command::Unreadable(of_another.id, vec![(lease(&got), "gone".to_owned())]));
    assert_eq!(parked(&mut world), vec![], "only its holder can say so");
    world.call(Command::Unreadable(member.id, vec![(lease(&got), "gone".to_owned())]));
    assert_eq!(parked(&mut world), vec![(got.offset.get(), "data_loss: gone".to_owned())]);
    assert_eq!(world.done(&member, &got), SettleResult::LeaseLost);
    world.audit("g");
}
