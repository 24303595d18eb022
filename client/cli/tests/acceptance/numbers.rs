//! Numbers: what the metrics say is what the queries say, and both are the truth.

use crate::process::{
    Member, Server, event, gauge, group_now, make_group, message, publish, request, retry, settlement,
};
use std::collections::BTreeMap;
use weir_proto::v1::{Delivery, GroupRef, SettleOutcome};

/// Metrics of a group, and the field of `weirctl group get` that says the same.
const SAME: [(&str, &str); 11] = [
    ("weir_group_depth", "depth"),
    ("weir_group_ready", "ready"),
    ("weir_group_waiting", "waiting"),
    ("weir_group_delayed", "delayed"),
    ("weir_group_inflight", "in_flight"),
    ("weir_group_held", "held"),
    ("weir_group_parked", "parked"),
    ("weir_members", "members"),
    ("weir_group_offered_total", "offered"),
    ("weir_deliveries_total", "delivered"),
    ("weir_redeliveries_total", "redelivered"),
];

/// Looks at a group until two answers with the metrics between them are alike.
const LOOKS_MAX: u32 = 50;

/// The numbers of a group by the names of `weirctl group get`, after a look whether the metrics agree. A broker that has
/// just started still finds out what is ready, so the metrics are compared where the group stands still around them.
fn numbers(server: &Server, name: &str) -> BTreeMap<&'static str, u64> {
    let ask = || server.json(&["group", "get", "--policy", "task_events", "--scope", "acme", name]);
    let mut group = ask();
    for _ in 0..LOOKS_MAX {
        let shown = shown(server, name, &group);
        let after = ask();
        if SAME.iter().all(|(_, field)| group[field] == after[field]) {
            return agreed(&group, &shown);
        }
        group = after;
    }
    panic!("{name} does not stand still: {group}");
}

/// A series of a group, the pointer to the field that says the same, and its number.
type Shown = (String, String, Option<u64>);

fn shown(server: &Server, name: &str, group: &serde_json::Value) -> Vec<Shown> {
    let labels = format!("tenant=\"acme\",policy=\"task_events\",group=\"{name}\"");
    let mut shown = Vec::new();
    for by_cause in ["settled", "gone"] {
        for cause in group[by_cause].as_object().unwrap().keys() {
            let series = format!("weir_group_{by_cause}_total{{{labels},cause=\"{cause}\"}}");
            let number = gauge(server, &series);
            shown.push((series, format!("/{by_cause}/{cause}"), number));
        }
    }
    for (metric, field) in SAME {
        let series = format!("{metric}{{{labels}}}");
        let number = gauge(server, &series);
        shown.push((series, format!("/{field}"), number));
    }
    shown
}

fn agreed(group: &serde_json::Value, shown: &[Shown]) -> BTreeMap<&'static str, u64> {
    for (series, field, number) in shown {
        let said = group.pointer(field).and_then(serde_json::Value::as_u64);
        assert_eq!(*number, said, "{series} is not {field} of {group}");
    }
    SAME.into_iter()
        .map(|(_, field)| (field, group[field].as_u64().unwrap_or_else(|| panic!("{field}: {group}"))))
        .collect()
}

fn unsettled(numbers: &BTreeMap<&str, u64>) -> [u64; 7] {
    ["depth", "waiting", "delayed", "in_flight", "held", "parked", "offered"].map(|field| numbers[field])
}

fn of<'a>(deliveries: &'a [Delivery], id: &str) -> &'a Delivery {
    deliveries.iter().find(|delivery| message(delivery).message_id == id).unwrap()
}

#[tokio::test]
async fn s18_gauges_and_queries_say_the_same_through_a_drain_and_through_a_kill() {
    let mut server = Server::start(&["--drain-limit-ms", "200"]);
    let (g, idle) = (make_group(&server, "g").await, make_group(&server, "idle").await);
    let mut messages: Vec<_> = (1..=8).map(|n| event(&format!("t{n}"), &format!("m{n}"))).collect();
    messages.push(request("t9", "m9", "x9"));
    messages.extend(["m10", "m11"].map(|id| event("t9", id)));
    publish(&server, messages).await;
    let mut lost = Member::new(&server, &g, "lost").lost_after(10_000);
    let mut member = Member::new(&server, &g, "stays").lost_after(3_600_000);
    assert_eq!(numbers(&server, "g")["waiting"], 11);
    let first = lost.fetch(9, 0).await;
    lost.begin(of(&first, "m9")).await;
    for (id, outcome) in [("m1", SettleOutcome::Done), ("m2", SettleOutcome::Done), ("m3", SettleOutcome::Reject)] {
        lost.settle(settlement(of(&first, id), outcome)).await;
    }
    lost.settle(retry(of(&first, "m4"), 3_600_000)).await;
    assert_eq!(unsettled(&numbers(&server, "g")), [8, 2, 1, 5, 0, 1, 11]);
    server.advance(11_000).await;
    assert_eq!(
        unsettled(&numbers(&server, "g")),
        [8, 6, 1, 0, 1, 1, 11],
        "what was begun is held, the rest comes again"
    );
    let second = member.fetch(2, 0).await;
    assert_eq!(second.len(), 2);
    for how in ["at work", "after a drain", "after a kill"] {
        match how {
            "after a drain" => {
                server.terminate();
                // Two messages are in flight, so the drain ends with its limit.
                assert_eq!(server.ended(), Some(0));
                server.start_again();
            }
            "after a kill" => server.crash_at_the_same_time().await,
            _ => {}
        }
        assert_eq!(unsettled(&numbers(&server, "g")), [8, 4, 1, 2, 1, 1, 11], "{how}");
        assert_eq!(unsettled(&numbers(&server, "idle")), [11, 11, 0, 0, 0, 0, 11], "{how}");
        assert_eq!(server.json(&["audit"])["balanced"], true, "{how}");
    }
    everything_is_settled(&server, &idle, 11).await;
}

/// A full fetch yields as many messages in the end as the depth says, and then the series are there with 0.
async fn everything_is_settled(server: &Server, group: &GroupRef, depth: u64) {
    let yielded = Member::new(server, group, "reader").drain().await;
    assert_eq!(yielded.len() as u64, depth);
    assert_eq!(unsettled(&numbers(server, &group.name)), [0, 0, 0, 0, 0, 0, depth]);
    assert_eq!(group_now(server, group).await.ready, 0);
}
