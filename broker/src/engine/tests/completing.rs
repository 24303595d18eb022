//! Complete: whose it is, what it carries, and its repeats (design, section 7).

use super::super::{Command, DeliveryMeta, Reply};
use super::harness::*;
use crate::model::{
    CompleteResult, Effect, Epoch, ExecutionState, FinalState, Outcome, PublishResult, Reason, SessionRef,
    SettleResult, UnknownReason, Verdict,
};

/// A world in which `x` is begun by the member.
fn begun() -> (World, SessionRef, DeliveryMeta, Epoch) {
    let mut world = World::new();
    world.publish(vec![request("t", "x"), event("u", "other")]);
    let member = session(1);
    let deliveries = world.fetch(&member, 10);
    let delivery = deliveries.iter().find(|d| &*d.task_id == "t").unwrap().clone();
    let token = world.begun(&member, &delivery);
    (world, member, delivery, token)
}

fn parts(result: &CompleteResult) -> (bool, bool, bool, &[PublishResult]) {
    match result {
        CompleteResult::Accepted { late, duplicate, contradiction, results } => {
            (*late, duplicate.is_some(), *contradiction, results)
        }
        other => panic!("{other:?}"),
    }
}

const DONE: FinalState = FinalState::Completed;

#[test]
fn follow_ups_to_one_channel_are_stored_in_order_with_the_result_behind_them() {
    let (mut world, member, delivery, token) = begun();
    let follow_ups = vec![(channel(), event("t", "a")), (channel(), event("v", "b"))];
    let result = world.try_complete(&member, &delivery, ("x", token, DONE), follow_ups).unwrap();
    let (.., results) = parts(&result);
    assert_eq!(offsets(results), vec![2, 3, 4], "each has a place of its own");
    let info = world.audit("g").info;
    assert_eq!(info.counts.offered, 5);
    let got = world.fetch(&member, 10);
    assert_eq!(got.iter().map(|d| d.offset.get()).collect::<Vec<_>>(), vec![2, 3], "one a task");
}

#[test]
fn follow_ups_to_a_new_channel_make_it_once_and_repeats_among_them_are_found() {
    let (mut world, member, delivery, token) = begun();
    let new = crate::model::ChannelRef { agent: "new".to_owned(), ..channel() };
    let follow_ups = vec![
        (new.clone(), event("t", "a")),
        (channel(), report("t", "mine", "x", DONE)),
        (new.clone(), event("t", "b")),
        (new.clone(), event("t", "a")),
        (new.clone(), report("t", "again", "x", DONE)),
    ];
    let result = world.try_complete(&member, &delivery, ("x", token, DONE), follow_ups).unwrap();
    let (.., results) = parts(&result);
    assert_eq!(offsets(results), vec![0, 2, 1, 0, 2], "no result of weir's own: one of them carries the pair");
    assert_eq!(results.iter().map(is_duplicate).collect::<Vec<_>>(), vec![false, false, false, true, true]);
    let PublishResult::Duplicate(pair) = &results[4] else { panic!() };
    assert_eq!(pair.channel, channel(), "where the first one is");
    world.audit("g");
    assert_eq!(world.explain("x").verdict, Verdict::EffectOnce);
}

#[test]
fn a_repeated_complete_stores_nothing_and_says_the_same() {
    for restart in [false, true] {
        let (mut world, member, delivery, token) = begun();
        let follow_ups = || vec![(channel(), event("v", "a"))];
        let first = world.try_complete(&member, &delivery, ("x", token, DONE), follow_ups()).unwrap();
        assert!(matches!(parts(&first), (false, false, false, _)));
        if restart {
            world.checkpoint();
            world.restart();
        }
        let offered = world.info("g").counts.offered;
        let again = world.try_complete(&member, &delivery, ("x", token, DONE), follow_ups()).unwrap();
        let (late, duplicate, contradiction, results) = parts(&again);
        assert_eq!((late, duplicate, contradiction), (false, true, false));
        assert_eq!(offsets(results), vec![2]);
        assert!(is_duplicate(&results[0]));
        assert_eq!(world.info("g").counts.offered, offered);
        let story = world.explain("x");
        assert_eq!((story.verdict, story.execution.remarks.len()), (Verdict::EffectOnce, 0));
        world.audit("g");
    }
}

#[test]
fn a_complete_after_a_bare_done_is_its_late_result() {
    let (mut world, member, delivery, token) = begun();
    assert_eq!(world.done(&member, &delivery), SettleResult::Ok);
    assert_eq!(world.explain("x").execution.unknown_reason, Some(UnknownReason::NoResult));
    let result = world.complete(&member, &delivery, "x", token, DONE);
    let (late, duplicate, contradiction, results) = parts(&result);
    assert_eq!((late, duplicate, contradiction, results.len()), (true, false, false, 1));
    let story = world.explain("x");
    assert_eq!((story.execution.state, story.verdict), (ExecutionState::Completed, Verdict::EffectOnce));
}

#[test]
fn a_second_complete_with_another_state_is_kept_and_told_as_a_contradiction() {
    let (mut world, member, delivery, token) = begun();
    world.complete(&member, &delivery, "x", token, DONE);
    let other = world.complete(&member, &delivery, "x", token, FinalState::Failed);
    let (_, _, contradiction, results) = parts(&other);
    assert!(contradiction);
    assert_eq!(results.len(), 1, "it is stored, not lost");
    let story = world.explain("x");
    assert_eq!((story.execution.state, story.verdict), (ExecutionState::Completed, Verdict::Contradiction));
    let told = story.execution.remarks.iter().filter(|r| matches!(r.kind, crate::model::RemarkKind::Contradicting(_)));
    assert_eq!(told.count(), 1, "once");
}

#[test]
fn a_follow_up_cannot_report_another_state_of_the_execution() {
    for other in [FinalState::Failed, FinalState::Unknown] {
        let (mut world, member, delivery, token) = begun();
        let follow_ups = vec![(channel(), event("t", "a")), (channel(), report("t", "r", "x", other))];
        let refused = world.try_complete(&member, &delivery, ("x", token, DONE), follow_ups).unwrap_err();
        assert_eq!(refused.field, "publishes[1].message.final_state");
        assert_eq!((world.info("g").in_flight, world.info("g").counts.offered), (2, 2), "nothing is half done");
    }
}

#[test]
fn a_follow_up_of_another_begin_fences_the_whole_complete() {
    let (mut world, member, delivery, token) = begun();
    world.publish(vec![request("w", "y")]);
    let fenced = report("w", "r", "y", DONE).with(|m| m.fencing_token = token.get());
    let follow_ups = vec![(channel(), fenced)];
    let refused = world.try_complete(&member, &delivery, ("x", token, DONE), follow_ups).unwrap_err();
    assert_eq!((refused.reason, refused.field.as_str()), (Reason::Fenced, "publishes[0].message.fencing_token"));
    assert_eq!(world.explain("y").execution.remarks.len(), 1, "kept as evidence");
    assert_eq!(world.explain("x").execution.state, ExecutionState::Begun);
}

#[test]
fn a_refused_follow_up_is_named_by_its_own_path() {
    let (mut world, member, delivery, token) = begun();
    let past = event("t", "late").with(|m| m.deadline_unix_ms = 5);
    let refused = world.try_complete(&member, &delivery, ("x", token, DONE), vec![(channel(), past)]).unwrap_err();
    assert_eq!(refused.field, "publishes[0].message.deadline_unix_ms");
    let elsewhere = crate::model::ChannelRef { tenant: "globex".to_owned(), ..channel() };
    let follow_ups = vec![(elsewhere, event("t", "a"))];
    let refused = world.try_complete(&member, &delivery, ("x", token, DONE), follow_ups).unwrap_err();
    assert_eq!(refused.field, "publishes[0].tenant");
}

#[test]
fn a_lease_completes_only_the_execution_it_is_on() {
    let (mut world, member, delivery, token) = begun();
    world.publish(vec![request("w", "y")]);
    let second = session(2);
    let of_event = world.fetch(&member, 10);
    assert!(of_event.iter().all(|d| &*d.task_id == "w"));
    let of_y = of_event[0].clone();
    let refused = world.try_complete(&member, &of_y, ("x", token, DONE), vec![]).unwrap_err();
    assert_eq!(refused.field, "execution_id", "under the lease on the request of y");
    world.publish(vec![event("e", "plain")]);
    let plain = world.fetch(&second, 1).remove(0);
    let refused = world.try_complete(&second, &plain, ("x", token, DONE), vec![]).unwrap_err();
    assert_eq!(refused.field, "epoch", "under a lease on a message that asks for nothing");
    assert_eq!(world.explain("x").execution.state, ExecutionState::Begun);
    accepted_now(&world.complete(&member, &delivery, "x", token, DONE));
}

fn accepted_now(result: &CompleteResult) {
    assert!(!parts(result).0, "{result:?}");
}

#[test]
fn a_complete_without_a_begin_is_refused_even_with_a_token_that_others_have() {
    let mut world = World::new();
    world.publish(vec![request("t", "x")]);
    let member = session(1);
    let delivery = world.fetch(&member, 1).remove(0);
    let refused = world.try_complete(&member, &delivery, ("x", Epoch(77), DONE), vec![]).unwrap_err();
    assert_eq!(refused.field, "fencing_token");
    world.done(&member, &delivery);
    let late = world.complete(&member, &delivery, "x", Epoch(77), DONE);
    assert_eq!(late, CompleteResult::LeaseLost);
    assert_eq!(world.explain("x").execution.remarks.len(), 0, "there is nothing it could be evidence of");
}

#[test]
fn only_the_group_of_the_begin_completes_it_late_and_nobody_while_another_lease_carries_it() {
    let (mut world, member, delivery, token) = begun();
    world.create(spec("h"));
    let stranger = session_of("h", 9);
    let stolen = world.complete(&stranger, &delivery, "x", token, DONE);
    assert_eq!(stolen, CompleteResult::LeaseLost, "its holder lives");
    world.pass(30_000);
    let stolen = world.complete(&stranger, &delivery, "x", token, DONE);
    assert_eq!(stolen, CompleteResult::LeaseLost, "another group has no part in it");
    assert_eq!(world.explain("x").execution.state, ExecutionState::Unknown);
    let late = world.complete(&member, &delivery, "x", token, DONE);
    assert!(parts(&late).0);
}

#[test]
fn a_session_acts_in_its_own_group_only() {
    let (mut world, member, delivery, token) = begun();
    world.create(spec("h"));
    let mixed = SessionRef { group: group_ref("h"), ..member.clone() };
    assert_eq!(world.done(&mixed, &delivery), SettleResult::LeaseLost);
    assert_eq!(world.complete(&mixed, &delivery, "x", token, DONE), CompleteResult::LeaseLost);
    world.call(Command::Leave(mixed));
    assert_eq!(world.info("g").in_flight, 2, "nothing changed");
    world.call(Command::Leave(member));
    assert_eq!(world.info("g").in_flight, 0);
}

#[test]
fn a_complete_frees_those_who_wait_with_its_result_and_tells_its_holder_nothing() {
    let (mut world, member, delivery, token) = begun();
    world.create(spec("h"));
    let other = session_of("h", 2);
    let waiting = world.fetch(&other, 10).into_iter().find(|d| &*d.task_id == "t").unwrap();
    assert!(matches!(world.begin(&other, &waiting), crate::model::BeginResult::InProgress { .. }));
    world.complete(&member, &delivery, "x", token, DONE);
    let Reply::Joined { notices, .. } = world.call(Command::Heartbeat(member)) else { panic!() };
    assert_eq!(notices, vec![]);
    let again = world.fetch(&other, 10).into_iter().find(|d| d.offset.get() == 0).unwrap();
    assert_eq!(again.execution.unwrap().state, ExecutionState::Completed);
}

#[test]
fn a_deadline_ends_an_idempotent_execution_that_was_begun_and_given_back() {
    for restart in [false, true] {
        for retry in [false, true] {
            let mut world = World::new();
            let at = world.now.get() + 1_000;
            let asks = request("t", "x").effect(Effect::Idempotent).with(|m| m.deadline_unix_ms = at);
            world.publish(vec![asks, event("t", "behind")]);
            let member = SessionRef { timeout_ms: 600_000, ..session(1) };
            let delivery = world.fetch(&member, 1).remove(0);
            let token = world.begun(&member, &delivery);
            let delay = Outcome::Retry { delay_ms: 60_000, reason: String::new() };
            let outcome = if retry { delay } else { Outcome::Release };
            assert_eq!(world.settle(&member, &delivery, outcome), SettleResult::Ok);
            if restart {
                world.checkpoint();
                world.restart();
            }
            world.pass(1_000);
            assert_eq!(world.fetch(&member, 10), vec![], "nobody tries again");
            let story = world.explain("x");
            assert_eq!(story.execution.unknown_reason, Some(UnknownReason::Deadline), "retry {retry}");
            assert_eq!(world.audit("g").info.held, 1);
            assert!(parts(&world.complete(&member, &delivery, "x", token, DONE)).0, "its late result counts");
            assert_eq!(world.info("g").held, 0);
        }
    }
}
