//! Going down in order.

use crate::process::{
    Member, PATIENCE, Server, TENANT, event, execution, gauge, get, group_now, make_group, message, publish, report,
    request, retry, settlement, to_desk, try_publish, within,
};
use std::time::{Duration, Instant};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use weir_proto::v1::{ExecutionState, FinalState, SettleOutcome, extend_result, settle_result};

const LIMIT: Duration = Duration::from_secs(3);
const LEASE_MS: u64 = 60_000;

fn is_refused_as_draining<T: std::fmt::Debug>(answer: Result<T, Status>) {
    let status = answer.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert_eq!(status.get_details_error_info().unwrap().reason, "DRAINING");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s21_a_drain_takes_results_until_its_limit_and_loses_nothing() {
    let mut server = Server::start(&["--drain-limit-ms", &LIMIT.as_millis().to_string()]);
    let g = make_group(&server, "g").await;
    publish(&server, (1..=3).map(|n| request(&format!("t{n}"), &format!("m{n}"), &format!("x{n}"))).collect()).await;
    let mut a = Member::new(&server, &g, "a").leasing_for(LEASE_MS);
    let mut out = a.fetch(3, 0).await;
    out.sort_by_key(|delivery| delivery.offset);
    let [x1, x2, x3] = &out[..] else { panic!("{out:?}") };
    publish(&server, vec![event("t4", "m4")]).await;
    let m4 = a.fetch(1, 0).await.remove(0);
    a.settle(retry(&m4, 1_000)).await;
    let waiting = tokio::spawn({
        let mut b = Member::new(&server, &g, "b");
        async move { b.try_fetch(1, 30_000).await }
    });
    within(PATIENCE, "b waits", || gauge(&server, "weir_waiting_fetches") == Some(1));

    server.terminate();
    let told = Instant::now();
    let nothing = tokio::time::timeout(Duration::from_secs(1), waiting).await.expect("a waiting fetch ends within 1 s");
    if let Ok(deliveries) = nothing.unwrap() {
        assert!(deliveries.is_empty(), "nothing new is delivered: {deliveries:?}");
    }
    is_refused_as_draining(try_publish(&server, to_desk(vec![event("t5", "m5")])).await);
    is_refused_as_draining(a.try_begin(x1).await);
    assert_eq!((get(&server, "/readyz").0, get(&server, "/healthz").0), (503, 200));

    tokio::time::sleep(LIMIT / 4).await;
    publish(&server, vec![report("t1", "r1", "x1", FinalState::Failed)]).await;
    a.done(x1).await;
    tokio::time::sleep(LIMIT / 6).await;
    let nacked = a.settle(retry(x2, 0)).await;
    assert!(matches!(nacked, settle_result::Result::Ok(_)), "{nacked:?}");
    let extended = a.extend(x3, LEASE_MS).await;
    assert!(matches!(extended, extend_result::Result::Ok(_)), "{extended:?}");
    // By now m4 has waited long enough, and x2 is ready too.
    tokio::time::sleep(LIMIT / 4).await;
    is_refused_as_draining(Member::new(&server, &g, "c").try_fetch(1, 0).await);
    assert_eq!(server.ended(), Some(0));
    let took = told.elapsed();
    assert!(took >= LIMIT, "x3 was still out: {took:?}");
    assert!(took <= LIMIT + Duration::from_secs(1), "{took:?}");

    server.start_again();
    assert_eq!(execution(&server, "x1").await.state(), ExecutionState::Failed);
    let mut next = Member::new(&server, &g, "next").lost_after(3_600_000);
    let came = next.gather(3, Duration::from_secs(2)).await;
    assert!(next.fetch(10, 0).await.is_empty(), "m1 is settled, m3 still leased");
    let ids: Vec<_> = came.iter().map(|delivery| (message(delivery).message_id, delivery.attempt)).collect();
    let expected = [("m2", 2), ("m4", 2), ("r1", 1)].map(|(id, attempt)| (id.to_owned(), attempt));
    assert_eq!(ids, expected);
    server.advance(LEASE_MS + 2_000).await;
    let third = next.fetch_one_within(Duration::from_secs(2)).await;
    assert_eq!((message(&third).message_id.as_str(), third.attempt), ("m3", 2), "when its lease has ended");
    assert_eq!(group_now(&server, &g).await.parked, 0);
    assert_eq!(server.json(&["audit"])["balanced"], true);
}

#[tokio::test]
async fn s21_a_drain_without_work_out_ends_at_once_and_one_with_work_when_it_is_in() {
    let mut server = Server::start(&["--drain-limit-ms", "60000"]);
    let g = make_group(&server, "g").await;
    server.terminate();
    let told = Instant::now();
    assert_eq!(server.ended(), Some(0));
    assert!(told.elapsed() < Duration::from_secs(2), "{:?}", told.elapsed());

    server.start_again();
    publish(&server, vec![request("t1", "m1", "x1")]).await;
    let mut a = Member::new(&server, &g, "a");
    let delivery = a.fetch(1, 1_000).await.remove(0);
    let token = a.begin(&delivery).await;
    server.terminate();
    within(PATIENCE, "the drain has begun", || get(&server, "/readyz").0 == 503);
    a.complete(&delivery, token).await;
    assert_eq!(server.ended(), Some(0));
    server.start_again();
    let story = server.json(&["execution", "explain", "--tenant", TENANT, "x1"]);
    assert_eq!(story["verdict"], "EFFECT_ONCE", "{story}");
    let late = a.again(&server).settle(settlement(&delivery, SettleOutcome::Done)).await;
    assert!(matches!(late, settle_result::Result::AlreadySettled(_)), "{late:?}");
}
