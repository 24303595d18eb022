//! Fetches that their callers give up.

use crate::process::{
    Dice, Member, PATIENCE, Proxy, Server, event, gauge, group_now, make_group, message, publish, rounds, within,
};
use std::time::Duration;

/// A fetch that waits for up to 30 s, in a task of its own.
fn waiting(member: &Member) -> tokio::task::JoinHandle<Option<Vec<weir_proto::v1::Delivery>>> {
    let mut member = member.clone();
    tokio::spawn(async move { member.try_fetch(1, 30_000).await.ok() })
}

fn waiting_fetches(server: &Server, count: u64, limit: Duration) {
    within(limit, &format!("{count} fetches wait"), || gauge(server, "weir_waiting_fetches") == Some(count));
}

/// Twenty fetches of one member, each given up by its caller once it waits: every other one by a dropped future, the rest
/// by a cut connection.
async fn abandon_twenty(server: &Server, member: &Member) {
    for n in 0..20 {
        if n % 2 == 0 {
            let fetch = waiting(&member.over(server.wire()));
            waiting_fetches(server, 1, PATIENCE);
            fetch.abort();
        } else {
            let proxy = Proxy::to(server).await;
            let fetch = waiting(&member.over(proxy.wire()));
            waiting_fetches(server, 1, PATIENCE);
            proxy.cut();
            assert_eq!(fetch.await.unwrap(), None, "the caller sees that its connection is gone");
        }
        waiting_fetches(server, 0, Duration::from_secs(2));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s19_an_abandoned_fetch_gets_nothing() {
    let mut server = Server::start(&[]);
    let g = make_group(&server, "g").await;
    let mut member = Member::new(&server, &g, "m").lost_after(60_000);
    for round in 0..2 {
        abandon_twenty(&server, &member).await;
        let id = format!("x{round}");
        publish(&server, vec![event("t1", &id)]).await;
        let delivery = member.fetch_one_within(Duration::from_secs(1)).await;
        assert_eq!((message(&delivery).message_id, delivery.attempt, delivery.acquired), (id, 1, 1));
        assert_eq!(group_now(&server, &g).await.in_flight, 1);
        member.done(&delivery).await;
        server.crash_and_start();
        member = member.again(&server);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s19_waiting_members_that_are_killed_leave_their_places_at_once() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let g = make_group(&server, "g").await;
    let members: Vec<_> = (0..4)
        .map(|n| {
            let name = format!("m{n}");
            let words = ["sub", "--policy", "task_events", "--group", "g", "--scope", "acme", "--member", &name];
            server.weirctl_into(&folder.path().join(&name), &words)
        })
        .collect();
    waiting_fetches(&server, 4, PATIENCE);
    for member in members {
        member.kill();
    }
    waiting_fetches(&server, 0, Duration::from_secs(2));
    publish(&server, vec![event("t1", "x1")]).await;
    let delivery = Member::new(&server, &g, "m").fetch_one_within(Duration::from_secs(1)).await;
    assert_eq!((delivery.attempt, delivery.acquired), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s19_when_publish_and_cancel_race_nothing_is_lost_and_nothing_waits_for_a_lease() {
    let mut dice = Dice::new("publish against cancel");
    let server = Server::start(&[]);
    let g = make_group(&server, "g").await;
    let mut member = Member::new(&server, &g, "m").lost_after(60_000);
    let mut repeats = 0;
    for round in 0..rounds(60, 500) {
        let proxy = Proxy::to(&server).await;
        let cut = round % 2 == 0;
        let fetch = waiting(&member.over(if cut { proxy.wire() } else { server.wire() }));
        waiting_fetches(&server, 1, PATIENCE);
        let id = format!("x{round}");
        let pause = dice.millis(3);
        let cancel = async {
            tokio::time::sleep(pause).await;
            if cut {
                proxy.cut();
            } else {
                fetch.abort();
            }
            fetch.await
        };
        let (_, cancelled) = tokio::join!(publish(&server, vec![event("t1", &id)]), cancel);
        drop(cancelled);
        let delivery = member.fetch_one_within(Duration::from_secs(2)).await;
        assert_eq!((message(&delivery).message_id, delivery.attempt), (id, 1), "round {round}");
        repeats += u32::from(delivery.acquired > 1);
        member.done(&delivery).await;
    }
    eprintln!("{repeats} had been on their way to nobody");
    let group = group_now(&server, &g).await;
    assert_eq!((group.depth, group.in_flight, group.parked), (0, 0, 0));
    assert_eq!(server.json(&["audit"])["balanced"], true);
}
