//! Begin, hold, complete, resolve (design, section 7).

use super::harness::*;
use crate::model::{
    BeginResult, CompleteResult, Effect, ExecutionState, FinalState, Outcome, Reason, SessionRef, SettleResult,
    UnknownReason, Verdict,
};

fn accepted(result: &CompleteResult) -> (bool, bool) {
    match result {
        CompleteResult::Accepted { late, contradiction, .. } => (*late, *contradiction),
        other => panic!("{other:?}"),
    }
}

/// A world in which `x` was begun by a member that then died.
fn begun_and_lost(
    restart: bool,
    effect: Effect,
) -> (World, SessionRef, super::super::DeliveryMeta, crate::model::Epoch) {
    let mut world = World::new();
    world.publish(vec![request("t", "x").effect(effect), event("t", "after"), event("u", "other")]);
    let dead = session(1);
    let deliveries = world.fetch(&dead, 10);
    let delivery = deliveries.iter().find(|d| &*d.task_id == "t").unwrap().clone();
    let token = world.begun(&dead, &delivery);
    assert_eq!(world.begun(&dead, &delivery), token, "the same again for the same lease");
    if restart {
        world.checkpoint();
        world.restart();
    }
    world.pass(30_000);
    if restart {
        world.restart();
    }
    (world, dead, delivery, token)
}

#[test]
fn an_unsafe_execution_whose_lease_is_lost_is_unknown_and_holds_its_task_alone() {
    for restart in [false, true] {
        let (mut world, ..) = begun_and_lost(restart, Effect::Unsafe);
        let next = SessionRef { timeout_ms: 600_000, ..session(2) };
        let got = world.fetch(&next, 10);
        assert_eq!(got.len(), 1, "its task is held, the other goes on");
        assert_eq!((&*got[0].task_id, got[0].attempt), ("u", 2));
        let info = world.audit("g").info;
        assert_eq!((info.held, info.waiting), (1, 1));
        let story = world.explain("x");
        assert_eq!(story.execution.state, ExecutionState::Unknown);
        assert_eq!(story.execution.unknown_reason, Some(UnknownReason::LeaseLost));
        assert_eq!((story.verdict, story.execution.deliveries_total), (Verdict::EffectUnknown, 1));
        assert!(story.story.iter().any(|(_, line)| line.contains("member-1")), "{:?}", story.story);
    }
}

#[test]
fn a_late_complete_ends_the_unknown() {
    for restart in [false, true] {
        let (mut world, dead, delivery, token) = begun_and_lost(restart, Effect::Unsafe);
        let late = world.complete(&dead, &delivery, "x", token, FinalState::Completed);
        assert_eq!(accepted(&late), (true, false));
        let next = SessionRef { timeout_ms: 600_000, ..session(2) };
        let got = world.fetch(&next, 10);
        assert!(got.iter().all(|d| d.offset.get() != 0), "settled by the late result");
        let story = world.explain("x");
        assert_eq!((story.execution.state, story.verdict), (ExecutionState::Completed, Verdict::EffectOnce));
        world.audit("g");
        let again = world.complete(&dead, &delivery, "x", token, FinalState::Completed);
        let CompleteResult::Accepted { duplicate, .. } = again else { panic!("{again:?}") };
        assert!(duplicate.is_some());
    }
}

#[test]
fn not_executed_withdraws_the_begin_and_fences_its_holder() {
    for restart in [false, true] {
        let (mut world, dead, delivery, token) = begun_and_lost(restart, Effect::Unsafe);
        assert_eq!(world.resolve("x", None).unwrap().state, ExecutionState::Requested);
        let next = SessionRef { timeout_ms: 600_000, ..session(2) };
        let got = world.fetch(&next, 10);
        let again = got.iter().find(|d| d.offset.get() == 0).expect("a new attempt");
        assert_eq!(again.attempt, 2);
        let late = world.complete(&dead, &delivery, "x", token, FinalState::Completed);
        assert_eq!(late, CompleteResult::Fenced);
        let second = world.begun(&next, again);
        assert!(second > token, "a later begin has the greater token");
        accepted(&world.complete(&next, again, "x", second, FinalState::Completed));
        let story = world.explain("x");
        assert_eq!(story.verdict, Verdict::Contradiction, "a COMPLETED is among the refused evidence");
        assert_eq!((story.execution.begins, story.execution.begins_withdrawn), (2, 1));
    }
}

#[test]
fn a_resolution_delivers_the_message_again_with_its_outcome() {
    for restart in [false, true] {
        let (mut world, ..) = begun_and_lost(restart, Effect::Unsafe);
        world.resolve("x", Some(FinalState::Completed)).unwrap();
        let next = SessionRef { timeout_ms: 600_000, ..session(2) };
        let got = world.fetch(&next, 10);
        let again = got.iter().find(|d| d.offset.get() == 0).expect("delivered again").clone();
        assert_eq!(again.execution.as_ref().unwrap().state, ExecutionState::Completed);
        let BeginResult::AlreadyFinal { state, report: Some((_, offset)), .. } = world.begin(&next, &again) else {
            panic!()
        };
        assert_eq!((state, offset.get()), (FinalState::Completed, 3), "weir stored the pair");
        assert_eq!(world.done(&next, &again), SettleResult::Ok);
        let repeat = world.publish(vec![report("t", "again", "x", FinalState::Completed)]);
        assert!(is_duplicate(&repeat[0]));
        assert_eq!(world.explain("x").verdict, Verdict::EffectOnce);
        assert_eq!(world.resolve("x", None).unwrap_err().reason, Reason::NotUnknown);
        world.audit("g");
    }
}

#[test]
fn a_safe_execution_is_tried_again_after_a_loss() {
    for (restart, effect) in [(false, Effect::Idempotent), (true, Effect::None)] {
        let (mut world, dead, delivery, token) = begun_and_lost(restart, effect);
        let next = SessionRef { timeout_ms: 600_000, ..session(2) };
        let got = world.fetch(&next, 10);
        let again = got.iter().find(|d| d.offset.get() == 0).expect("ready at once").clone();
        assert_eq!(again.attempt, 2);
        let second = world.begun(&next, &again);
        assert_eq!(world.complete(&dead, &delivery, "x", token, FinalState::Completed), CompleteResult::Fenced);
        assert_eq!(accepted(&world.complete(&next, &again, "x", second, FinalState::Failed)), (false, false));
    }
}

#[test]
fn one_begin_stands_over_all_groups() {
    for restart in [false, true] {
        let mut world = World::new();
        world.create(spec("h"));
        world.publish(vec![request("t", "x")]);
        let (one, two) = (session(1), session_of("h", 2));
        let first = world.fetch(&one, 1).remove(0);
        let second = world.fetch(&two, 1).remove(0);
        let token = world.begun(&one, &first);
        if restart {
            world.checkpoint();
            world.restart();
        }
        let BeginResult::InProgress { group, .. } = world.begin(&two, &second) else { panic!() };
        assert_eq!(group, group_ref("g"));
        let info = world.audit("h").info;
        assert_eq!((info.held, info.in_flight), (1, 0));
        assert_eq!(world.done(&two, &second), SettleResult::LeaseLost, "its lease is over");
        accepted(&world.complete(&one, &first, "x", token, FinalState::Completed));
        let again = world.fetch(&two, 1).remove(0);
        assert_eq!((again.attempt, again.acquired), (1, 2), "no attempt was counted");
        assert!(matches!(world.begin(&two, &again), BeginResult::AlreadyFinal { .. }));
    }
}

#[test]
fn a_second_group_waits_while_the_first_ones_begin_is_unknown() {
    let mut world = World::new();
    world.create(spec("h"));
    world.publish(vec![request("t", "x")]);
    let (one, two) = (session(1), SessionRef { timeout_ms: 600_000, ..session_of("h", 2) });
    let first = world.fetch(&one, 1).remove(0);
    let second = world.fetch(&two, 1).remove(0);
    world.begun(&one, &first);
    assert!(matches!(world.begin(&two, &second), BeginResult::InProgress { .. }));
    world.pass(30_000);
    assert_eq!((world.info("g").held, world.info("h").held), (1, 1));
    world.resolve("x", None).unwrap();
    assert_eq!((world.info("g").held, world.info("h").held), (0, 0));
    let again = world.fetch(&two, 1).remove(0);
    world.begun(&two, &again);
}

#[test]
fn retry_after_a_begin_needs_the_word_that_nothing_happened() {
    let mut world = World::new();
    world.publish(vec![request("t", "x")]);
    let member = session(1);
    let delivery = world.fetch(&member, 1).remove(0);
    world.begun(&member, &delivery);
    let retry = Outcome::Retry { delay_ms: 0, reason: String::new() };
    let SettleResult::Refused(refusal) = world.settle(&member, &delivery, retry.clone()) else { panic!() };
    assert_eq!(refusal.reason, Reason::ExecutionBegun);
    assert_eq!(world.info("g").in_flight, 1, "nothing changed");
    assert_eq!(world.settle_as(&member, &delivery, retry, true), SettleResult::Ok);
    let again = world.fetch(&member, 1).remove(0);
    assert_eq!(again.attempt, 2);
    assert_eq!(world.explain("x").execution.begins_withdrawn, 1);
}

#[test]
fn each_other_end_after_a_begin_leaves_unknown() {
    let cases = [
        (Outcome::Done, UnknownReason::NoResult, 0, 0),
        (Outcome::Reject { reason: "odd".to_owned() }, UnknownReason::Rejected, 0, 1),
        (Outcome::Unknown { reason: "timeout".to_owned() }, UnknownReason::Reported, 1, 0),
    ];
    for (outcome, reason, held, parked) in cases {
        let mut world = World::new();
        world.publish(vec![request("t", "x")]);
        let member = session(1);
        let delivery = world.fetch(&member, 1).remove(0);
        world.begun(&member, &delivery);
        assert_eq!(world.settle(&member, &delivery, outcome), SettleResult::Ok);
        let story = world.explain("x");
        assert_eq!(story.execution.unknown_reason, Some(reason));
        let info = world.audit("g").info;
        assert_eq!((info.held, info.parked), (held, parked));
    }
}

#[test]
fn unknown_is_for_the_holder_of_the_standing_begin() {
    let mut world = World::new();
    world.publish(vec![request("t", "x")]);
    let member = session(1);
    let delivery = world.fetch(&member, 1).remove(0);
    let unknown = Outcome::Unknown { reason: String::new() };
    assert!(matches!(world.settle(&member, &delivery, unknown), SettleResult::Refused(_)));
    assert_eq!(world.explain("x").execution.state, ExecutionState::Requested);
}

#[test]
fn complete_stores_the_pair_once_and_settles() {
    let mut world = World::new();
    world.publish(vec![request("t", "x")]);
    let member = session(1);
    let delivery = world.fetch(&member, 1).remove(0);
    let token = world.begun(&member, &delivery);
    accepted(&world.complete(&member, &delivery, "x", token, FinalState::Completed));
    let result = world.fetch(&member, 1).remove(0);
    assert_eq!((result.offset.get(), &*result.task_id), (1, "t"), "weir appended the result to the task");
    let repeat = world.publish(vec![report("t", "mine", "x", FinalState::Completed)]);
    assert!(is_duplicate(&repeat[0]));
    let story = world.explain("x");
    assert_eq!(story.verdict, Verdict::EffectOnce);
    assert_eq!((story.execution.publish_attempts, story.execution.duplicates), (3, 1));
}

#[test]
fn a_report_from_elsewhere_counts_and_tells_the_holder() {
    let mut world = World::new();
    world.publish(vec![request("t", "x")]);
    let member = session(1);
    let delivery = world.fetch(&member, 1).remove(0);
    let token = world.begun(&member, &delivery);
    world.publish(vec![report("t", "elsewhere", "x", FinalState::Failed)]);
    let super::super::Reply::Joined { notices, .. } = world.call(super::super::Command::Heartbeat(member.clone()))
    else {
        panic!()
    };
    assert!(matches!(notices[0], crate::model::Notice::Cancelled { state: Some(FinalState::Failed), .. }));
    let result = world.complete(&member, &delivery, "x", token, FinalState::Completed);
    assert_eq!(accepted(&result), (false, true));
    assert_eq!(world.explain("x").verdict, Verdict::Contradiction);
    assert_eq!(world.explain("x").execution.state, ExecutionState::Failed);
}

#[test]
fn a_deadline_before_begin_expires_the_execution_and_says_so_in_the_task() {
    for restart in [false, true] {
        let mut world = World::new();
        let at = world.now.get() + 1_000;
        world.publish(vec![request("t", "x").with(|m| m.deadline_unix_ms = at)]);
        if restart {
            world.checkpoint();
            world.restart();
        }
        world.pass(1_000);
        let member = session(1);
        let got = world.fetch(&member, 10);
        assert_eq!(got.iter().map(|d| d.offset.get()).collect::<Vec<_>>(), vec![1], "weir's note in the task");
        assert_eq!(world.explain("x").execution.state, ExecutionState::Expired);
        world.publish(vec![report("t", "r", "x", FinalState::Completed)]);
        assert_eq!(world.explain("x").execution.state, ExecutionState::Completed, "yields to any report");
        world.audit("g");
    }
}

#[test]
fn a_deadline_between_delivery_and_begin_refuses_the_begin() {
    let mut world = World::new();
    let at = world.now.get() + 1_000;
    world.publish(vec![request("t", "x").with(|m| m.deadline_unix_ms = at)]);
    let member = session(1);
    let delivery = world.fetch(&member, 1).remove(0);
    assert_eq!(delivery.time_left_ms, Some(1_000));
    world.pass(1_000);
    assert_eq!(world.begin(&member, &delivery), BeginResult::Expired);
    assert_eq!(world.done(&member, &delivery), SettleResult::LeaseLost);
    world.audit("g");
}

#[test]
fn a_deadline_after_begin_is_unknown_but_the_result_still_counts() {
    for restart in [false, true] {
        let mut world = World::new();
        let at = world.now.get() + 1_000;
        world.publish(vec![request("t", "x").with(|m| m.deadline_unix_ms = at)]);
        let member = session(1);
        let delivery = world.fetch(&member, 1).remove(0);
        let token = world.begun(&member, &delivery);
        if restart {
            world.checkpoint();
            world.restart();
        }
        world.pass(1_000);
        assert_eq!(world.explain("x").execution.unknown_reason, Some(UnknownReason::Deadline));
        assert_eq!(world.info("g").in_flight, 1);
        assert_eq!(accepted(&world.complete(&member, &delivery, "x", token, FinalState::Completed)), (false, false));
        assert_eq!(world.explain("x").execution.state, ExecutionState::Completed);
    }
}

#[test]
fn skip_if_final_settles_requests_whose_execution_is_definite() {
    let mut world = World::new();
    world.create(crate::model::GroupSpec { skip_if_final: true, ..spec("s") });
    world.publish(vec![request("t", "x"), report("t", "r", "x", FinalState::Completed), event("t", "e")]);
    let member = session_of("s", 1);
    let got = world.fetch(&member, 1);
    assert_eq!(got[0].offset.get(), 1, "the request is skipped, nothing else is");
    let audit = world.audit("s");
    assert_eq!(audit.info.counts.settled[crate::model::SettledCause::SkippedFinal as usize], 1);
}

#[test]
fn members_of_a_group_that_does_not_execute_cannot_begin() {
    let mut world = World::new();
    world.create(crate::model::GroupSpec { executes: false, ..spec("watch") });
    world.publish(vec![request("t", "x")]);
    let watcher = session_of("watch", 1);
    let delivery = world.fetch(&watcher, 1).remove(0);
    let super::super::Reply::Refused(refusal) =
        world.call(super::super::Command::Begin(watcher.clone(), lease(&delivery)))
    else {
        panic!()
    };
    assert_eq!(refusal.field, "group");
    assert_eq!(world.done(&watcher, &delivery), SettleResult::Ok);
    assert_eq!(world.explain("x").execution.deliveries_total, 0, "only executing groups count");
}

#[test]
fn a_begin_has_the_deadline_of_the_message_it_was_made_with() {
    let mut world = World::new();
    let soon = world.now.get() + 10_000;
    world.publish(vec![request("t", "x").with(|m| m.deadline_unix_ms = soon)]);
    world.publish(vec![request("u", "x").with(|m| {
        m.message_id = "again".to_owned();
        m.deadline_unix_ms = soon + 20_000;
    })]);
    world.pass(11_000);
    let member = SessionRef { timeout_ms: 600_000, ..session(1) };
    let got = world.fetch(&member, 2);
    // In the first request's task there is only weir's note that it is over.
    let again = got.iter().find(|d| &*d.task_id == "u").unwrap();
    world.begun(&member, again);
    world.pass(1_000);
    assert_eq!(world.explain("x").execution.state, ExecutionState::Begun);
    world.pass(19_000);
    assert_eq!(world.explain("x").execution.state, ExecutionState::Unknown, "its own deadline counts");
}

#[test]
fn s12_what_only_names_a_begun_execution_keeps_its_own_time() {
    let mut world = World::new();
    world.publish(vec![request("t", "x")]);
    let member = SessionRef { timeout_ms: 600_000, ..session(1) };
    let got = world.fetch(&member, 1);
    world.begun(&member, &got[0]);
    world.publish(vec![event("u", "about x").with(|m| {
        m.execution_id = "x".to_owned();
        m.ttl_ms = 1_000;
    })]);
    world.pass(2_000);
    assert!(world.fetch(&member, 1).is_empty());
    assert_eq!(world.audit("g").info.counts.gone_total(), 1);
}

#[test]
fn a_withdrawn_begin_whose_holder_says_it_was_done_is_a_contradiction_and_alone_counts_for_none() {
    let (mut world, dead, delivery, token) = begun_and_lost(false, Effect::Unsafe);
    world.resolve("x", None).unwrap();
    let story = world.explain("x");
    assert_eq!(story.verdict, Verdict::NeverBegun);
    assert!(story.summary.contains("begun once and withdrawn"), "{}", story.summary);
    let late = world.complete(&dead, &delivery, "x", token, FinalState::Completed);
    assert_eq!(late, CompleteResult::Fenced);
    assert_eq!(world.explain("x").verdict, Verdict::Contradiction);
}
