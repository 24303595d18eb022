//! The real binary on a disk that fails: `strace` makes one of its system calls go wrong.

use crate::process::{Counting, Dice, Member, Server, make_group, rounds, until};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long whoever waits may wait once the disk has failed.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);
/// Exit code after a disk failure.
const EXIT_FAILED: i32 = 70;

/// Whether there is a strace that may trace. Where there is none the test says so and skips, except in CI.
fn can_inject() -> bool {
    let tried = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).stdin(Stdio::null()).status();
    let can = tried.is_ok_and(|status| status.success());
    if !can {
        assert!(
            std::env::var_os("CI").is_none_or(|ci| ci != "true"),
            "strace is missing or may not trace (Debian: apt-get install strace)"
        );
        eprintln!("skipped: strace is missing or may not trace (Debian: apt-get install strace)");
    }
    can
}

/// The `nth` such call of each thread fails. Threads differ, so this is a call of whichever thread comes to its nth first.
async fn fails_at(call: &str, error: &str, nth: u64) {
    let mut dice = Dice::new("a disk that fails");
    let mut server = Server::start(&["--fail-grace-ms", "300"]);
    // The next start takes a segment that is ready, so the call that fails comes when it serves.
    let journal = server.folder().join("data/journal");
    until("two spare segments are ready", || {
        let names = std::fs::read_dir(&journal).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("spare-") && !name.contains('.')).count() == 2
    });
    server.kill();
    let inject = format!("inject={call}:error={error}:when={nth}");
    let trace = format!("trace={call}");
    let log = server.folder().join("strace.log");
    let strace = ["strace", "-f", "-qq", "-o", log.to_str().unwrap(), "-e", &trace, "-e", &inject];
    // So that no server is left where the tracer is killed.
    let with_its_parent = ["setpriv", "--pdeathsig", "KILL"];
    server.start_again_under(&[strace.as_slice(), &with_its_parent].concat());
    let publishing: Vec<_> = (0..4)
        .map(|channel| {
            let publisher = Counting::new(channel).until_it_ends(server.wire(), dice.fork());
            tokio::spawn(async { (publisher.await, Instant::now()) })
        })
        .collect();
    let mut publishers = Vec::new();
    let mut told = Vec::new();
    for publisher in publishing {
        let (publisher, at) = publisher.await.unwrap();
        publishers.push(publisher);
        told.push(at);
    }
    let between = told.iter().max().unwrap().duration_since(*told.iter().min().unwrap());
    assert!(between <= ANSWERED_WITHIN, "{call} {nth}: the last was told {between:?} after the first");
    assert_eq!(server.ended(), Some(EXIT_FAILED), "{call} {nth}");

    server.start_again();
    let everyone = make_group(&server, "all").await;
    let mut expected = 0;
    for publisher in &mut publishers {
        publisher.everything_again(&server).await;
        expected += publisher.confirmed;
    }
    let read = Member::new(&server, &everyone, "reader").drain().await.len() as u64;
    assert!(read >= expected, "{call} {nth}: {read} of {expected} confirmed messages are there");
    let audit = server.json(&["audit"]);
    assert_eq!(audit["balanced"], true, "{audit}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s11_a_sync_that_fails_answers_all_who_wait_ends_the_server_and_loses_nothing_confirmed() {
    if can_inject() {
        for nth in (0..rounds(4, 40)).map(|round| 3 + round * 7) {
            fails_at("fdatasync", "EIO", nth).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s11_a_write_that_finds_no_room_answers_all_who_wait_ends_the_server_and_loses_nothing_confirmed() {
    if can_inject() {
        for nth in (0..rounds(4, 40)).map(|round| 5 + round * 7) {
            fails_at("pwrite64", "ENOSPC", nth).await;
        }
    }
}
