//! Executions whose worker died after it had begun, as an operator sees them.

use crate::process::{Member, Server, TENANT, event, group_now, make_group, publish, request, until, words_of};
use serde_json::{Value, json};
use weir_proto::v1::{GroupRef, complete_response};

/// How long the worker may be silent.
const TIMEOUT_MS: u64 = 1_000;

/// `refund-1` was begun by a worker that is dead by now; its task has two more messages, another task one request and one
/// event.
struct Lost {
    server: Server,
    workers: GroupRef,
    worker: Member,
    delivery: weir_proto::v1::Delivery,
    token: u64,
}

impl Lost {
    async fn worker() -> Self {
        let server = Server::start(&[]);
        let workers = make_group(&server, "workers").await;
        let mut worker = Member::new(&server, &workers, "worker 1").lost_after(TIMEOUT_MS);
        publish(&server, vec![request("order-1", "m1", "refund-1"), event("order-1", "m2"), event("order-1", "m3")])
            .await;
        let delivery = worker.fetch(1, 1_000).await.remove(0);
        publish(&server, vec![request("order-2", "n1", "refund-2"), event("order-2", "n2")]).await;
        let token = worker.begin(&delivery).await;
        let lost = Self { server, workers, worker, delivery, token };
        until("the execution is unknown", || lost.explain("refund-1")["execution"]["state"] == "UNKNOWN");
        lost
    }

    /// Kills the broker and starts it again. The worker's process had gone before, so it comes back with a new connection.
    fn crash(&mut self) {
        self.server.crash_and_start();
        self.worker = self.worker.again(&self.server);
    }

    fn explain(&self, execution: &str) -> Value {
        self.server.json(&["execution", "explain", "--tenant", TENANT, execution])
    }

    /// What an ordinary member of the group is handed until nothing more can come: message id and attempt.
    fn rest(&self, member: &str) -> Vec<(String, u64)> {
        let group = ["sub", "--policy", "task_events", "--group", "workers", "--scope", TENANT, "--no-create"];
        let lines = self.server.lines(&[&group[..], &["--member", member, "--idle-exit", "300ms"]].concat());
        let short = |line: Value| (line["message_id"].as_str().unwrap().to_owned(), line["attempt"].as_u64().unwrap());
        lines.into_iter().map(short).collect()
    }

    fn balanced(&self, settled: u64) {
        let audit = self.server.json(&["audit"]);
        assert_eq!(audit["balanced"], true, "{audit}");
        assert_eq!(audit["groups"][0]["settled"], settled, "{audit}");
    }
}

fn first(messages: &[(&str, u64)]) -> Vec<(String, u64)> {
    messages.iter().map(|(id, attempt)| ((*id).to_owned(), *attempt)).collect()
}

/// All that is told of the begun and lost delivery.
fn the_story_of_the_lost_worker(story: &Value) {
    assert_eq!(story["verdict"], "EFFECT_UNKNOWN", "{story}");
    let execution = &story["execution"];
    assert_eq!(execution["state"], "UNKNOWN", "{story}");
    assert_eq!(execution["reason"], "lease_lost", "{story}");
    assert_eq!(execution["standing_begin"]["member"], "worker 1", "{story}");
    assert_eq!(execution["standing_begin"]["live"], false, "{story}");
    assert_eq!(execution["deliveries"].as_array().unwrap().len(), 1, "{story}");
    let delivery = &execution["deliveries"][0];
    let told = [&delivery["member"], &delivery["attempt"], &delivery["begun"], &delivery["end"]];
    assert_eq!(told, [&json!("worker 1"), &json!(1), &json!(true), &json!("LOST")], "{story}");
    let lines: Vec<_> = story["story"].as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap()).collect();
    assert!(lines.iter().any(|line| line.contains("worker 1")), "{lines:?}");
    assert!(!story["summary"].as_str().unwrap().is_empty(), "{story}");
}

#[tokio::test]
async fn a_begun_execution_whose_worker_died_is_explained_and_ends_with_its_late_result() {
    let mut lost = Lost::worker().await;
    for restart in [false, true] {
        if restart {
            lost.crash();
        }
        the_story_of_the_lost_worker(&lost.explain("refund-1"));
        let table = lost.server.weirctl(&["execution", "explain", "--tenant", TENANT, "refund-1"]);
        let table = String::from_utf8(table.stdout).unwrap();
        assert!(table.contains("EFFECT_UNKNOWN") && table.contains("worker 1"), "{table}");
        // Its task is held, all others go on.
        let others = if restart { first(&[]) } else { first(&[("n1", 1), ("n2", 1)]) };
        assert_eq!(lost.rest("worker 2"), others);
        let group = group_now(&lost.server, &lost.workers).await;
        assert_eq!((group.held, group.waiting, group.depth), (1, 2, 3), "{group:?}");
        let unfinished = lost.server.json(&["execution", "ls", "--tenant", TENANT, "--state", "UNKNOWN"]);
        assert_eq!(unfinished["executions"].as_array().unwrap().len(), 1, "{unfinished}");
        lost.balanced(2);
    }
    let complete_response::Result::Accepted(accepted) = lost.worker.complete(&lost.delivery, lost.token).await else {
        panic!("the result of the standing begin counts, however late");
    };
    assert!(accepted.late, "{accepted:?}");
    for restart in [false, true] {
        if restart {
            lost.crash();
        }
        let story = lost.explain("refund-1");
        assert_eq!(story["verdict"], "EFFECT_ONCE", "{story}");
        assert_eq!(story["execution"]["artifact_ref"], "receipt:1", "{story}");
        assert_eq!(story["execution"]["remarks"].as_array().unwrap().last().unwrap()["kind"], "LATE", "{story}");
    }
    let rest = lost.rest("worker 3");
    assert_eq!(rest[..2], first(&[("m2", 1), ("m3", 1)]), "the task goes on behind its settled request: {rest:?}");
    assert_eq!(rest.len(), 3, "and brings the result that weir stored: {rest:?}");
    lost.balanced(6);
}

#[tokio::test]
async fn an_operators_not_executed_withdraws_the_begin_and_fences_its_holder() {
    let mut lost = Lost::worker().await;
    let resolve = ["execution", "resolve", "--tenant", TENANT, "refund-1", "--state", "NOT_EXECUTED", "--by", "ops"];
    let evidence = ["--evidence", "the bank has no such transfer"];
    let dry = lost.server.json(&[&resolve[..], &evidence].concat());
    assert_eq!((&dry["dry_run"], &dry["execution"]["state"]), (&json!(true), &json!("UNKNOWN")), "{dry}");
    the_story_of_the_lost_worker(&lost.explain("refund-1"));
    let decided = lost.server.json(&[&resolve[..], &evidence, &["--yes"]].concat());
    assert_eq!(decided["execution"]["begins_withdrawn"], 1, "{decided}");
    let twice = lost.server.weirctl(&[&resolve[..], &evidence, &["--yes"]].concat());
    assert_eq!(twice.status.code(), Some(1), "it is not unknown any more: {}", words_of(&twice));
    let dry = lost.server.weirctl(&[&resolve[..], &evidence].concat());
    assert_eq!(dry.status.code(), Some(1), "a dry run approves nothing that would be refused: {}", words_of(&dry));
    let nobody = lost.server.weirctl(&["audit", "--group", "wrokers"]);
    assert_eq!(nobody.status.code(), Some(3), "a name that nothing has is not balanced: {}", words_of(&nobody));

    lost.crash();
    let mut second = Member::new(&lost.server, &lost.workers, "worker 2");
    let mut again = second.fetch(2, 1_000).await;
    again.sort_by_key(|delivery| delivery.offset);
    let again = again.remove(0);
    assert_eq!((again.offset, again.attempt), (0, 2), "a new attempt");
    // The first worker wakes up while the second works: its result is no longer asked for.
    let late = lost.worker.complete(&lost.delivery, lost.token).await;
    assert!(matches!(late, complete_response::Result::Fenced(_)), "{late:?}");
    let token = second.begin(&again).await;
    assert!(token > lost.token);
    let completed = second.complete(&again, token).await;
    assert!(matches!(completed, complete_response::Result::Accepted(_)), "{completed:?}");
    second.drop_work();
    let rest: Vec<_> = second.drain().await.into_iter().map(|(message, _)| message.message_id).collect();
    assert!(["m2", "m3", "n1", "n2"].iter().all(|id| rest.iter().any(|rest| rest == id)), "{rest:?}");
    let story = lost.explain("refund-1");
    let members: Vec<_> =
        story["execution"]["deliveries"].as_array().unwrap().iter().map(|delivery| &delivery["member"]).collect();
    assert_eq!(members, ["worker 1", "worker 2"], "{story}");
    // Two workers say that they paid, so the operator's evidence was wrong.
    assert_eq!(story["verdict"], "CONTRADICTION", "{story}");
    lost.balanced(6);
}

#[tokio::test]
async fn a_withdrawn_begin_that_nobody_reports_for_leaves_one_effect() {
    let lost = Lost::worker().await;
    let words = ["--state", "NOT_EXECUTED", "--by", "ops", "--evidence", "the bank has no such transfer", "--yes"];
    lost.server.json(&[&["execution", "resolve", "--tenant", TENANT, "refund-1"][..], &words].concat());
    assert_eq!(lost.explain("refund-1")["verdict"], "NEVER_BEGUN");
    let mut second = Member::new(&lost.server, &lost.workers, "worker 2");
    let mut both = second.fetch(2, 1_000).await;
    both.sort_by_key(|delivery| delivery.offset);
    let token = second.begin(&both[0]).await;
    assert_eq!(lost.explain("refund-1")["verdict"], "IN_PROGRESS");
    second.complete(&both[0], token).await;
    let story = lost.explain("refund-1");
    assert_eq!(story["verdict"], "EFFECT_ONCE", "{story}");
    assert_eq!((&story["execution"]["begins"], &story["execution"]["begins_withdrawn"]), (&json!(2), &json!(1)));
}
