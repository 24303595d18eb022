//! Publish: duplicates, order, limits, deadlines.

use super::harness::*;
use crate::model::{
    ChannelRef, CompleteResult, DuplicateKind, ExecutionState, FinalState, Level, PublishResult, Reason, UnixMillis,
    policy::ChannelPolicy,
};

fn duplicate(result: &PublishResult) -> &crate::model::Duplicate {
    match result {
        PublishResult::Duplicate(duplicate) => duplicate,
        PublishResult::Stored(offset) => panic!("stored at {offset}"),
    }
}

#[test]
fn offsets_are_dense_from_zero() {
    let mut world = World::new();
    assert_eq!(offsets(&world.publish(vec![event("t", "1"), event("u", "2")])), vec![0, 1]);
    assert_eq!(offsets(&world.publish(vec![event("t", "3")])), vec![2]);
}

#[test]
fn a_message_id_repeats_within_its_task_only() {
    let mut world = World::new();
    world.publish(vec![event("t", "1"), event("u", "1")]);
    world.checkpoint();
    let results =
        world.publish(vec![event("u", "1"), event("v", "1"), event("t", "1").with(|m| m.payload = "x".into())]);
    assert_eq!(offsets(&results), vec![1, 2, 0]);
    assert!(duplicate(&results[0]).payload_matches);
    assert!(!is_duplicate(&results[1]));
    assert!(!duplicate(&results[2]).payload_matches);
}

#[test]
fn repeats_within_one_publish_are_found() {
    let mut world = World::new();
    let results = world.publish(vec![
        event("t", "1"),
        event("t", "1"),
        report("t", "2", "x", FinalState::Failed),
        report("t", "3", "x", FinalState::Failed),
        event("t", "4"),
    ]);
    assert_eq!(offsets(&results), vec![0, 0, 1, 1, 2]);
    assert_eq!(duplicate(&results[3]).kind, DuplicateKind::Pair);
}

#[test]
fn s08_the_pair_is_the_identity_nothing_coarser_or_finer() {
    for restart in [false, true] {
        let mut world = World::new();
        let story = vec![
            request("t", "x1").with(|m| m.message_id = "1".into()),
            event("t", "2").with(|m| m.execution_id = "x1".into()),
            event("t", "3").with(|m| m.execution_id = "x1".into()),
            report("t", "4", "x1", FinalState::Failed),
            report("t", "5", "x1", FinalState::Failed),
            event("t", "6").with(|m| m.execution_id = "x2".into()),
            report("t", "7", "x2", FinalState::Completed),
            report("t", "8", "x1", FinalState::Failed),
        ];
        let mut stored = Vec::new();
        for (i, draft) in story.into_iter().enumerate() {
            if restart {
                if i % 2 == 0 {
                    world.checkpoint();
                }
                world.restart();
            }
            stored.push(world.publish(vec![draft]).remove(0));
        }
        assert_eq!(offsets(&stored), vec![0, 1, 2, 3, 3, 4, 5, 3]);
        let depth = world.info("g").depth();
        let other = report("t", "9", "x2", FinalState::Completed).with(|m| m.payload = "other".into());
        let repeat = world.publish(vec![other]).remove(0);
        assert_eq!(duplicate(&repeat).offset.get(), 5);
        assert!(!duplicate(&repeat).payload_matches);
        assert_eq!(duplicate(&repeat).execution.as_ref().unwrap().state, ExecutionState::Completed);
        assert_eq!(world.info("g").depth(), depth);
        let member = session(1);
        for _ in 0..6 {
            for delivery in world.fetch(&member, 10) {
                world.done(&member, &delivery);
            }
        }
        assert_eq!(world.audit("g").info.counts.settled_total(), 6);
        let elsewhere = report("another-task", "10", "x2", FinalState::Completed);
        assert_eq!(duplicate(&world.publish(vec![elsewhere]).remove(0)).offset.get(), 5, "whatever the task");
        assert_eq!(world.explain("x2").execution.payload_mismatches, 2);
    }
}

#[test]
fn a_pair_repeats_over_channels_of_the_tenant_and_not_over_tenants() {
    let mut world = World::new();
    world.publish(vec![report("t", "1", "x", FinalState::Completed)]);
    let other = ChannelRef { agent: "other".to_owned(), ..channel() };
    let again = world.try_publish_to(other, vec![report("t", "2", "x", FinalState::Completed)]).unwrap();
    assert_eq!(duplicate(&again.results[0]).channel, channel());
    let tenant = ChannelRef { tenant: "globex".to_owned(), ..channel() };
    let elsewhere = world.try_publish_to(tenant, vec![report("t", "1", "x", FinalState::Completed)]).unwrap();
    assert!(!is_duplicate(&elsewhere.results[0]));
}

#[test]
fn s07_a_refused_publish_leaves_no_dedup_mark() {
    let mut world = World::new();
    world.call(super::super::Command::PutPolicy(ChannelPolicy {
        max_depth: Some(1),
        ..ChannelPolicy::named("task_events")
    }));
    world.publish(vec![report("t", "1", "x1", FinalState::Completed)]);
    let refused = world.try_publish(vec![report("u", "2", "x2", FinalState::Completed)]).unwrap_err();
    assert_eq!(refused.reason, Reason::DepthExceeded);
    assert!(refused.retry_after_ms.is_some());
    let repeat = world.publish(vec![report("t", "1b", "x1", FinalState::Completed)]);
    assert!(is_duplicate(&repeat[0]), "a repeat is answered even when full");
    let member = session(1);
    let delivery = world.fetch(&member, 1).remove(0);
    world.done(&member, &delivery);
    let stored = world.publish(vec![report("u", "2", "x2", FinalState::Completed)]);
    assert_eq!(offsets(&stored), vec![1]);
    assert!(!is_duplicate(&stored[0]));
    assert_eq!(world.fetch(&member, 1).len(), 1);
}

#[test]
fn on_a_full_disk_new_work_is_refused_and_what_is_begun_is_finished() {
    let mut world = World::new();
    world.publish(vec![request("t", "x"), request("u", "y"), event("v", "1")]);
    let member = session(1);
    let got = world.fetch(&member, 3);
    let token = world.begun(&member, &got[0]);
    world.engine.set_storage_full(true);
    let refused = world.try_publish(vec![event("w", "2")]).unwrap_err();
    assert_eq!(refused.reason, Reason::StorageFull);
    assert!(refused.retry_after_ms.is_some());
    assert!(is_duplicate(&world.publish(vec![event("v", "1")])[0]), "a repeat takes no room");
    let end = world.publish(vec![report("u", "3", "y", FinalState::Completed)]);
    assert!(!is_duplicate(&end[0]), "a result is taken");
    let outcome = world.complete(&member, &got[0], "x", token, FinalState::Completed);
    assert!(matches!(outcome, CompleteResult::Accepted { late: false, .. }), "{outcome:?}");
    world.done(&member, &got[2]);
    world.engine.set_storage_full(false);
    assert!(!is_duplicate(&world.publish(vec![event("w", "2")])[0]), "the refusal left no mark");
}

#[test]
fn at_the_limit_only_finishing_work_is_admitted() {
    let mut world = World::new();
    world.call(super::super::Command::PutPolicy(ChannelPolicy {
        max_depth: Some(2),
        ..ChannelPolicy::named("task_events")
    }));
    world.publish(vec![request("t", "x"), event("u", "1")]);
    assert_eq!(world.try_publish(vec![event("v", "2")]).unwrap_err().reason, Reason::DepthExceeded);
    let end = world.try_publish(vec![report("t", "3", "x", FinalState::Completed)]).unwrap();
    assert_eq!(offsets(&end.results), vec![2]);
    assert_eq!((end.depth, end.level), (3, Level::Full));
    let second = world.try_publish(vec![report("t", "4", "x", FinalState::Failed)]).unwrap_err();
    assert_eq!(second.reason, Reason::DepthExceeded, "only the first final state finishes it");
}

#[test]
fn a_past_deadline_refuses_new_work_but_no_report() {
    let mut world = World::new();
    let past = |draft: Draft| draft.with(|m| m.deadline_unix_ms = 5);
    let refused = world.try_publish(vec![event("t", "1"), past(request("t", "x"))]).unwrap_err();
    assert_eq!((refused.reason, refused.field.as_str()), (Reason::DeadlinePassed, "messages[1].deadline_unix_ms"));
    assert_eq!(world.info("g").counts.offered, 0, "all or none");
    world.publish(vec![past(report("t", "2", "x", FinalState::Completed))]);
}

#[test]
fn first_definite_state_wins_and_a_second_is_stored_and_flagged() {
    for restart in [false, true] {
        let mut world = World::new();
        let reports = [
            report("t", "1", "x1", FinalState::Unknown),
            report("t", "2", "x1", FinalState::Unknown),
            report("t", "3", "x1", FinalState::Completed),
            report("t", "4", "x1", FinalState::Unknown),
            report("t", "5", "x3", FinalState::Failed),
            report("t", "6", "x3", FinalState::Completed),
        ];
        let mut states = Vec::new();
        let mut stored = Vec::new();
        for draft in reports {
            if restart {
                world.restart();
            }
            let id = draft.0.execution_id.clone();
            stored.extend(world.publish(vec![draft]));
            states.push(world.explain(&id).execution.state);
        }
        use ExecutionState::{Completed, Failed, Unknown};
        assert_eq!(states, vec![Unknown, Unknown, Completed, Completed, Failed, Failed]);
        assert_eq!(offsets(&stored), vec![0, 0, 1, 0, 2, 3]);
        assert!(world.explain("x3").execution.contradiction);
        assert!(!world.explain("x1").execution.contradiction);
    }
}

#[test]
fn a_fenced_report_is_refused_and_kept_as_evidence() {
    let mut world = World::new();
    world.publish(vec![request("t", "x")]);
    let member = session(1);
    let delivery = world.fetch(&member, 1).remove(0);
    let token = world.begun(&member, &delivery);
    let wrong = report("t", "2", "x", FinalState::Completed).with(|m| m.fencing_token = token.get() + 7);
    let refused = world.try_publish(vec![wrong]).unwrap_err();
    assert_eq!((refused.reason, refused.field.as_str()), (Reason::Fenced, "messages[0].fencing_token"));
    assert_eq!(world.explain("x").execution.remarks.len(), 1);
    let right = report("t", "2", "x", FinalState::Completed).with(|m| m.fencing_token = token.get());
    assert_eq!(offsets(&world.publish(vec![right])), vec![1]);
    assert!(world.now > UnixMillis(0));
}

#[test]
fn s07_a_report_under_a_taken_message_id_is_refused_not_swallowed() {
    for restart in [false, true] {
        let mut world = World::new();
        world.publish(vec![request("t", "x").with(|m| m.message_id = "1".into())]);
        if restart {
            world.checkpoint();
            world.restart();
        }
        let under = |id: &str| report("t", id, "x", FinalState::Completed);
        let refused = world.try_publish(vec![event("t", "2"), under("1")]).unwrap_err();
        assert_eq!((refused.reason, refused.field.as_str()), (Reason::InvalidArgument, "messages[1].message_id"));
        let refused = world.try_publish(vec![event("t", "2"), under("2")]).unwrap_err();
        assert_eq!(refused.field, "messages[1].message_id", "nor under that of an earlier one in the same publish");
        assert_eq!(world.explain("x").execution.state, ExecutionState::Requested);
        assert_eq!(world.info("g").counts.offered, 1, "all or none");
        world.publish(vec![under("3")]);
        let repeat = world.publish(vec![under("3")]);
        assert_eq!(duplicate(&repeat[0]).kind, DuplicateKind::MessageId);
    }
}

#[test]
fn a_message_that_would_never_be_handed_out_is_refused() {
    let mut world = World::new();
    let now = world.now.get();
    let later = |at: u64| event("t", "1").with(|m| m.not_before_unix_ms = now + at);
    let cases = [
        later(1_000).with(|m| m.ttl_ms = 1_000),
        later(1_000).with(|m| m.deadline_unix_ms = now + 1_000),
        later(ChannelPolicy::named("task_events").retention_ms),
    ];
    for case in cases {
        let refused = world.try_publish(vec![case]).unwrap_err();
        assert_eq!(refused.field, "messages[0].not_before_unix_ms");
    }
    let in_time = later(999).with(|m| m.ttl_ms = 1_000);
    assert_eq!(offsets(&world.publish(vec![in_time])), vec![0]);
}

#[test]
fn a_policy_that_wants_artifacts_wants_them_of_operators_too() {
    let mut world = World::new();
    world.call(super::super::Command::PutPolicy(ChannelPolicy {
        require_artifact: true,
        ..ChannelPolicy::named("task_events")
    }));
    world.publish(vec![report("t", "1", "x", FinalState::Unknown)]);
    let refused = world.resolve("x", Some(FinalState::Completed)).unwrap_err();
    assert_eq!((refused.reason, refused.field.as_str()), (Reason::InvalidArgument, "artifact_ref"));
    world.resolve("x", Some(FinalState::Failed)).unwrap();
}

#[test]
fn the_story_dates_repeats_and_counts_requests() {
    let mut world = World::new();
    world.publish(vec![request("t", "x"), request("t", "x").with(|m| m.message_id = "again".into())]);
    let first = world.now;
    world.pass(70);
    world.publish(vec![request("t", "x")]);
    let story = world.explain("x");
    let repeat = story.story.iter().find(|(_, line)| line.contains("repeat")).unwrap();
    assert_eq!(repeat.0, world.now);
    assert!(story.story[0].1.contains("stored twice"), "{story:?}");
    assert_eq!(story.story[0].0, first);
    assert!(story.summary.contains("requested twice") && story.summary.contains("published again once"), "{story:?}");
}

#[test]
fn s12_what_is_behind_more_expired_messages_than_a_turn_looks_at_comes_in_the_next_turn() {
    let mut world = World::new();
    for n in 0..6 {
        let expiring = |k| event("t", &format!("{n}-{k}")).with(|m| m.ttl_ms = 1_000);
        world.publish((0..1_000).map(expiring).collect());
    }
    world.pass(2_000);
    world.publish(vec![event("t", "last")]);
    let waiting = world.start_fetch(&session(1), 1, 20_000);
    assert!(world.engine.next_due().is_some_and(|due| due <= world.now), "there is more to do at once");
    world.pass(0);
    assert_eq!(world.fetched(waiting).expect("it waits no longer").len(), 1);
    assert_eq!(world.audit("g").info.counts.gone_total(), 6_000);
}
