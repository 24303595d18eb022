//! Making groups and policies.

use super::Engine;
use super::command::Turn;
use crate::journal::entry::Entry;
use crate::model::{GroupInfo, GroupSpec, Offset, Reason, Refusal, Selector, Start, UnixMillis, policy::ChannelPolicy};

/// Groups a broker may have.
const GROUPS_MAX: usize = 10_000;
/// Policies a broker may have.
const POLICIES_MAX: usize = 1_000;

impl Engine {
    /// Whether these could all be put now, one after the other; the first that could not, and why.
    pub(crate) fn check_policies<'a>(&self, policies: &'a [ChannelPolicy]) -> Result<(), (&'a ChannelPolicy, Refusal)> {
        let mut count = self.memory.policies.len();
        for policy in policies {
            self.check_policy(policy, count).map_err(|refusal| (policy, refusal))?;
            count += usize::from(self.memory.policy(&policy.name).is_none());
        }
        Ok(())
    }

    /// Whether a policy could be put among `count`.
    fn check_policy(&self, policy: &ChannelPolicy, count: usize) -> Result<(), Refusal> {
        match self.memory.policy(&policy.name) {
            Some((_, row)) if row.policy.key != policy.key && row.published > 0 => {
                Err(Refusal::invalid("key", "the key template of a policy with channels never changes"))
            }
            None if count >= POLICIES_MAX => {
                Err(Refusal::new(Reason::Overloaded, format!("a broker has at most {POLICIES_MAX} policies")))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn put_policy(&mut self, policy: ChannelPolicy, turn: &mut Turn) -> Result<(), Refusal> {
        self.check_policy(&policy, self.memory.policies.len())?;
        let no = match self.memory.policy(&policy.name) {
            Some((_, row)) if row.policy == policy => return Ok(()),
            Some((no, _)) => no,
            None => self.memory.counters.policy.next(),
        };
        self.emit(turn, Entry::PolicyPut { no, policy });
        Ok(())
    }

    /// The group, and whether this call made it. Made the same way before: found.
    pub(super) fn create_group(
        &mut self,
        now: UnixMillis,
        spec: GroupSpec,
        turn: &mut Turn,
    ) -> Result<(GroupInfo, bool), Refusal> {
        if let Some(no) = self.memory.group_by_name.get(&spec.name).copied() {
            let other = self.memory.groups.get(&no).and_then(|group| group.row.spec.first_difference(&spec));
            return match (self.group_info(now, no), other) {
                (Some(info), None) => Ok((info, false)),
                (_, setting) => {
                    let setting = setting.unwrap_or("group");
                    let rule =
                        format!("group {} exists with another value of this; it stays as it was made", spec.name);
                    Err(Refusal { field: setting.to_owned(), ..Refusal::new(Reason::AlreadyExists, rule) })
                }
            };
        }
        let Some((policy, row)) = self.memory.policy(&spec.name.policy) else {
            return Err(Refusal {
                field: "policy".to_owned(),
                ..Refusal::new(Reason::NotFound, format!("there is no channel policy {:?}", spec.name.policy))
            });
        };
        if self.memory.groups.len() >= GROUPS_MAX {
            return Err(Refusal::new(Reason::Overloaded, format!("a broker has at most {GROUPS_MAX} groups")));
        }
        if let Selector::Channel { agent, .. } = &spec.selector {
            row.policy.key.check_agent(agent).map_err(|rule| Refusal::invalid("selector", rule))?;
        }
        let published = match &spec.selector {
            Selector::All => row.published,
            Selector::Tenant(tenant) => {
                self.memory.totals.get(&(policy, tenant.clone())).map_or(0, |totals| totals.published)
            }
            Selector::Channel { tenant, agent } => self
                .memory
                .channel_no(policy, tenant, agent)
                .and_then(|no| self.memory.channels.get(&no))
                .map_or(0, |row| row.head.get()),
        };
        let offered = match spec.start {
            Start::Earliest => published,
            Start::Latest => 0,
            Start::Offset(offset) => {
                if !matches!(spec.selector, Selector::Channel { .. }) {
                    return Err(Refusal::invalid("start", "a start offset needs a selector of one channel"));
                }
                if offset > Offset(published) {
                    return Err(Refusal::new(
                        Reason::OffsetBeyondEnd,
                        format!("offset {offset} is beyond the end of the channel, {published}"),
                    )
                    .with("earliest", 0)
                    .with("latest", published));
                }
                published - offset.get()
            }
        };
        let no = self.memory.counters.group.next();
        self.emit(turn, Entry::GroupMade { no, spec: spec.clone(), offered, at: now });
        let info = self.group_info(now, no);
        info.map(|info| (info, true)).ok_or_else(|| Refusal::new(Reason::NotFound, "the group is gone"))
    }
}
