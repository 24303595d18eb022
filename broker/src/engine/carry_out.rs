//! Each command to its decision.

use super::Engine;
use super::command::{Command, Reply, Ticket, Turn};
use super::execution::unknown_execution;
use crate::model::{Reason, Refusal, UnixMillis};

impl Engine {
    /// The reply, unless it comes later.
    pub(super) fn carry_out(
        &mut self,
        now: UnixMillis,
        ticket: Ticket,
        command: Command,
        turn: &mut Turn,
    ) -> Option<Reply> {
        let reply = match command {
            Command::PutPolicy(policy) => self.put_policy(policy, turn).map(|()| Reply::Done),
            Command::Publish { channel, messages } => {
                let finishing = messages.iter().all(|(_, head)| head.final_state.is_some());
                let allowed = if finishing { Ok(()) } else { self.refuse_when_draining() };
                allowed.and_then(|()| self.publish(now, channel, messages, turn)).map(Reply::Published)
            }
            Command::CreateGroup(spec) => {
                self.create_group(now, spec, turn).map(|(info, made)| Reply::GroupCreated(Box::new(info), made))
            }
            Command::Fetch(session, limits) => match self.fetch(now, ticket, &session, limits, turn) {
                Ok(reply) => return reply,
                Err(refusal) => Err(refusal),
            },
            Command::CancelFetch(session, of) => {
                self.cancel_fetch(session, of);
                Ok(Reply::Done)
            }
            Command::Attach(session, lease_ms) => self.attach(now, ticket, &session, lease_ms, turn),
            Command::Detach(session, of) => {
                self.detach(session, of);
                Ok(Reply::Done)
            }
            Command::Credit(session, stream, messages, bytes) => {
                self.credit(now, session, stream, messages, bytes);
                Ok(Reply::Done)
            }
            Command::Heartbeat(session) => self.heartbeat(now, &session, turn),
            Command::Leave(session) => {
                self.leave(now, &session, turn);
                Ok(Reply::Done)
            }
            Command::Settle(session, settles) => {
                self.seen(now, session.id);
                Ok(Reply::Settled(settles.iter().map(|settle| self.settle(now, &session, settle, turn)).collect()))
            }
            Command::Extend(session, extensions) => {
                self.seen(now, session.id);
                Ok(Reply::Settled(
                    extensions.iter().map(|(lease, ms)| self.extend(now, &session, *lease, *ms, turn)).collect(),
                ))
            }
            Command::Unreadable(session, leases) => {
                self.unreadable(now, session, &leases, turn);
                Ok(Reply::Done)
            }
            Command::Begin(session, lease) => {
                self.seen(now, session.id);
                self.refuse_when_draining().and_then(|()| self.begin(now, &session, lease, turn)).map(Reply::Begun)
            }
            Command::Complete(session, complete, heads) => {
                self.seen(now, session.id);
                self.complete(now, &session, &complete, &heads, turn).map(Reply::Completed)
            }
            Command::Resolve(resolve) => {
                self.resolve(now, &resolve, turn).map(|execution| Reply::Execution(Box::new(execution)))
            }
            Command::GetExecution(tenant, id) => self
                .execution_picture(self.memory.hasher.execution(&tenant, &id))
                .map(|execution| Reply::Execution(Box::new(execution)))
                .ok_or_else(|| unknown_execution(&tenant, &id)),
            Command::Explain(tenant, id) => self
                .explanation(self.memory.hasher.execution(&tenant, &id))
                .map(|explanation| Reply::Explained(Box::new(explanation)))
                .ok_or_else(|| unknown_execution(&tenant, &id)),
            Command::GetChannel(channel) => self.policy_of(&channel).map(|(no, _)| no).and_then(|policy| {
                self.memory
                    .channel_no(policy, &channel.tenant, &channel.agent)
                    .and_then(|no| self.channel_info(no))
                    .map(|info| Reply::Channel(Box::new(info)))
                    .ok_or_else(|| Refusal::new(Reason::NotFound, format!("nothing was ever published to {channel}")))
            }),
            Command::GetChannels(numbers) => {
                Ok(Reply::Channels(numbers.iter().filter_map(|no| self.channel_info(*no)).collect()))
            }
            Command::GetGroup(group) => self.group_no(&group).and_then(|no| {
                self.group_info(now, no)
                    .map(|info| Reply::Group(Box::new(info)))
                    .ok_or_else(|| Refusal::new(Reason::NotFound, format!("there is no group {group}")))
            }),
            Command::ListGroups(scope) => Ok(Reply::Groups(self.group_infos(now, &scope))),
            Command::ListMembers(group) => self.members(&group).map(Reply::Members),
            Command::ListParked(group) => self.parked(&group).map(Reply::Parked),
            Command::ListPolicies => {
                Ok(Reply::Policies(self.memory.policies.values().map(|row| row.policy.clone()).collect()))
            }
            Command::UnsavedChannels(policy) => match self.memory.policy(&policy) {
                Some((no, _)) => Ok(Reply::UnsavedChannels {
                    policy: no,
                    channels: self.memory.unsaved_names_between(no, None, None),
                }),
                None => Err(Refusal::new(Reason::NotFound, format!("there is no channel policy {policy:?}"))),
            },
            Command::UnsavedExecutions(tenant) => Ok(Reply::UnsavedExecutions(
                self.memory
                    .unsaved_executions
                    .keys()
                    .copied()
                    .filter(|hash| self.memory.executions.get(hash).is_some_and(|row| row.tenant == tenant))
                    .collect(),
            )),
            Command::GetExecutions(hashes) => {
                Ok(Reply::Executions(hashes.iter().filter_map(|hash| self.execution_picture(*hash)).collect()))
            }
            Command::Snapshot => Ok(Reply::Snapshot(Box::new(self.snapshot(now)))),
            Command::Audit(group, channels) => {
                self.audit(now, &group, &channels).map(|audit| Reply::Audited(Box::new(audit)))
            }
            Command::Drain => {
                self.drain(now, turn);
                Ok(Reply::Done)
            }
        };
        Some(reply.unwrap_or_else(Reply::Refused))
    }

    /// Nothing new from now on; waiting fetches end with this turn, streams are told.
    fn drain(&mut self, now: UnixMillis, turn: &mut Turn) {
        self.draining = true;
        let sessions: Vec<_> = self.live.ids().collect();
        for id in sessions {
            self.notify(id, crate::model::Notice::Draining, turn);
            self.live.change(id, |live| live.fetch.as_mut().map(|fetch| fetch.until = now));
        }
    }
}
