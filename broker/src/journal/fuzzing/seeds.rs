//! Sound bytes to begin with, made by the encoders.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use super::super::entry;
use super::super::frame;
use super::super::group::{GROUP_HEADER_LEN, GroupHeader, group_len};
use super::super::segment::{Link, Previous, SegmentHeader};
use super::super::submission::{Frame, Record};
use super::mend::LINK;
use super::{BASE, INCARNATION, JOURNAL_ID, SEGMENT, key};
use crate::model::{
    ChannelNo, Effect, EndedAs, Epoch, FinalState, GoneCause, GroupNo, GroupRef, GroupSpec, Lsn, Offset, PolicyNo,
    SegmentNo, Selector, SessionId, SettledCause, Start, UnixMillis, UnknownReason, policy::ChannelPolicy,
};
use bytes::Bytes;
use entry::{Entry, Grant, HoldCause, LeaseEnd, PartitionKey, Passed};

const AT: UnixMillis = UnixMillis(1_700_000_000_000);

pub(crate) fn segments() -> Vec<(&'static str, Vec<u8>)> {
    let first = SegmentHeader {
        journal_id: JOURNAL_ID,
        segment: SEGMENT,
        incarnation: INCARNATION,
        first_lsn: Lsn(1),
        broker_time: AT,
        file_len: 1 << 26,
        previous: None,
    };
    let previous = Some(Previous { segment: SegmentNo(1), end: 9_000, sum: 77 });
    let next = SegmentHeader { first_lsn: Lsn(40), previous, ..first };
    // Behind the fields there are zeros, which the target adds.
    let front = |header: SegmentHeader| header.encode().0[..96].to_vec();
    vec![("first", front(first)), ("next", front(next))]
}

pub(crate) fn groups() -> Vec<(&'static str, Vec<u8>)> {
    let mut chain = Vec::new();
    let link = add_group(&mut chain, LINK, 7, &[small(), with_records()]);
    let link = add_group(&mut chain, link, 9, &[]);
    add_group(&mut chain, link, 9, &[small()]);
    let torn = chain[..chain.len() - 20].to_vec();
    let mut witness = Vec::new();
    add_group(&mut witness, LINK, 1, &[]);
    let mut last_lsn = Vec::new();
    add_group(&mut last_lsn, LINK, u64::MAX, &[small()]);
    vec![("chain", chain), ("torn", torn), ("witness", witness), ("last_lsn", last_lsn)]
}

/// Adds a group that says all before it was synced.
fn add_group(bytes: &mut Vec<u8>, previous: Link, first_lsn: u64, frames: &[Frame]) -> Link {
    let position = BASE + bytes.len() as u32;
    let mut group = vec![0; GROUP_HEADER_LEN as usize];
    for (time_ms, frame) in (0..).zip(frames) {
        frame::encode(frame.clone(), time_ms, (SEGMENT, position, key()), &mut group, &mut Vec::new());
    }
    let header = GroupHeader {
        body_len: group.len() as u32 - GROUP_HEADER_LEN,
        frame_count: frames.len() as u32,
        first_lsn: Lsn(first_lsn),
        broker_time: AT,
        synced_through: position,
        previous,
    };
    let (front, link) = header.encode(position, key());
    group.splice(..front.len(), front);
    group.resize(group_len(header.body_len).unwrap() as usize, 0);
    bytes.append(&mut group);
    link
}

pub(crate) fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let written = |frame: Frame| {
        let mut bytes = Vec::new();
        frame::encode(frame, 5, (SEGMENT, BASE, key()), &mut bytes, &mut Vec::new());
        bytes
    };
    vec![("small", written(small())), ("records", written(with_records()))]
}

fn small() -> Frame {
    Frame { lsn: Lsn(1), entries: b"entry".to_vec(), records: Vec::new() }
}

fn with_records() -> Frame {
    let record =
        |no, bytes| Record { channel: ChannelNo(no), offset: Offset(no + 1), bytes: Bytes::from_static(bytes) };
    Frame { lsn: Lsn(1), entries: Vec::new(), records: vec![record(3, b"message"), record(4, b""), record(5, b"x")] }
}

pub(crate) fn entries() -> Vec<(&'static str, Vec<u8>)> {
    let seeds = [("publish", publish()), ("lease", lease()), ("head", head()), ("ledger", ledger()), ("none", vec![])];
    seeds.map(|(name, entries)| (name, entry::encode(&entries).unwrap())).to_vec()
}

const PARTITION: PartitionKey = PartitionKey { group: GroupNo(2), channel: ChannelNo(3), task: 1 << 90 };
const EXECUTION: u128 = 1 << 100;

fn publish() -> Vec<Entry> {
    let name = GroupRef { scope: "t".to_owned(), policy: "events".to_owned(), name: "g".to_owned() };
    let spec = GroupSpec {
        name,
        selector: Selector::Tenant("t".to_owned()),
        start: Start::Offset(Offset(4)),
        executes: true,
        skip_if_final: false,
        pressure: true,
        window: 10,
        max_attempts: 5,
    };
    let (channel, tenant, agent) = (ChannelNo(3), "t".to_owned(), "a".to_owned());
    vec![
        Entry::PolicyPut { no: PolicyNo(1), policy: ChannelPolicy::named("events") },
        Entry::ChannelMade { no: channel, policy: PolicyNo(1), tenant, agent, at: AT },
        Entry::Published { channel, first: Offset(40), count: 3, at: AT },
        Entry::Repeated { execution: EXECUTION, pair: Some(9), mismatch: true, at: AT },
        Entry::GroupMade { no: GroupNo(2), spec, offered: 6, at: AT },
    ]
}

fn lease() -> Vec<Entry> {
    let (group, session, epoch, offset) = (GroupNo(2), SessionId(1 << 70), Epoch(300), Offset(40));
    let grant = Grant { channel: ChannelNo(3), task: PARTITION.task, offset, epoch, execution: Some(EXECUTION) };
    let (member, instance) = ("m".to_owned(), "i".to_owned());
    let ended = |end, answer| Entry::LeaseEnded { partition: PARTITION, epoch, offset, end, answer, at: AT };
    let reason = "why".to_owned();
    vec![
        Entry::SessionJoined { id: session, group, member, instance, timeout_ms: 30_000, at: AT },
        Entry::Granted { group, session, lease_ms: 0, at: AT, grants: vec![grant, Grant { execution: None, ..grant }] },
        Entry::LeaseMoved { partition: PARTITION, from: epoch, to: Epoch(301), session },
        Entry::LeaseExtended { partition: PARTITION, epoch, until: AT },
        ended(LeaseEnd::Done, EndedAs::Done),
        ended(LeaseEnd::Failed { until: AT, reason: reason.clone() }, EndedAs::Retried),
        ended(LeaseEnd::Parked { failed: true, lost: false, reason }, EndedAs::Rejected),
        ended(LeaseEnd::Held { cause: HoldCause::Unknown, execution: EXECUTION, lost: true }, EndedAs::Lost),
        ended(LeaseEnd::Gone { cause: GoneCause::Ttl }, EndedAs::Lost),
        Entry::SessionEnded { id: session },
    ]
}

fn head() -> Vec<Entry> {
    let (partition, offset) = (PARTITION, Offset(41));
    vec![
        Entry::HeadPassed { partition, offset, how: Passed::Settled(SettledCause::SkippedFinal), at: AT },
        Entry::HeadPassed { partition, offset, how: Passed::Gone(GoneCause::Deadline), at: AT },
        Entry::HeadDelayed { partition, offset, until: AT },
        Entry::HeadHeld { partition, offset, cause: HoldCause::InProgress, execution: EXECUTION, at: AT },
        Entry::HeadFreed { partition, offset },
        Entry::HeadParked { partition, offset, reason: "why".to_owned(), at: AT },
    ]
}

fn ledger() -> Vec<Entry> {
    let (execution, text, artifact_ref) = (EXECUTION, "why".to_owned(), "s3://a".to_owned());
    let (epoch, token, effect) = (Epoch(300), Epoch(302), Effect::Unsafe);
    let state = FinalState::Completed;
    vec![
        Entry::Begun {
            execution,
            partition: PARTITION,
            offset: Offset(40),
            epoch,
            token,
            effect,
            at: AT,
            deadline: Some(AT),
        },
        Entry::BeginWithdrawn { execution, at: AT },
        Entry::BecameUnknown { execution, reason: UnknownReason::LeaseLost, text: text.clone(), at: AT },
        Entry::Reported {
            execution,
            state,
            artifact_ref: artifact_ref.clone(),
            late: true,
            text: text.clone(),
            at: AT,
        },
        Entry::ReportFenced { execution, state, text: text.clone(), at: AT },
        Entry::Resolved { execution, state: None, artifact_ref, evidence: text, by: "operator".to_owned(), at: AT },
        Entry::ExecutionExpired { execution, at: AT },
    ]
}
