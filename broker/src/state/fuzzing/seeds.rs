//! A sound row of each family to begin with, made by the encoders.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use super::super::rows::{self, DeliveryRow, DeliveryState, ExecutionRow, LeaseRow, SettledRecord, TaskMessage};
use super::super::{AppliedRow, Family};
use crate::journal::entry::PartitionKey;
use crate::model::{
    ChannelNo, EndedAs, Epoch, ExecutionState, GroupCounts, GroupNo, GroupRef, GroupSpec, Lsn, Offset, PolicyNo,
    RemarkKind, SegmentNo, Selector, SessionId, Start, UnixMillis, UnknownReason, policy::ChannelPolicy,
};
use serde::Serialize;

const AT: UnixMillis = UnixMillis(1_700_000_000_000);
const PARTITION: PartitionKey = PartitionKey { group: GroupNo(2), channel: ChannelNo(3), task: 1 << 90 };
const EXECUTION: u128 = 1 << 100;
const SESSION: SessionId = SessionId(1 << 70);

/// The family's number, the key's length, the key, the value.
pub(crate) fn row(family: Family, key: &[u8], value: &[u8]) -> Vec<u8> {
    [&[family.byte(), key.len() as u8], key, value].concat()
}

fn stored<R: Serialize>(family: Family, key: Vec<u8>, value: &R) -> Vec<u8> {
    row(family, &key, &rows::encode(value).unwrap())
}

pub(crate) fn all() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("policies", policy()),
        ("channels", channel()),
        ("channel_names", channel_name()),
        ("tasks", task()),
        ("dedup", dedup()),
        ("executions", execution()),
        ("deliveries", delivery()),
        ("groups", group()),
        ("cursors", cursor()),
        ("sessions", session()),
        ("settles", settles()),
        ("totals", stored(Family::Totals, rows::totals_key(PolicyNo(1), "t"), &rows::TotalsRow { published: 9 })),
        ("applied", applied()),
    ]
}

fn policy() -> Vec<u8> {
    let row = rows::PolicyRow { policy: ChannelPolicy::named("events"), published: 9, last_latest: Lsn(4) };
    stored(Family::Policies, rows::policy_key(PolicyNo(1)), &row)
}

fn channel() -> Vec<u8> {
    let row = rows::ChannelRow {
        policy: PolicyNo(1),
        tenant: "t".to_owned(),
        agent: "a".to_owned(),
        head: Offset(9),
        bytes: 700,
        made_at: AT,
        last_publish_at: AT,
        last_publish_lsn: Lsn(50),
        latest_marks: vec![(Lsn(10), Offset(4)), (Lsn(30), Offset(7))],
    };
    stored(Family::Channels, rows::channel_key(ChannelNo(3)), &row)
}

fn channel_name() -> Vec<u8> {
    row(Family::ChannelNames, &rows::channel_name_key(PolicyNo(1), "t", "a"), &3_u64.to_be_bytes())
}

fn task() -> Vec<u8> {
    let message = |offset| TaskMessage { offset: Offset(offset), id: 7 << 64, body: 1 << 40, at: AT };
    let row = rows::TaskRow { task_id: "task".to_owned(), messages: vec![message(4), message(9)] };
    stored(Family::Tasks, rows::task_key(ChannelNo(3), PARTITION.task, Offset(4)), &row)
}

fn dedup() -> Vec<u8> {
    let row = rows::DedupRow {
        channel: ChannelNo(3),
        offset: Offset(9),
        execution: EXECUTION,
        first_seen: AT,
        last_seen: AT,
        body: 5,
        message_id: "m".to_owned(),
    };
    stored(Family::Dedup, rows::pair_key(6), &row)
}

fn execution() -> Vec<u8> {
    let (execution_id, task_id) = ("x".to_owned(), "task".to_owned());
    let mut row = ExecutionRow::new("t".to_owned(), execution_id, task_id, ChannelNo(3), AT);
    row.enter(ExecutionState::Unknown, AT);
    row.unknown_reason = Some(UnknownReason::LeaseLost);
    row.request = Some(rows::RequestRow { channel: ChannelNo(3), offset: Offset(9), deadline: Some(AT) });
    row.begin = Some(rows::BeginRow {
        partition: PARTITION,
        offset: Offset(9),
        member: "m".to_owned(),
        epoch: Epoch(300),
        token: Epoch(302),
        at: AT,
        live: true,
    });
    row.note_delivery(rows::DeliveryRecord {
        group: GroupNo(2),
        member: "m".to_owned(),
        epoch: Epoch(300),
        attempt: 1,
        at: AT,
        begun: true,
        ended: Some((EndedAs::Lost, AT)),
    });
    row.remark(AT, RemarkKind::NotExecuted, "why");
    stored(Family::Executions, rows::execution_key(EXECUTION), &row)
}

fn delivery() -> Vec<u8> {
    let lease = LeaseRow {
        epoch: Epoch(300),
        session: SESSION,
        granted_at: AT,
        expires: None,
        execution: Some(EXECUTION),
        begun: Some(Epoch(302)),
        deadline: Some(AT),
    };
    let row = DeliveryRow { state: DeliveryState::Leased(lease), ..DeliveryRow::untouched(Offset(9)) };
    stored(Family::Deliveries, rows::delivery_key(PARTITION), &row)
}

fn group() -> Vec<u8> {
    let name = GroupRef { scope: "*".to_owned(), policy: "events".to_owned(), name: "g".to_owned() };
    let spec = GroupSpec {
        name,
        selector: Selector::All,
        start: Start::Latest,
        executes: true,
        skip_if_final: true,
        pressure: true,
        window: 10,
        max_attempts: 5,
    };
    let counts = GroupCounts { offered: 9, settled: [1, 0, 0, 0, 0, 0, 2], ..GroupCounts::default() };
    let row = rows::GroupRow { spec, policy: PolicyNo(1), made_at: AT, made_lsn: Lsn(30), counts };
    stored(Family::Groups, rows::group_key(GroupNo(2)), &row)
}

fn cursor() -> Vec<u8> {
    let mut row = rows::CursorRow::starting_at(Offset(4));
    [4, 6, 7, 1 << 33].map(Offset).into_iter().for_each(|offset| row.pass(offset));
    stored(Family::Cursors, rows::cursor_key(GroupNo(2), ChannelNo(3)), &row)
}

fn session() -> Vec<u8> {
    let (member, instance) = ("m".to_owned(), "i".to_owned());
    let row = rows::SessionRow {
        group: GroupNo(2),
        member,
        instance,
        timeout_ms: 30_000,
        joined_at: AT,
        replaced: vec![SessionId(8)],
    };
    stored(Family::Sessions, rows::session_key(SESSION), &row)
}

fn settles() -> Vec<u8> {
    let record = SettledRecord { group: GroupNo(2), channel: ChannelNo(3), offset: Offset(9), answer: EndedAs::Done };
    let ended = [(Epoch(300), record), (Epoch(302), record)].into();
    stored(Family::Settles, rows::settles_key(1), &rows::SettleBlockRow { last_at: AT, ended })
}

fn applied() -> Vec<u8> {
    let row = AppliedRow {
        journal_id: 1,
        segment: SegmentNo(2),
        lsn: Lsn(50),
        broker_time: AT,
        epoch: Epoch(302),
        next_channel: ChannelNo(4),
        next_policy: PolicyNo(2),
        next_group: GroupNo(3),
    };
    self::row(Family::Applied, &[], &row.encode())
}
