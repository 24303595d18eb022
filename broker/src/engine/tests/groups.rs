//! Leases, order, attempts, parking, sessions.

use super::super::{Command, DeliveryMeta, Reply};
use super::harness::*;
use crate::model::{
    Epoch, ExecutionState, Outcome, Reason, SessionRef, SettleResult, Start, UnknownReason, Verdict, Waiting,
};

fn retry(delay_ms: u64) -> Outcome {
    Outcome::Retry { delay_ms, reason: "not yet".to_owned() }
}

fn ids(deliveries: &[DeliveryMeta]) -> Vec<(String, u64)> {
    let mut ids: Vec<_> = deliveries.iter().map(|d| (d.task_id.to_string(), d.offset.get())).collect();
    ids.sort();
    ids
}

/// Restarts before each step, never, or after checkpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Restarts {
    Never,
    Always,
    AfterCheckpoints,
}

const ALL: [Restarts; 3] = [Restarts::Never, Restarts::Always, Restarts::AfterCheckpoints];

impl Restarts {
    fn here(self, world: &mut World) {
        if self == Self::AfterCheckpoints {
            world.checkpoint();
        }
        if self != Self::Never {
            world.restart();
        }
    }
}

#[test]
fn s02_a_holder_whose_lease_is_over_changes_nothing() {
    for restarts in ALL {
        let mut world = World::new();
        world.publish(vec![event("t", "1")]);
        let a = session(1);
        let b = SessionRef { timeout_ms: 600_000, ..session(2) };
        let limits = crate::model::FetchLimits { max_messages: 1, max_bytes: 1 << 20, wait_ms: 0, lease_ms: 10_000 };
        let ticket = world.ask(Command::Fetch(a.clone(), limits));
        let la = world.fetched(ticket).unwrap().remove(0);
        world.pass(11_000);
        restarts.here(&mut world);
        let lb = world.fetch(&b, 1).remove(0);
        assert_eq!((la.attempt, lb.attempt), (1, 2));
        assert_eq!(world.settle(&b, &lb, retry(60_000)), SettleResult::Ok);
        restarts.here(&mut world);
        let extend = vec![(lease(&la), 5_000)];
        assert!(
            matches!(world.call(Command::Extend(a.clone(), extend)), Reply::Settled(r) if r == [SettleResult::LeaseLost])
        );
        assert_eq!(world.settle(&a, &la, retry(1)), SettleResult::LeaseLost);
        assert_eq!(world.done(&a, &la), SettleResult::LeaseLost);
        let info = world.audit("g").info;
        assert_eq!((info.depth(), info.delayed), (1, 1));
        world.pass(59_000);
        assert!(world.fetch(&b, 1).is_empty(), "the delay is unchanged");
        world.pass(1_000);
        let third = world.fetch(&b, 1).remove(0);
        assert_eq!(third.attempt, 3);
        assert_eq!(world.done(&b, &third), SettleResult::Ok);
        restarts.here(&mut world);
        assert_eq!(world.done(&a, &la), SettleResult::LeaseLost);
        let again = world.done(&b, &third);
        assert_eq!(again, SettleResult::AlreadySettled(crate::model::EndedAs::Done), "{restarts:?}");
        assert_eq!(world.audit("g").info.depth(), 0);
    }
}

#[test]
fn s03_a_failed_event_holds_back_its_own_task_and_nobody_elses() {
    for restarts in ALL {
        let mut world = World::new();
        world.publish(vec![
            event("T1", "a1"),
            event("T2", "b1"),
            event("T1", "a2"),
            event("T2", "b2"),
            event("T1", "a3"),
        ]);
        restarts.here(&mut world);
        let member = SessionRef { timeout_ms: 600_000, ..session(1) };
        let first = world.fetch(&member, 10);
        assert_eq!(ids(&first), vec![("T1".into(), 0), ("T2".into(), 1)]);
        for delivery in &first {
            let outcome = if &*delivery.task_id == "T1" { retry(5_000) } else { Outcome::Done };
            assert_eq!(world.settle(&member, delivery, outcome), SettleResult::Ok);
        }
        restarts.here(&mut world);
        let second = world.fetch(&member, 10);
        assert_eq!(ids(&second), vec![("T2".into(), 3)]);
        assert_eq!(second[0].attempt, 1);
        world.done(&member, &second[0]);
        world.pass(4_999);
        assert!(world.fetch(&member, 10).is_empty());
        world.pass(1);
        let mut order = Vec::new();
        for _ in 0..3 {
            let next = world.fetch(&member, 10).remove(0);
            order.push(next.offset.get());
            world.done(&member, &next);
            restarts.here(&mut world);
        }
        assert_eq!(order, vec![0, 2, 4]);
        assert_eq!(world.audit("g").info.counts.settled_total(), 5);
    }
}

#[test]
fn s05_a_failing_task_does_not_use_up_the_window() {
    let mut world = World::new();
    world.create(crate::model::GroupSpec { window: 12, max_attempts: 1_000, ..spec("w") });
    for i in 0..100 {
        world.publish((0..10).map(|t| event(&format!("T{t}"), &format!("{t}-{i}"))).collect());
    }
    let member = SessionRef { timeout_ms: 600_000, ..session_of("w", 1) };
    let mut done = 0;
    let mut rounds = 0;
    while done < 900 {
        rounds += 1;
        assert!(rounds < 2_000, "{done} done");
        let deliveries = world.fetch(&member, 12);
        assert!(deliveries.iter().filter(|d| &*d.task_id == "T0").count() <= 1);
        for delivery in deliveries {
            if &*delivery.task_id == "T0" {
                world.settle(&member, &delivery, retry(1_000));
            } else {
                world.done(&member, &delivery);
                done += 1;
            }
        }
        world.pass(10);
        world.audit("w");
    }
    let mut last = None;
    while world.info("w").depth() > 0 {
        world.pass(1_000);
        for delivery in world.fetch(&member, 12) {
            assert!(last < Some(delivery.offset), "in order");
            last = Some(delivery.offset);
            world.done(&member, &delivery);
        }
    }
    assert_eq!(world.audit("w").info.counts.settled_total(), 1_000);
}

#[test]
fn s06_an_event_that_kills_its_worker_is_counted_and_set_aside() {
    for restarts in ALL {
        let mut world = World::new();
        world.publish(vec![request("T1", "k1"), event("T1", "k2"), event("T2", "n1")]);
        let mut seen = 0;
        for attempt in 1..=5 {
            let member = SessionRef { timeout_ms: 10_000, ..session(attempt) };
            for delivery in world.fetch(&member, 10) {
                if &*delivery.task_id == "T2" {
                    assert_eq!(attempt, 1);
                    world.done(&member, &delivery);
                } else {
                    assert_eq!((delivery.offset.get(), u128::from(delivery.attempt)), (0, attempt));
                    seen += 1;
                }
            }
            restarts.here(&mut world);
            world.pass(10_000);
        }
        assert_eq!(seen, 5);
        let member = session(99);
        assert!(world.fetch(&member, 10).is_empty(), "k2 waits behind its parked head");
        let info = world.audit("g").info;
        assert_eq!((info.parked, info.depth(), info.in_flight), (1, 1, 0));
        let Reply::Parked(parked) = world.call(Command::ListParked(group_ref("g"))) else { panic!() };
        assert_eq!((parked[0].task_id.as_str(), parked[0].reason.as_str()), ("T1", "attempts exhausted"));
        let story = world.explain("k1");
        assert_eq!(story.execution.state, ExecutionState::Unknown);
        assert_eq!(story.execution.unknown_reason, Some(UnknownReason::AttemptsExhausted));
        assert_eq!((story.execution.deliveries_total, story.verdict), (5, Verdict::EffectUnknown));
    }
}

#[test]
fn s10_after_a_crash_of_everybody_all_comes_again_within_a_lease() {
    for restarts in [Restarts::Always, Restarts::AfterCheckpoints] {
        let mut world = World::new();
        world.create(crate::model::GroupSpec { window: 3, ..spec("w") });
        world.publish(vec![event("a", "1"), event("b", "2"), event("c", "3")]);
        let a = session_of("w", 1);
        assert_eq!(world.fetch(&a, 10).len(), 3);
        restarts.here(&mut world);
        let b = SessionRef { timeout_ms: 600_000, ..session_of("w", 2) };
        world.publish(vec![event("d", "4")]);
        let ticket = world.start_fetch(&b, 10, 60_000);
        world.pass(30_000);
        let mut again = world.fetched(ticket).expect("within one lease period");
        again.extend(world.fetch(&b, 10));
        assert_eq!(again.len(), 3);
        for delivery in &again {
            let fresh = &*delivery.task_id == "d";
            assert_eq!(delivery.attempt, if fresh { 1 } else { 2 });
            world.done(&b, delivery);
        }
        for delivery in world.fetch(&b, 10) {
            world.done(&b, &delivery);
        }
        let info = world.audit("w").info;
        assert_eq!((info.depth(), info.in_flight), (0, 0));
    }
}

#[test]
fn s19_an_abandoned_fetch_gets_nothing() {
    let mut world = World::new();
    let member = SessionRef { held: Some(Vec::new()), ..session(1) };
    for _ in 0..20 {
        let ticket = world.start_fetch(&member, 5, 30_000);
        world.pass(1_000);
        world.call(Command::CancelFetch(member.id, ticket));
    }
    world.publish(vec![event("t", "1")]);
    assert_eq!(world.info("g").in_flight, 0);
    let delivery = world.fetch(&member, 5).remove(0);
    assert_eq!((delivery.attempt, world.info("g").in_flight), (1, 1));
    // The caller is gone before the answer reaches it: the next fetch does not list the lease.
    let again = world.fetch(&member, 5).remove(0);
    assert_eq!((again.offset, again.attempt, again.acquired), (delivery.offset, 1, 2));
    assert_eq!(world.done(&member, &delivery), SettleResult::LeaseLost);
    assert_eq!(world.done(&member, &again), SettleResult::Ok);
    world.audit("g");
}

#[test]
fn held_leases_go_on_and_others_end() {
    let mut world = World::new();
    world.publish(vec![event("a", "1"), event("b", "2")]);
    let member = session(1);
    let both = world.fetch(&member, 2);
    let kept = both[0].epoch;
    let listing = SessionRef { held: Some(vec![kept, Epoch(9_999)]), ..member.clone() };
    let ticket = world.start_fetch(&listing, 2, 0);
    world.pass(0);
    let Some(Reply::Fetched { deliveries, held, .. }) = world.reply(ticket) else { panic!() };
    assert_eq!((held.kept, held.lost), (vec![(kept, kept)], vec![Epoch(9_999)]));
    assert_eq!(deliveries[0].offset, both[1].offset);
    assert_eq!(world.done(&member, &both[0]), SettleResult::Ok);
    assert_eq!(world.done(&member, &both[1]), SettleResult::LeaseLost);
}

#[test]
fn a_newer_session_of_an_instance_takes_over_what_it_holds() {
    let mut world = World::new();
    world.publish(vec![event("a", "1"), event("b", "2")]);
    let old = SessionRef { instance: "pod-0".to_owned(), ..session(1) };
    let both = world.fetch(&old, 2);
    let new = SessionRef { instance: "pod-0".to_owned(), held: Some(vec![both[0].epoch]), ..session(2) };
    let ticket = world.start_fetch(&new, 2, 0);
    world.pass(0);
    let Some(Reply::Fetched { deliveries, held, .. }) = world.reply(ticket) else { panic!() };
    let (before, since) = held.kept[0];
    assert_eq!(before, both[0].epoch);
    assert!(since > before, "a moved lease has a new epoch");
    assert_eq!((deliveries.len(), deliveries[0].attempt), (1, 1));
    assert_eq!(world.done(&old, &both[0]), SettleResult::LeaseLost);
    let moved = DeliveryMeta { epoch: since, ..both[0].clone() };
    assert_eq!(world.done(&new, &moved), SettleResult::Ok);
    world.audit("g");
}

#[test]
fn s12_an_expired_message_is_never_handed_out() {
    for restarts in ALL {
        let mut world = World::new();
        world.publish(vec![
            event("t", "1").with(|m| m.ttl_ms = 1_000),
            event("t", "2"),
            event("u", "3").with(|m| m.ttl_ms = 5_000),
        ]);
        restarts.here(&mut world);
        world.pass(1_000);
        let member = session(1);
        let got = world.fetch(&member, 10);
        assert_eq!(ids(&got), vec![("t".into(), 1), ("u".into(), 2)]);
        let info = world.audit("g").info;
        assert_eq!((info.counts.gone_total(), info.in_flight), (1, 2));
        // Under a live lease nothing expires; lost, it is gone.
        world.pass(30_000);
        let info = world.info("g");
        assert_eq!(info.in_flight, 0);
        let other = SessionRef { timeout_ms: 600_000, ..session(2) };
        assert_eq!(ids(&world.fetch(&other, 10)), vec![("t".into(), 1)]);
        assert_eq!(world.audit("g").info.counts.gone_total(), 2);
    }
}

#[test]
fn not_before_delays_its_task_alone() {
    let mut world = World::new();
    let at = world.now.get() + 7_000;
    world.publish(vec![event("t", "1").with(|m| m.not_before_unix_ms = at), event("t", "2"), event("u", "3")]);
    let member = session(1);
    assert_eq!(ids(&world.fetch(&member, 10)), vec![("u".into(), 2)]);
    assert_eq!(world.info("g").delayed, 1);
    world.pass(7_000);
    assert_eq!(ids(&world.fetch(&member, 10)), vec![("t".into(), 0)]);
}

#[test]
fn s20_a_groups_start_is_fixed_when_it_is_created() {
    for restarts in ALL {
        let mut world = World::new();
        world.publish(vec![event("t", "1"), event("t", "2"), event("u", "3")]);
        restarts.here(&mut world);
        world.create(spec("early"));
        world.create(crate::model::GroupSpec { start: Start::Latest, ..spec("late") });
        restarts.here(&mut world);
        world.publish(vec![event("t", "4")]);
        assert_eq!(world.create(spec("early")).counts.offered, 4);
        restarts.here(&mut world);
        world.publish(vec![event("v", "5")]);
        for (group, expected) in [("early", vec![0, 1, 2, 3, 4]), ("late", vec![3, 4])] {
            let member = session_of(group, 1);
            let mut got = Vec::new();
            for _ in 0..5 {
                for delivery in world.fetch(&member, 10) {
                    got.push(delivery.offset.get());
                    world.done(&member, &delivery);
                }
            }
            got.sort_unstable();
            assert_eq!(got, expected, "{group} {restarts:?}");
            assert_eq!(world.audit(group).info.depth(), 0);
        }
        let other = Command::CreateGroup(crate::model::GroupSpec { window: 3, ..spec("early") });
        assert!(matches!(world.call(other), Reply::Refused(_)));
    }
}

#[test]
fn a_fetch_says_why_it_brings_nothing() {
    let mut world = World::new();
    let member = session(1);
    let why = |world: &mut World, member: &SessionRef| {
        let ticket = world.start_fetch(member, 1, 0);
        world.pass(0);
        match world.reply(ticket) {
            Some(Reply::Fetched { waiting, .. }) => waiting,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(why(&mut world, &member), Some(Waiting::Empty));
    world.publish(vec![event("t", "1")]);
    let delivery = world.fetch(&member, 1).remove(0);
    assert_eq!(why(&mut world, &session(2)), Some(Waiting::AllLeased));
    world.settle(&member, &delivery, retry(50_000));
    assert_eq!(why(&mut world, &member), Some(Waiting::AllDelayed));
    world.pass(20_000);
    world.call(Command::Heartbeat(member.clone()));
    world.pass(29_000);
    world.call(Command::Heartbeat(member.clone()));
    world.pass(1_000);
    let delivery = world.fetch(&member, 1).remove(0);
    world.settle(&member, &delivery, Outcome::Reject { reason: "poison".to_owned() });
    assert_eq!(why(&mut world, &member), Some(Waiting::AllParked));
}

#[test]
fn a_large_backlog_is_found_after_a_restart_with_a_small_memory() {
    let limits = super::super::CacheLimits { channels: 2, executions: 2, heads: 2 };
    let mut world = World::with_limits(limits);
    for i in 0..30 {
        let drafts = (0..40).map(|t| event(&format!("task-{t}"), &format!("{t}-{i}"))).collect();
        let mut channel = channel();
        channel.agent = format!("agent-{}", i % 5);
        world.try_publish_to(channel, drafts).unwrap();
        if i % 7 == 0 {
            world.checkpoint();
        }
    }
    world.restart();
    let member = session(1);
    let mut last = std::collections::HashMap::new();
    let mut count = 0;
    loop {
        let got = world.fetch(&member, 50);
        if got.is_empty() {
            break;
        }
        world.assert_leases_are_unique();
        for delivery in got {
            let key = (delivery.no, delivery.task_id.clone());
            assert!(last.insert(key, delivery.offset) < Some(delivery.offset), "in order");
            world.done(&member, &delivery);
            count += 1;
        }
        world.checkpoint();
    }
    assert_eq!(count, 1_200);
    assert_eq!(world.audit("g").info.counts.settled_total(), 1_200);
}

#[test]
fn a_delay_ends_with_the_message_it_delays() {
    for restart in [false, true] {
        let mut world = World::new();
        let at = world.now.get() + 1_000;
        world.publish(vec![
            event("t", "short").with(|m| m.ttl_ms = 1_000),
            event("t", "behind"),
            event("u", "late").with(|m| m.deadline_unix_ms = at),
            event("u", "behind-too"),
        ]);
        let member = SessionRef { timeout_ms: 600_000, ..session(1) };
        for delivery in world.fetch(&member, 10) {
            let retry = Outcome::Retry { delay_ms: 60_000, reason: String::new() };
            assert_eq!(world.settle(&member, &delivery, retry), SettleResult::Ok);
        }
        assert_eq!(world.info("g").delayed, 2);
        if restart {
            world.checkpoint();
            world.restart();
        }
        world.pass(1_000);
        let mut got: Vec<_> = world.fetch(&member, 10).iter().map(|d| d.offset.get()).collect();
        got.sort_unstable();
        assert_eq!(got, vec![1, 3], "those behind need not wait for what is gone");
        assert_eq!(world.audit("g").info.counts.gone_total(), 2);
    }
}

/// A static member's session.
fn of_instance(id: u128, held: Option<Vec<Epoch>>) -> SessionRef {
    SessionRef { instance: "worker-7".to_owned(), held, ..session(id) }
}

#[test]
fn what_a_take_over_moved_is_known_by_its_old_epoch_until_it_is_over() {
    let mut world = World::new();
    world.publish(vec![event("t", "1"), event("u", "2")]);
    let old = of_instance(1, None);
    let deliveries = world.fetch(&old, 10);
    let epochs: Vec<_> = deliveries.iter().map(|d| d.epoch).collect();
    let new = of_instance(2, Some(epochs.clone()));
    let heartbeat = |world: &mut World| match world.call(Command::Heartbeat(new.clone())) {
        Reply::Joined { held, .. } => held,
        other => panic!("{other:?}"),
    };
    let first = heartbeat(&mut world);
    assert_eq!(first.kept.len(), 2);
    assert_eq!(heartbeat(&mut world), first, "the answer may have been lost");
    let ticket = world.start_fetch(&new, 1, 0);
    world.pass(0);
    let Reply::Fetched { held, .. } = world.reply(ticket).unwrap() else { panic!() };
    assert_eq!(held, first, "a fetch says the same and ends none of them");
    let moved = DeliveryMeta { epoch: first.kept[0].1, ..deliveries[0].clone() };
    assert_eq!(world.done(&new, &moved), SettleResult::Ok);
    let after = heartbeat(&mut world);
    assert_eq!((after.kept.len(), after.lost), (1, vec![epochs[0]]));
}

#[test]
fn a_replaced_session_does_not_take_over_in_turn() {
    for restart in [false, true] {
        let mut world = World::new();
        world.publish(vec![event("t", "1")]);
        for id in 1..=3 {
            assert!(world.fetch(&of_instance(id, Some(vec![])), 1).len() == 1, "the message goes to the newest");
            if restart {
                world.checkpoint();
                world.restart();
            }
        }
        for replaced in [1, 2] {
            let asked = world.call(Command::Heartbeat(of_instance(replaced, None)));
            let Reply::Refused(refusal) = asked else { panic!("{asked:?}") };
            assert_eq!(refusal.reason, Reason::StaleSession);
        }
        assert_eq!(world.info("g").in_flight, 1);
        world.pass(30_000);
        assert!(matches!(world.call(Command::Heartbeat(of_instance(1, None))), Reply::Joined { .. }));
    }
}

#[test]
fn a_group_made_again_in_another_way_is_told_what_differs() {
    let mut world = World::new();
    let asked = world.call(Command::CreateGroup(crate::model::GroupSpec { window: 3, ..spec("g") }));
    let Reply::Refused(refusal) = asked else { panic!("{asked:?}") };
    assert_eq!((refusal.reason, refusal.field.as_str()), (Reason::AlreadyExists, "settings.window"));
}
