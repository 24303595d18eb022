//! Real agent traces: stored once, settled once, in order, whoever dies.

use crate::process::{Dice, Guarded, Server, airline, rounds, until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const MESSAGES: u64 = 5_108;
const FINAL_STATES: u64 = 1_164;
const TASKS: usize = 200;

#[test]
fn a_file_is_stored_once_and_its_repeats_are_answered_with_the_first_place() {
    let Some(file) = airline() else { return };
    let mut server = Server::start(&[]);
    assert_eq!(server.publish_file(&file, &[]), json!({"stored": MESSAGES, "duplicates": 0, "rejected": 0}));
    let channels = server.json(&["channel", "ls", "--policy", "task_events"]);
    let ends = channels["channels"].as_array().unwrap().iter().map(|channel| channel["end_offset"].as_u64().unwrap());
    assert_eq!((ends.clone().count(), ends.sum::<u64>()), (4, MESSAGES));

    assert_eq!(server.publish_file(&file, &[]), json!({"stored": 0, "duplicates": MESSAGES, "rejected": 0}));
    let first = places_of_repeats(&server, &file);
    assert_eq!(first.len() as u64, MESSAGES);
    server.crash_and_start();
    assert_eq!(places_of_repeats(&server, &file), first, "the same places after a restart");

    let fresh = server.publish_file(&file, &["--fresh-ids"]);
    assert_eq!(fresh, json!({"stored": MESSAGES - FINAL_STATES, "duplicates": FINAL_STATES, "rejected": 0}));
}

/// Channel and offset by task and message id.
type Places = BTreeMap<String, (String, u64)>;

/// Where the broker says that each line of the file was stored first. It has to be a repeat, with the same payload.
fn places_of_repeats(server: &Server, file: &Path) -> Places {
    let file = file.to_str().unwrap();
    let mut lines = server.lines(&["pub", "--policy", "task_events", "--file", file, "--verbose"]);
    let counts = lines.pop().unwrap();
    assert_eq!(counts, json!({"stored": 0, "duplicates": MESSAGES, "rejected": 0}));
    let place = |line: Value| {
        assert_eq!(line["payload_matches"], true, "{line}");
        (line["message_id"].as_str().unwrap().to_owned(), (text(&line, "channel"), number(&line, "offset")))
    };
    lines.into_iter().map(place).collect()
}

#[test]
fn every_message_is_settled_once_and_in_order_though_a_member_and_the_broker_are_killed() {
    let Some(file) = airline() else { return };
    let mut dice = Dice::new("kill a member and the broker");
    for _ in 0..rounds(2, 30) {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Server::start(&[]);
        server.publish_file(&file, &[]);
        let member = |server: &Server, name: &str| member(server, name, folder.path());
        let (victim, survivor) = (member(&server, "victim"), member(&server, "survivor"));
        until("the victim has work", || !written(folder.path(), "victim").is_empty());
        std::thread::sleep(dice.millis(150));
        victim.kill();
        std::thread::sleep(dice.millis(60));
        server.kill();
        let shown = ["victim", "survivor"].map(|name| written(folder.path(), name).len());
        eprintln!("lines of the victim and the survivor at the kill: {shown:?}");
        server.start_again();
        let late = member(&server, "late");
        assert!(survivor.ended_well());
        assert!(late.ended_well());

        let lines = ["victim", "survivor", "late"].map(|name| written(folder.path(), name));
        every_task_was_handed_out_in_order(&lines.concat());
        every_message_was_settled_once(&lines);
        the_account_balances(&server);
    }
}

/// A member of one group over everything. Each message is a line, and so is each settle.
fn member(server: &Server, name: &str, folder: &Path) -> Guarded {
    let group = ["sub", "--policy", "task_events", "--group", "g", "--scope", "*", "--selector", "*:*"];
    let own = ["--member", name, "--session-timeout-ms", "1000", "--idle-exit", "1s", "--verbose"];
    server.weirctl_into(&folder.join(name), &[&group[..], &own].concat())
}

/// The whole lines a member has written; the last one of a killed member may be cut.
fn written(folder: &Path, name: &str) -> Vec<Value> {
    let text = std::fs::read(folder.join(name)).unwrap();
    text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Epochs come from one counter, so they put what several members were handed into one order.
fn every_task_was_handed_out_in_order(lines: &[Value]) {
    let mut tasks: BTreeMap<(String, String), BTreeMap<u64, (u64, u64)>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.get("task_id").is_some()) {
        let task = (text(line, "channel"), text(line, "task_id"));
        let before = tasks
            .entry(task)
            .or_default()
            .insert(number(line, "epoch"), (number(line, "offset"), number(line, "attempt")));
        assert_eq!(before, None, "one lease, one holder: {line}");
    }
    assert_eq!(tasks.len(), TASKS);
    for (task, handed) in tasks {
        let handed: Vec<_> = handed.into_values().collect();
        for pair in handed.windows(2) {
            let [(offset, attempt), (next, next_attempt)] = pair else { unreachable!() };
            let fine = if next == offset { next_attempt == &(attempt + 1) } else { next > offset };
            assert!(fine, "{task:?}: (offset, attempt) {pair:?}");
        }
        assert!(handed.iter().all(|(_, attempt)| (1..=3).contains(attempt)), "{task:?}: {handed:?}");
    }
}

/// Of each message that was handed out exactly one settle was taken; that of the victim may be missing, for it was killed
/// before it could write the answer down.
fn every_message_was_settled_once(lines: &[Vec<Value>; 3]) {
    let mut taken: BTreeSet<(String, u64)> = BTreeSet::new();
    for line in lines.iter().flatten().filter(|line| line["settled"] == "OK" || line["settled"] == "ALREADY_SETTLED") {
        assert!(taken.insert(place(line)), "settled twice: {line}");
    }
    let victims: BTreeSet<_> = lines[0].iter().filter(|line| line.get("task_id").is_some()).map(place).collect();
    let handed: BTreeSet<_> = lines.iter().flatten().filter(|line| line.get("task_id").is_some()).map(place).collect();
    assert_eq!(handed.len() as u64, MESSAGES, "every message was handed out");
    let unseen: Vec<_> = handed.difference(&taken).filter(|place| !victims.contains(place)).collect();
    assert!(unseen.is_empty(), "handed to nobody who died, and never settled: {unseen:?}");
}

fn the_account_balances(server: &Server) {
    let audit = server.json(&["audit"]);
    let group = &audit["groups"][0];
    assert_eq!(audit["balanced"], true, "{audit}");
    assert_eq!((number(group, "offered"), number(group, "settled")), (MESSAGES, MESSAGES));
    for rest in ["waiting", "delayed", "in_flight", "held", "parked", "gone", "counted_unsettled"] {
        assert_eq!(group[rest], 0, "{rest}: {group}");
    }
    let group = server.json(&["group", "get", "--policy", "task_events", "--scope", "*", "g"]);
    assert_eq!(number(&group["settled"], "done"), MESSAGES, "{group}");
}

fn place(line: &Value) -> (String, u64) {
    (text(line, "channel"), number(line, "offset"))
}

fn text(line: &Value, field: &str) -> String {
    line[field].as_str().unwrap_or_else(|| panic!("{field} of {line}")).to_owned()
}

fn number(line: &Value, field: &str) -> u64 {
    line[field].as_u64().unwrap_or_else(|| panic!("{field} of {line}"))
}
