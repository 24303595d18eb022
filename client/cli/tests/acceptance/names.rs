//! Odd names: one verdict everywhere, in gRPC and in `weirctl`, and no trace of what was refused.

use crate::process::{
    Member, POLICY, Server, TENANT, event, group, make_group, publish, to_desk, try_make_group, try_publish, words_of,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::process::Output;
use tonic::{Code, Response, Status};
use tonic_types::StatusExt as _;
use weir_proto::v1::admin_service_client::AdminServiceClient;
use weir_proto::v1::channel_service_client::ChannelServiceClient;
use weir_proto::v1::execution_service_client::ExecutionServiceClient;
use weir_proto::v1::group_service_client::GroupServiceClient;
use weir_proto::v1::{self, GroupSettings};

/// A name, whether it may be a tenant or an agent, and whether it may be any other name.
struct Odd(String, bool, bool);

fn odd_names() -> Vec<Odd> {
    const BOTH: &[&str] = &["a.b", "Bot", "bot"];
    const OPAQUE: &[&str] =
        &["a:b", "b:c", ":b", "a:", "*", ">", "a/b", "../x", "a b", "%2F", "caf\u{e9}", "cafe\u{301}", "~mine", "-"];
    const NEITHER: &[&str] = &["", "a\0b", "a\nb", "\u{7f}"];
    let of = |names: &[&str], agent, opaque| -> Vec<Odd> {
        names.iter().map(|name| Odd((*name).to_owned(), agent || *name == "-", opaque)).collect()
    };
    let long = |bytes: usize, agent, opaque| Odd("n".repeat(bytes), agent, opaque);
    let mut names = of(BOTH, true, true);
    names.extend(of(OPAQUE, false, true));
    names.extend(of(NEITHER, false, false));
    names.extend([long(128, true, true), long(129, false, true), long(255, false, true), long(256, false, true)]);
    names.extend([long(257, false, false), long(10 * 1024, false, false)]);
    names
}

/// Taken, or not found; or refused as an invalid argument that names field and rule.
fn verdict<T>(answer: Result<Response<T>, Status>, allowed: bool, what: &str) {
    match answer {
        Ok(_) => assert!(allowed, "taken: {what}"),
        Err(status) if status.code() == Code::NotFound => assert!(allowed, "looked up, not refused: {what}"),
        Err(status) => {
            assert!(!allowed, "{what}: {status:?}");
            assert_eq!(status.code(), Code::InvalidArgument, "{what}: {status:?}");
            let violations = status.get_details_bad_request().expect(what).field_violations;
            assert!(!violations[0].field.is_empty() && !violations[0].description.is_empty(), "{what}");
        }
    }
}

/// The same of `weirctl`: it did it, or found nothing; or it refused with words that name the field.
fn told(output: &Output, allowed: bool, field: &str, what: &str) {
    let words = words_of(output);
    match output.status.code() {
        Some(0 | 3) => assert!(allowed, "taken: {what}"),
        Some(1 | 2) => {
            assert!(!allowed, "{what}: {words}");
            assert!(words.contains(field), "{what} does not name {field}: {words}");
        }
        other => panic!("{what}: {other:?}: {words}"),
    }
}

/// Everything that a refused name could have left behind.
async fn traces(server: &Server) -> (u64, u64, u64, u64, BTreeSet<String>) {
    let status = AdminServiceClient::new(server.wire()).get_status(v1::GetStatusRequest {}).await.unwrap().into_inner();
    let files = fs::read_dir(server.folder()).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    (status.channels, status.groups, status.published, status.members, files)
}

#[tokio::test]
async fn s14_one_verdict_holds_in_every_call_and_a_refused_name_leaves_no_trace() {
    let mut server = Server::start(&[]);
    make_group(&server, "all").await;
    publish(&server, vec![event("t", "m")]).await;
    for Odd(name, agent, opaque) in odd_names() {
        let shown: String = name.chars().take(12).collect();
        let before = traces(&server).await;
        as_a_tenant_or_agent(&server, &name, agent, &shown).await;
        // `*` is the scope of operators' groups.
        if !agent && name != "*" {
            assert_eq!(traces(&server).await, before, "{shown:?} as tenant or agent");
        }
        let before = traces(&server).await;
        as_an_opaque_name(&server, &name, opaque, &shown).await;
        if !opaque && !name.is_empty() {
            assert_eq!(traces(&server).await, before, "{shown:?} as a name");
        }
    }
    let before = traces(&server).await;
    server.crash_and_start();
    let after = traces(&server).await;
    assert_eq!((before.0, before.1, before.2, before.4), (after.0, after.1, after.2, after.4));
}

async fn as_a_tenant_or_agent(server: &Server, name: &str, allowed: bool, shown: &str) {
    let mut channels = ChannelServiceClient::new(server.wire());
    let mut groups = GroupServiceClient::new(server.wire());
    for (tenant, agent) in [(name, "desk"), (TENANT, name)] {
        let what = format!(
            "({:.12}, {:.12}) for {shown:?}",
            tenant.escape_debug().to_string(),
            agent.escape_debug().to_string()
        );
        let (tenant, agent_id) = (tenant.to_owned(), agent.to_owned());
        let request =
            v1::PublishRequest { tenant: tenant.clone(), agent_id: agent_id.clone(), ..to_desk(vec![event("t", "m")]) };
        verdict(try_publish(server, request).await.map(Response::new), allowed, &format!("publish to {what}"));
        let request = v1::GetChannelRequest { policy: POLICY.into(), tenant, agent_id };
        verdict(channels.get_channel(request).await, allowed, &format!("channel {what}"));
    }
    let sender = v1::Message { agent_id: name.into(), ..event("t", "as sender") };
    verdict(try_publish(server, to_desk(vec![sender])).await.map(Response::new), allowed, &format!("sender {shown:?}"));
    let scope = v1::GroupRef { scope: name.into(), ..group("scoped") };
    let operators = name == "*";
    let request = v1::CreateGroupRequest { group: Some(scope.clone()), settings: None };
    verdict(groups.create_group(request).await, allowed || operators, &format!("scope {shown:?}"));
    let request = v1::GetGroupRequest { group: Some(scope) };
    verdict(groups.get_group(request).await, allowed || operators, &format!("get scope {shown:?}"));
    if operators {
        return;
    }
    let selector = GroupSettings { selector: format!("{TENANT}:{name}"), ..Default::default() };
    let selecting = try_make_group(server, group(&format!("over {name:.12}")), selector).await;
    verdict(selecting.map(Response::new), allowed, &format!("selector {shown:?}"));
    let mut executions = ExecutionServiceClient::new(server.wire());
    let request = v1::GetExecutionRequest { tenant: name.into(), execution_id: "x".into() };
    verdict(executions.get_execution(request).await, allowed, &format!("execution of {shown:?}"));
    let request = v1::ListExecutionsRequest { tenant: name.into(), ..Default::default() };
    verdict(executions.list_executions(request).await, allowed, &format!("executions of {shown:?}"));
    if !name.is_empty() {
        let request = v1::ListChannelsRequest { tenant: name.into(), ..Default::default() };
        verdict(channels.list_channels(request).await, allowed, &format!("channels of {shown:?}"));
    }
}

async fn as_an_opaque_name(server: &Server, name: &str, allowed: bool, shown: &str) {
    let messages = [
        ("task", v1::Message { task_id: name.into(), ..event("", "m") }),
        ("message", v1::Message { message_id: name.into(), ..event("messages", "") }),
        ("execution", v1::Message { execution_id: name.into(), ..event("executions", &format!("of {shown}")) }),
    ];
    for (what, message) in messages {
        // Without an execution id a message is about no execution.
        let allowed = allowed || what == "execution" && name.is_empty();
        let allowed = allowed && !message.message_id.chars().any(char::is_control);
        verdict(
            try_publish(server, to_desk(vec![message])).await.map(Response::new),
            allowed,
            &format!("{what} {shown:?}"),
        );
    }
    let request = v1::GetExecutionRequest { tenant: TENANT.into(), execution_id: name.into() };
    let found = ExecutionServiceClient::new(server.wire()).get_execution(request).await;
    verdict(found, allowed, &format!("get execution {shown:?}"));
    let made = try_make_group(server, group(name), GroupSettings::default()).await;
    verdict(made.map(Response::new), allowed, &format!("group {shown:?}"));
    for (what, mut member) in
        [("member of", Member::new(server, &group("all"), name)), ("joining", Member::new(server, &group(name), "m"))]
    {
        let beat = v1::HeartbeatRequest { session: member.session(), held: None };
        verdict(member.stub().heartbeat(beat).await, allowed, &format!("heartbeat, {what} {shown:?}"));
        verdict(member.try_fetch(1, 0).await.map(Response::new), allowed, &format!("fetch, {what} {shown:?}"));
        if allowed {
            member.stub().leave(v1::LeaveRequest { session: member.session() }).await.unwrap();
        }
    }
}

#[tokio::test]
async fn s14_pairs_that_could_be_taken_for_each_other_are_refused_and_case_and_form_keep_names_apart() {
    let server = Server::start(&[]);
    for (tenant, agent) in [("a:b", "c"), ("a", "b:c"), ("a", ":b"), ("a:", "b"), ("", "a"), ("a", "")] {
        let request =
            v1::PublishRequest { tenant: tenant.into(), agent_id: agent.into(), ..to_desk(vec![event("t", "m")]) };
        let what = format!("({tenant}, {agent})");
        verdict(try_publish(&server, request).await.map(Response::new), false, &what);
    }
    assert_eq!(server.json(&["channel", "ls"])["channels"], json!([]));
    // The same task, message and execution ids everywhere, and yet nothing is shared.
    let keys = [("Bot", "a"), ("bot", "a"), ("a", "Bot"), ("a", "bot"), ("a.b", "c"), ("a", "b.c")];
    for (tenant, agent) in keys {
        let pair = crate::process::report("t", "m", "x", v1::FinalState::Completed);
        let request = v1::PublishRequest { tenant: tenant.into(), agent_id: agent.into(), ..to_desk(vec![pair]) };
        let placed = crate::process::placed(try_publish(&server, request).await.unwrap());
        let known = [("a", "bot"), ("a", "b.c")].contains(&(tenant, agent));
        assert_eq!(matches!(placed[0], crate::process::Placed::Duplicate(0)), known, "the pair's scope is the tenant");
    }
    for selector in ["Bot:*", "bot:*"] {
        let words = ["sub", "--policy", POLICY, "--group", "g", "--selector", selector, "--idle-exit", "0s"];
        let lines = server.lines(&words);
        let channels: Vec<_> = lines.iter().map(|line| line["channel"].as_str().unwrap()).collect();
        assert_eq!(channels, [format!("{}:a", &selector[..3])]);
    }
}

/// A line for `weirctl pub`.
fn line(changes: Value) -> String {
    let mut line =
        json!({"channel": "acme:desk", "agent_id": "desk", "task_id": "t", "message_id": "m", "type": "event"});
    line.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    line.to_string()
}

#[tokio::test]
async fn s14_weirctl_has_the_same_verdict_and_brings_accepted_names_back_byte_for_byte() {
    let mut server = Server::start(&[]);
    let file = tempfile::NamedTempFile::new().unwrap();
    let publish = |server: &Server, changes: Value| {
        fs::write(file.path(), line(changes)).unwrap();
        server.weirctl(&["pub", "--policy", POLICY, "--file", file.path().to_str().unwrap()])
    };
    let mut accepted = BTreeSet::new();
    for (n, Odd(name, agent, opaque)) in odd_names().into_iter().enumerate() {
        let shown: String = name.chars().take(12).collect();
        for channel in [format!("{name}:desk"), format!("acme:{name}")] {
            let output = publish(&server, json!({"channel": channel, "message_id": format!("{n}")}));
            told(&output, agent, "channel", &format!("pub to {channel:.20?}"));
        }
        let output = publish(&server, json!({"task_id": name, "execution_id": "of a task"}));
        told(&output, opaque, "task_id", &format!("pub, task {shown:?}"));
        let output =
            publish(&server, json!({"execution_id": name, "message_id": format!("{n}"), "task_id": "executions"}));
        told(&output, opaque || name.is_empty(), "execution_id", &format!("pub, execution {shown:?}"));
        // No argument of a process holds a NUL.
        if name.contains('\0') {
            continue;
        }
        let output = server.weirctl(&["execution", "get", "--tenant", TENANT, "--", &name]);
        told(&output, opaque, "", &format!("execution get {shown:?}"));
        let output = server.weirctl(&["group", "create", "--policy", POLICY, "--scope", TENANT, "--", &name]);
        told(&output, opaque, "", &format!("group create {shown:?}"));
        let member = format!("--member={name}");
        let words = ["sub", "--policy", POLICY, "--group", "members", "--scope", TENANT, "--idle-exit", "0s", &member];
        told(&server.weirctl(&words), opaque, "member", &format!("sub, member {shown:?}"));
        if opaque {
            accepted.insert(name);
        }
    }
    for restart in [false, true] {
        if restart {
            server.crash_and_start();
        }
        let group = format!("reader {restart}");
        let words = ["sub", "--policy", POLICY, "--group", &group, "--scope", TENANT, "--idle-exit", "0s"];
        let lines = server.lines(&words);
        let tasks = lines.iter().filter(|line| line["execution_id"] == "of a task");
        let tasks: Vec<_> = tasks.map(|line| line["task_id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(tasks.len(), accepted.len(), "each once");
        assert_eq!(tasks.into_iter().collect::<BTreeSet<_>>(), accepted);
        for name in &accepted {
            let execution = server.json(&["execution", "get", "--tenant", TENANT, "--", name]);
            assert_eq!(execution["execution_id"], **name);
            let group = server.json(&["group", "get", "--policy", POLICY, "--scope", TENANT, "--", name]);
            assert_eq!(group["name"], **name);
        }
    }
}
