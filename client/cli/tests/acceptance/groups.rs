//! Groups: where they start, and what becomes of what their members held.

use crate::process::{
    Member, POLICY, Placed, Server, TENANT, event, gauge, group, group_now, make_group, message, publish, request,
    retry, settlement, try_make_group,
};
use std::time::Duration;
use tonic::Code;
use tonic_types::StatusExt as _;
use weir_proto::v1::execution_service_client::ExecutionServiceClient;
use weir_proto::v1::{
    self, ExecutionState, GroupSettings, GroupStart, SettleOutcome, StartFrom, extend_result, settle_result,
};

const LEASE_MS: u64 = 10_000;

#[tokio::test]
async fn s02_a_holder_whose_lease_is_over_changes_nothing() {
    let mut server = Server::start(&[]);
    let g = make_group(&server, "g").await;
    publish(&server, vec![event("t1", "x1")]).await;
    let mut a = Member::new(&server, &g, "a").leasing_for(LEASE_MS);
    let mut b = Member::new(&server, &g, "b").lost_after(3_600_000);
    let la = a.fetch(1, 0).await.remove(0);
    let extended = a.extend(&la, LEASE_MS).await;
    assert!(matches!(extended, extend_result::Result::Ok(_)), "{extended:?}");
    server.advance(LEASE_MS + 1_000).await;
    let lb = b.fetch(1, 0).await.remove(0);
    assert_eq!((la.attempt, lb.attempt), (1, 2));
    assert!(matches!(b.settle(retry(&lb, 60_000)).await, settle_result::Result::Ok(_)));
    for restart in [false, true] {
        if restart {
            server.crash_at_the_same_time().await;
            (a, b) = (a.again(&server), b.again(&server));
        }
        let extended = a.extend(&la, LEASE_MS).await;
        assert!(matches!(extended, extend_result::Result::LeaseLost(_)), "{extended:?}");
        for stale in [retry(&la, 1), settlement(&la, SettleOutcome::Done), settlement(&la, SettleOutcome::Release)] {
            let answer = a.settle(stale).await;
            assert!(matches!(answer, settle_result::Result::LeaseLost(_)), "{answer:?}");
        }
        let now = group_now(&server, &g).await;
        assert_eq!((now.depth, now.delayed, now.in_flight), (1, 1, 0));
    }
    server.advance(58_000).await;
    assert!(b.fetch(1, 0).await.is_empty(), "the delay is as long as b said");
    server.advance(2_000).await;
    let third = b.fetch(1, 0).await.remove(0);
    assert_eq!(third.attempt, 3);
    b.done(&third).await;
    server.crash_at_the_same_time().await;
    (a, b) = (a.again(&server), b.again(&server));
    let stale = a.settle(settlement(&la, SettleOutcome::Done)).await;
    assert!(matches!(stale, settle_result::Result::LeaseLost(_)), "{stale:?}");
    let again = b.settle(settlement(&third, SettleOutcome::Done)).await;
    assert!(matches!(again, settle_result::Result::AlreadySettled(_)), "{again:?}");
    assert_eq!(group_now(&server, &g).await.depth, 0);
}

/// At every look as many messages are in flight as there are live leases.
fn in_flight(server: &Server) -> u64 {
    let in_flight = gauge(server, "weir_group_inflight{tenant=\"acme\",policy=\"task_events\",group=\"g\"}").unwrap();
    assert_eq!(gauge(server, "weir_leases"), Some(in_flight));
    in_flight
}

async fn nothing_runs_for_ever_after_a_crash(lease_ms: u64) {
    let mut server = Server::start(&[]);
    let window = GroupSettings { window: 3, ..Default::default() };
    try_make_group(&server, group("g"), window).await.unwrap();
    publish(&server, (1..=3).map(|n| request(&format!("t{n}"), &format!("m{n}"), &format!("x{n}"))).collect()).await;
    let mut a = Member::new(&server, &group("g"), "a").leasing_for(lease_ms);
    assert_eq!(a.fetch(10, 0).await.len(), 3);
    assert_eq!(in_flight(&server), 3);
    server.crash_at_the_same_time().await;
    assert_eq!(in_flight(&server), 3, "a may still work on them");
    let mut b = Member::new(&server, &group("g"), "b").lost_after(3_600_000);
    publish(&server, vec![request("t4", "m4", "x4")]).await;
    assert!(b.fetch(10, 0).await.is_empty(), "the window is full");
    server.advance(30_000).await;
    let three = b.gather(3, Duration::from_secs(2)).await;
    assert!(b.fetch(10, 0).await.is_empty(), "the window is full again");
    assert_eq!(in_flight(&server), 3);
    b.done(&three[0]).await;
    let last = b.fetch_one_within(Duration::from_secs(2)).await;
    let mut came: Vec<_> =
        three.iter().chain([&last]).map(|delivery| (message(delivery).message_id, delivery.attempt)).collect();
    came.sort();
    assert_eq!(came, [("m1", 2), ("m2", 2), ("m3", 2), ("m4", 1)].map(|(id, attempt)| (id.to_owned(), attempt)));
    for delivery in three[1..].iter().chain([&last]) {
        b.done(delivery).await;
    }
    assert_eq!(in_flight(&server), 0);
    assert_eq!(group_now(&server, &group("g")).await.depth, 0);
    let request = v1::ListExecutionsRequest { tenant: TENANT.into(), ..Default::default() };
    let all = ExecutionServiceClient::new(server.wire()).list_executions(request).await.unwrap().into_inner();
    let states: Vec<_> = all.executions.iter().map(v1::Execution::state).collect();
    assert_eq!(states, [ExecutionState::Requested; 4], "nobody reported anything");
    assert_eq!(server.json(&["audit"])["balanced"], true);
}

#[tokio::test]
async fn s10_nothing_runs_for_ever_after_a_crash_where_leases_live_with_their_session() {
    nothing_runs_for_ever_after_a_crash(0).await;
}

#[tokio::test]
async fn s10_nothing_runs_for_ever_after_a_crash_where_leases_have_an_end_of_their_own() {
    nothing_runs_for_ever_after_a_crash(30_000).await;
}

/// What a new member of the group is handed, until nothing more comes.
async fn reads(server: &Server, group: &v1::GroupRef) -> Vec<String> {
    let mut member = Member::new(server, group, "reader").lost_after(3_600_000);
    let mut ids: Vec<_> = member.drain().await.into_iter().map(|(message, _)| message.message_id).collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn s20_a_groups_start_is_fixed_when_it_is_made() {
    let mut server = Server::start(&[]);
    let e = |n: u64| event(&format!("t{}", n % 2), &format!("e{n}"));
    publish(&server, (1..=3).map(e).collect()).await;
    let (one, two) = tokio::join!(
        try_make_group(&server, group("g"), GroupSettings::default()),
        try_make_group(&server, group("g"), GroupSettings::default())
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    assert!(one.created != two.created, "one made it, both have it");
    let (mut a, mut b) = (Member::new(&server, &group("g"), "a"), Member::new(&server, &group("g"), "b"));
    assert_eq!(a.fetch(1, 0).await.len() + b.fetch(1, 0).await.len(), 2);
    publish(&server, vec![e(4)]).await;
    server.crash_at_the_same_time().await;
    publish(&server, vec![e(5)]).await;
    server.advance(30_000).await;
    assert_eq!(reads(&server, &group("g")).await, ["e1", "e2", "e3", "e4", "e5"]);

    let latest =
        GroupSettings { start: Some(GroupStart { from: StartFrom::Latest.into(), offset: 0 }), ..Default::default() };
    try_make_group(&server, group("latest"), latest.clone()).await.unwrap();
    publish(&server, vec![e(6)]).await;
    server.crash_at_the_same_time().await;
    publish(&server, vec![e(7)]).await;
    assert!(!try_make_group(&server, group("latest"), latest).await.unwrap().created, "made again is no fault");
    let other = try_make_group(&server, group("latest"), GroupSettings::default()).await.unwrap_err();
    assert_eq!(other.code(), Code::AlreadyExists, "with another start it is: {other:?}");
    assert_eq!(reads(&server, &group("latest")).await, ["e6", "e7"]);

    server.advance(8 * 24 * 3_600_000).await;
    publish(&server, vec![e(8)]).await;
    assert_eq!(reads(&server, &group("g")).await, ["e6", "e7", "e8"], "it goes on where it was after eight days");
    assert_eq!(server.json(&["audit"])["balanced"], true);
}

#[tokio::test]
async fn s20_a_start_offset_beyond_the_end_is_refused_with_the_range_and_makes_no_group() {
    let mut server = Server::start(&[]);
    publish(&server, (0..4).map(|n| event("t", &format!("e{n}"))).collect()).await;
    let at = |offset| GroupSettings {
        selector: "acme:desk".into(),
        start: Some(GroupStart { from: StartFrom::Offset.into(), offset }),
        ..Default::default()
    };
    for restart in [false, true] {
        if restart {
            server.crash_and_start();
        }
        let beyond = try_make_group(&server, group("beyond"), at(5)).await.unwrap_err();
        assert_eq!(beyond.code(), Code::OutOfRange, "{beyond:?}");
        let info = beyond.get_details_error_info().unwrap();
        assert_eq!((info.domain.as_str(), info.reason.as_str()), ("weir", "OFFSET_BEYOND_END"));
        assert_eq!((info.metadata["earliest"].as_str(), info.metadata["latest"].as_str()), ("0", "4"));
        let gone = server.weirctl(&["group", "get", "--policy", POLICY, "--scope", TENANT, "beyond"]);
        assert_eq!(gone.status.code(), Some(3), "no such group");
        let name = if restart { "after" } else { "before" };
        try_make_group(&server, group(name), at(2)).await.unwrap();
        assert_eq!(reads(&server, &group(name)).await, ["e2", "e3"]);
    }
    try_make_group(&server, group("end"), at(4)).await.unwrap();
    assert_eq!(publish(&server, vec![event("t", "e4")]).await, [Placed::Stored(4)]);
    assert_eq!(reads(&server, &group("end")).await, ["e4"], "the end itself is a place to start from");
}
