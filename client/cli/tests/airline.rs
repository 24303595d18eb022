//! Real agent traces through real processes: stored once, settled once, in order, whatever dies.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test says where it fails, and every wait is bounded"
)]

mod process;

use process::{Dice, Guarded, Server, airline, until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const MESSAGES: u64 = 5_108;
const FINAL_STATES: u64 = 1_164;

#[test]
fn a_file_is_stored_once_and_its_repeats_are_answered_with_the_first_place() {
    let Some(file) = airline() else { return };
    let mut server = Server::start(&[]);
    assert_eq!(server.publish(&file, &[]), json!({"stored": MESSAGES, "duplicates": 0, "rejected": 0}));
    let first = places(&server, &file);
    assert_eq!(first.len() as u64, MESSAGES);
    for restart in [false, true] {
        if restart {
            server.crash_and_start();
        }
        assert_eq!(server.publish(&file, &[]), json!({"stored": 0, "duplicates": MESSAGES, "rejected": 0}));
        assert_eq!(places(&server, &file), first, "the same places every time");
    }
    let channels = server.json(&["channel", "ls", "--policy", "task_events"]);
    assert_eq!(channels["channels"].as_array().unwrap().len(), 4);
    let fresh = server.publish(&file, &["--fresh-ids"]);
    assert_eq!(fresh, json!({"stored": MESSAGES - FINAL_STATES, "duplicates": FINAL_STATES, "rejected": 0}));
}

/// Where the broker says that each line of the file is stored, by message id.
fn places(server: &Server, file: &Path) -> BTreeMap<String, (String, u64)> {
    let file = file.to_str().unwrap();
    let output = server.weirctl(&["pub", "--policy", "task_events", "--file", file, "--verbose"]);
    assert!(output.status.success());
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line.get("duplicate").is_some())
        .map(|line| {
            let channel = line["channel"].as_str().unwrap().to_owned();
            (line["message_id"].as_str().unwrap().to_owned(), (channel, line["offset"].as_u64().unwrap()))
        })
        .collect()
}

/// A member of the group over everything, writing what it is handed to a file.
fn member(server: &Server, name: &str, folder: &Path) -> Guarded {
    let out = File::create(folder.join(name)).unwrap();
    let arguments = [
        "sub",
        "--policy",
        "task_events",
        "--group",
        "g",
        "--scope",
        "*",
        "--selector",
        "*:*",
        "--member",
        name,
        "--session-timeout-ms",
        "1000",
        "--idle-exit",
        "2",
    ];
    Guarded(server.weirctl_command(&arguments).stdout(out).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn every_message_is_settled_once_and_in_order_though_a_member_and_the_broker_are_killed() {
    let Some(file) = airline() else { return };
    let mut dice = Dice::new("kill a member and the broker");
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(&[]);
    server.publish(&file, &[]);
    let mut victim = member(&server, "a", folder.path());
    let mut survivor = member(&server, "b", folder.path());
    std::thread::sleep(Duration::from_millis(100 + dice.below(200)));
    victim.0.kill().unwrap();
    victim.0.wait().unwrap();
    std::thread::sleep(Duration::from_millis(dice.below(60)));
    server.crash_and_start();
    let mut third = member(&server, "c", folder.path());
    assert!(survivor.0.wait().unwrap().success());
    assert!(third.0.wait().unwrap().success());

    let mut handed: HashMap<(String, u64), Vec<u64>> = HashMap::new();
    for name in ["a", "b", "c"] {
        let mut last: HashMap<String, u64> = HashMap::new();
        for line in std::fs::read_to_string(folder.path().join(name)).unwrap().lines() {
            // The killed member may have been killed in mid-line.
            let Ok(delivery) = serde_json::from_str::<Value>(line) else { continue };
            let task = format!("{} {}", delivery["channel"], delivery["task_id"]);
            let offset = delivery["offset"].as_u64().unwrap();
            let before = last.insert(task, offset);
            assert!(before.is_none_or(|before| before <= offset), "{name} was handed a task out of order");
            let channel = delivery["channel"].as_str().unwrap().to_owned();
            handed.entry((channel, offset)).or_default().push(delivery["attempt"].as_u64().unwrap());
        }
    }
    for (place, attempts) in &handed {
        let mut sorted = attempts.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert!(sorted.len() == attempts.len() || attempts.len() <= 2, "{place:?}: attempts {attempts:?}");
    }
    let audit = server.json(&["audit"]);
    let group = &audit["groups"][0];
    assert_eq!(audit["balanced"], true);
    assert_eq!((group["offered"].as_u64(), group["settled"].as_u64()), (Some(MESSAGES), Some(MESSAGES)));
    for rest in ["waiting", "delayed", "in_flight", "held", "parked", "gone", "counted_unsettled"] {
        assert_eq!(group[rest], 0, "{rest}");
    }
    let group = server.json(&["group", "get", "--policy", "task_events", "--scope", "*", "g"]);
    assert_eq!(group["settled"]["done"].as_u64(), Some(MESSAGES), "{group}");
}

#[test]
fn s11_what_was_confirmed_is_there_after_twenty_kills_during_publishing() {
    let mut dice = Dice::new("kill the broker during publishing");
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(&[]);
    let rounds = if std::env::var_os("WEIR_PROVE").is_some() { 200 } else { 20 };
    let mut confirmed = 0;
    for round in 0..rounds {
        // Each round sends all so far and some more, and is cut at a random instant.
        let file = folder.path().join("lines");
        let lines = 400 * (round % 20 + 1);
        let text: String = (0..lines)
            .map(|n| {
                format!(
                    "{{\"channel\":\"acme:a{}\",\"agent_id\":\"desk\",\"task_id\":\"t{}\",\"message_id\":\"m{n}\",\"type\":\"event\",\"payload\":{n}}}\n",
                    n % 4,
                    n % 28
                )
            })
            .collect();
        std::fs::write(&file, text).unwrap();
        let arguments =
            ["pub", "--policy", "task_events", "--file", file.to_str().unwrap(), "--verbose", "--timeout", "30s"];
        let out = folder.path().join("answers");
        let mut publisher = Guarded(
            server
                .weirctl_command(&arguments)
                .stdout(File::create(&out).unwrap())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        std::thread::sleep(Duration::from_millis(dice.below(60)));
        server.kill();
        if round % 2 == 1 {
            server.start_and_kill(Duration::from_millis(dice.below(150)));
        }
        server.start_again();
        assert!(publisher.0.wait().unwrap().success(), "the publisher repeats safely until all is confirmed");
        confirmed = confirmed.max(lines);
    }
    // Every confirmed message, once, in order, without a hole.
    let channels = server.json(&["channel", "ls", "--policy", "task_events"]);
    let ends: u64 = channels["channels"].as_array().unwrap().iter().map(|c| c["end_offset"].as_u64().unwrap()).sum();
    assert_eq!(ends, confirmed, "{channels}");
    let arguments =
        ["sub", "--policy", "task_events", "--group", "g", "--scope", "*", "--selector", "*:*", "--idle-exit", "1"];
    let output = server.weirctl(&arguments);
    assert!(output.status.success());
    let mut next: HashMap<String, u64> = HashMap::new();
    let mut offsets: HashMap<String, Vec<u64>> = HashMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let delivery: Value = serde_json::from_str(line).unwrap();
        let number = delivery["payload"].as_u64().unwrap();
        let task = delivery["task_id"].as_str().unwrap().to_owned();
        let expected = next.entry(task.clone()).or_insert_with(|| number % 28);
        assert_eq!(number, *expected, "{task} in order, without a hole");
        *expected += 28;
        offsets.entry(delivery["channel"].to_string()).or_default().push(delivery["offset"].as_u64().unwrap());
    }
    for (channel, mut offsets) in offsets {
        offsets.sort_unstable();
        assert!(offsets.iter().copied().eq(0..offsets.len() as u64), "{channel} is dense");
    }
}

#[test]
fn a_server_says_how_it_is() {
    let mut server = Server::start(&[]);
    let weir = Path::new(env!("CARGO_BIN_EXE_weirctl")).with_file_name("weir");
    let healthy = std::process::Command::new(&weir).args(["health", "--http", &server.http]).status().unwrap();
    assert!(healthy.success());
    assert_eq!(server.stop(), Some(0), "a drain without work ends well");
    let sick = std::process::Command::new(&weir).args(["health", "--http", &server.http]).output().unwrap();
    assert_eq!(sick.status.code(), Some(1));
    let open = std::process::Command::new(&weir)
        .args(["serve", "--listen", "0.0.0.0:0", "--data-dir"])
        .arg(tempfile::tempdir().unwrap().path())
        .output()
        .unwrap();
    assert!(!open.status.success());
    assert!(String::from_utf8_lossy(&open.stderr).contains("insecure"), "an open address needs the word for it");
    server.start_again();
    until("the server answers", || server.weirctl(&["status"]).status.success());
}
