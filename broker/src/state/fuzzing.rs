//! What holds of keys and values of rows for any bytes. See `crate::fuzzing`.
#![allow(clippy::expect_used, reason = "a check says what broke by panicking")]

#[cfg(test)]
pub(crate) mod seeds;

use super::rows::{self, CursorRow};
use super::{AppliedRow, Family};
use crate::model::Offset;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// A row of the family of this number. A value that is read is written, and read again as the same; a key or value of fixed
/// length that is read is written again as it stood.
pub(crate) fn row(family: u8, key: &[u8], value: &[u8]) {
    match family {
        _ if family == Family::Policies.byte() => same::<rows::PolicyRow>(value),
        _ if family == Family::Channels.byte() => same::<rows::ChannelRow>(value),
        _ if family == Family::ChannelNames.byte() => same_channel_name(key),
        _ if family == Family::Tasks.byte() => {
            same_task_key(key);
            same::<rows::TaskRow>(value);
        }
        _ if family == Family::Dedup.byte() => same::<rows::DedupRow>(value),
        _ if family == Family::Executions.byte() => same::<rows::ExecutionRow>(value),
        _ if family == Family::Deliveries.byte() => {
            same_delivery_key(key);
            same::<rows::DeliveryRow>(value);
        }
        _ if family == Family::Groups.byte() => same::<rows::GroupRow>(value),
        _ if family == Family::Cursors.byte() => {
            same::<CursorRow>(value);
            cursor_answers(value);
        }
        _ if family == Family::Sessions.byte() => same::<rows::SessionRow>(value),
        _ if family == Family::Settles.byte() => same::<rows::SettleBlockRow>(value),
        _ if family == Family::Totals.byte() => same::<rows::TotalsRow>(value),
        _ if family == Family::Applied.byte() => same_applied(value),
        _ => {}
    }
}

fn same<R: Serialize + DeserializeOwned + Debug + PartialEq>(value: &[u8]) {
    let Ok(row) = rows::decode::<R>(value) else { return };
    let written = rows::encode(&row).expect("what was read can be written");
    let again = rows::decode::<R>(&written).expect("what was written can be read");
    assert_eq!(again, row);
    assert_eq!(rows::encode(&again).as_ref(), Ok(&written));
}

fn same_channel_name(key: &[u8]) {
    if let Ok((policy, tenant, agent)) = rows::parse_channel_name_key(key) {
        assert_eq!(rows::channel_name_key(policy, &tenant, &agent), key);
    }
}

fn same_task_key(key: &[u8]) {
    if let Ok((channel, task, first)) = rows::parse_task_key(key) {
        assert_eq!(rows::task_key(channel, task, first), key);
    }
}

fn same_delivery_key(key: &[u8]) {
    if let Ok(partition) = rows::parse_delivery_key(key) {
        assert_eq!(rows::delivery_key(partition), key);
    }
}

/// What is below the floor is through; nobody has more unsettled than there are.
fn cursor_answers(value: &[u8]) {
    let Ok(cursor) = rows::decode::<CursorRow>(value) else { return };
    let floor = cursor.floor.get();
    for offset in [0, floor.saturating_sub(1), floor, floor.saturating_add(1), u64::MAX] {
        let through = cursor.is_through(Offset(offset));
        assert!(through || offset >= floor);
        assert!(cursor.unsettled(Offset(offset)) <= offset);
    }
}

/// The sum is mended, so that what it covers is anything.
fn same_applied(value: &[u8]) {
    let mut mended = value.to_vec();
    if let Some((summed, sum)) = mended.split_last_chunk_mut::<4>() {
        *sum = crc32fast::hash(summed).to_be_bytes();
    }
    for value in [value, &mended] {
        if let Ok(row) = AppliedRow::decode(value) {
            assert_eq!(row.encode(), value);
        }
    }
}
