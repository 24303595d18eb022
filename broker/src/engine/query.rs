//! Questions: answered from memory, changing nothing.

use super::Engine;
use super::command::Snapshot;
use super::memory::{GroupMemory, Memory};
use crate::journal::entry::{ExecutionHash, PartitionKey};
use crate::model::{
    BeginInfo, ChannelInfo, ChannelNo, DeliveryInfo, Execution, GroupAudit, GroupInfo, GroupNo, GroupRef, MemberInfo,
    Offset, ParkedInfo, Refusal, Remark, SessionId, UnixMillis, Waiting,
};
use crate::state::rows::{DeliveryRow, DeliveryState, ExecutionRow};

/// Parked messages that one answer lists.
const PARKED_MAX: usize = 1_000;

/// Parked partitions of a group, at most as many as one answer lists.
pub(super) fn parked_partitions(memory: &Memory, group: &GroupRef) -> Vec<(PartitionKey, DeliveryRow)> {
    let Some(no) = memory.group_by_name.get(group).copied() else { return Vec::new() };
    let Some(group) = memory.groups.get(&no) else { return Vec::new() };
    group
        .partitions
        .iter()
        .filter_map(|((channel, task), partition)| {
            let row = partition.delivery.as_ref()?;
            let key = PartitionKey { group: no, channel: *channel, task: *task };
            matches!(row.state, DeliveryState::Parked { .. }).then(|| (key, row.clone()))
        })
        .take(PARKED_MAX)
        .collect()
}

impl Engine {
    pub(super) fn group_info(&self, now: UnixMillis, no: GroupNo) -> Option<GroupInfo> {
        let group = self.memory.groups.get(&no)?;
        Some(GroupInfo {
            spec: group.row.spec.clone(),
            made_at: group.row.made_at,
            counts: group.row.counts.clone(),
            waiting: group.waiting(),
            ready: ready(group),
            delayed: group.tallies.delayed,
            in_flight: group.tallies.in_flight,
            held: group.tallies.held,
            parked: group.tallies.parked,
            members: group.sessions.len() as u64,
            oldest_held_ms: oldest_held(group).map_or(0, |since| now.since(since)),
        })
    }

    pub(super) fn group_infos(&self, now: UnixMillis, scope: &str) -> Vec<GroupInfo> {
        self.memory
            .groups
            .iter()
            .filter(|(_, group)| scope.is_empty() || group.row.spec.name.scope == scope)
            .filter_map(|(no, _)| self.group_info(now, *no))
            .collect()
    }

    pub(super) fn members(&self, group: &GroupRef) -> Result<Vec<MemberInfo>, Refusal> {
        let no = self.group_no(group)?;
        let Some(group) = self.memory.groups.get(&no) else { return Ok(Vec::new()) };
        Ok(group
            .sessions
            .iter()
            .filter_map(|id| {
                let session = self.memory.sessions.get(id)?;
                Some(MemberInfo {
                    member: session.row.member.clone(),
                    session: *id,
                    leases: session.leases.len() as u64,
                    last_seen: self.live.get(*id).map_or(session.row.joined_at, |live| live.last_seen),
                })
            })
            .collect())
    }

    pub(super) fn parked(&self, group: &GroupRef) -> Result<Vec<ParkedInfo>, Refusal> {
        self.group_no(group)?;
        Ok(parked_partitions(&self.memory, group)
            .into_iter()
            .filter_map(|(key, row)| {
                let DeliveryState::Parked { since } = row.state else { return None };
                let task = self.memory.tasks.get(&(key.channel, key.task))?;
                Some(ParkedInfo {
                    channel: self.channel_ref(key.channel)?,
                    offset: row.offset,
                    task_id: task.task_id.to_string(),
                    reason: row.reason,
                    since,
                    failed: row.failed,
                    lease_lost: row.lease_lost,
                })
            })
            .collect())
    }

    pub(super) fn channel_info(&self, no: ChannelNo) -> Option<ChannelInfo> {
        let row = self.memory.channels.get(&no)?;
        let channel = self.channel_ref(no)?;
        let depth = self
            .memory
            .groups_reading(row.policy, &row.tenant, &row.agent)
            .into_iter()
            .map(|group| self.memory.channel_depth(group, no))
            .max()
            .unwrap_or_default();
        Some(ChannelInfo {
            channel,
            head: row.head,
            base: Offset(0),
            bytes: row.bytes,
            made_at: row.made_at,
            last_publish_at: row.last_publish_at,
            depth,
        })
    }

    /// The books of a group, and its unsettled messages counted over `channels`, which are all that it reads.
    pub(super) fn audit(
        &self,
        now: UnixMillis,
        group: &GroupRef,
        channels: &[ChannelNo],
    ) -> Result<GroupAudit, Refusal> {
        let no = self.group_no(group)?;
        let info = self.group_info(now, no).ok_or_else(|| Refusal::new(crate::model::Reason::NotFound, "gone"))?;
        let memory = self.memory.groups.get(&no);
        let counted_unsettled = channels
            .iter()
            .filter_map(|channel| {
                let row = self.memory.channels.get(channel)?;
                let cursor = memory?.channels.get(channel)?;
                Some(cursor.row.unsettled(row.head))
            })
            .sum();
        let leases = memory.map_or(0, |group| {
            group.partitions.values().filter(|p| p.delivery.as_ref().is_some_and(|d| d.lease().is_some())).count()
                as u64
        });
        let through = info.counts.settled_total() + info.counts.gone_total();
        let identity = info.counts.offered == through + info.depth() + info.parked;
        let balanced = identity && counted_unsettled == info.depth() + info.parked && leases == info.in_flight;
        Ok(GroupAudit { info, counted_unsettled, balanced })
    }

    pub(super) fn snapshot(&self, now: UnixMillis) -> Snapshot {
        let m = &self.memory;
        Snapshot {
            at: now,
            lsn: m.lsn,
            groups: self.group_infos(now, ""),
            leases: m.leases.len() as u64,
            sessions: m.sessions.len() as u64,
            waiting_fetches: self.live.waiting_fetches(),
            unknown_entered: m.unknown_entered,
            unknown_left: m.unknown_left,
            published: m.policies.values().map(|row| row.published).sum(),
            policies: m.policies.len() as u64,
            channels: m.counters.channel.get(),
            rows_in_memory: (m.names.len()
                + m.channels.len()
                + m.tasks.len()
                + m.pairs.len()
                + m.executions.len()
                + m.settles.len()
                + m.totals.len()
                + m.heads.len()) as u64,
            dirty_rows: m.dirty_rows() as u64,
        }
    }

    /// Why a session is handed nothing now.
    pub(super) fn waiting_reason(&self, id: SessionId) -> Waiting {
        let Some(group) = self.memory.sessions.get(&id).and_then(|session| self.memory.groups.get(&session.row.group))
        else {
            return Waiting::Empty;
        };
        let t = &group.tallies;
        let unsettled = group.waiting() + t.in_flight + t.delayed + t.held + t.parked;
        if unsettled == 0 {
            Waiting::Empty
        } else if t.in_flight > 0 || group.ready.len() > 0 {
            Waiting::AllLeased
        } else if t.delayed > 0 {
            Waiting::AllDelayed
        } else if t.held > 0 {
            Waiting::AllHeld
        } else if t.parked > 0 {
            Waiting::AllParked
        } else {
            Waiting::AllLeased
        }
    }

    /// The public picture of an execution in memory.
    pub(super) fn execution_picture(&self, execution: ExecutionHash) -> Option<Execution> {
        self.memory.executions.get(&execution).map(|row| self.picture(row))
    }

    /// The public picture of a row.
    pub(super) fn picture(&self, row: &ExecutionRow) -> Execution {
        let group_ref = |no: GroupNo| {
            self.memory.groups.get(&no).map_or_else(
                || GroupRef { scope: String::new(), policy: String::new(), name: format!("(group {no}, gone)") },
                |group| group.row.spec.name.clone(),
            )
        };
        let place = |no: ChannelNo, offset: Offset| Some((self.channel_ref(no)?, offset));
        Execution {
            tenant: row.tenant.clone(),
            execution_id: row.execution_id.clone(),
            task_id: row.task_id.clone(),
            task_mismatch: row.task_mismatch,
            state: row.state,
            unknown_reason: row.unknown_reason,
            since: row.since,
            first_seen: row.first_seen,
            artifact_ref: row.artifact_ref.clone(),
            no_artifact: row.no_artifact,
            effect: row.effect,
            request: row.request.as_ref().and_then(|request| place(request.channel, request.offset)),
            requests: row.requests,
            report: row.report.and_then(|(no, offset)| place(no, offset)),
            begin: row.begin.as_ref().map(|begin| BeginInfo {
                group: group_ref(begin.partition.group),
                member: begin.member.clone(),
                epoch: begin.epoch,
                token: begin.token,
                at: begin.at,
                live: begin.live,
            }),
            begins: row.begins,
            begins_withdrawn: row.begins_withdrawn,
            publish_attempts: row.publish_attempts,
            duplicates: row.duplicates,
            repeated_at: (row.duplicates > 0).then_some(row.repeated_at),
            payload_mismatches: row.payload_mismatches,
            deliveries: row
                .deliveries
                .iter()
                .map(|delivery| DeliveryInfo {
                    group: group_ref(delivery.group),
                    member: delivery.member.clone(),
                    epoch: delivery.epoch,
                    attempt: delivery.attempt,
                    at: delivery.at,
                    begun: delivery.begun,
                    ended: delivery.ended,
                })
                .collect(),
            deliveries_total: row.deliveries_total,
            remarks: row
                .remarks
                .iter()
                .map(|remark| Remark { at: remark.at, kind: remark.kind, text: remark.text.clone() })
                .collect(),
            contradiction: row.contradiction,
        }
    }
}

/// Partitions that could be granted now.
fn ready(group: &GroupMemory) -> u64 {
    (group.ready.len() + group.fetching.len()) as u64
}

fn oldest_held(group: &GroupMemory) -> Option<UnixMillis> {
    if group.tallies.held == 0 {
        return None;
    }
    group
        .partitions
        .values()
        .filter_map(|p| match p.delivery.as_ref()?.state {
            DeliveryState::Held { since, .. } => Some(since),
            _ => None,
        })
        .min()
}
