//! An engine with a store and a journal in memory, and short words to drive it.

use super::super::*;
use crate::journal::entry;
use crate::model::policy::ChannelPolicy;
use crate::model::{
    BeginResult, ChannelRef, Complete, CompleteResult, Effect, Epoch, Execution, Explanation, FetchLimits, FinalState,
    GroupAudit, GroupInfo, GroupRef, GroupSpec, LeaseRef, Outcome, PublishResult, Published, Refusal, Resolve,
    Selector, SessionId, SessionRef, Settle, SettleResult, Start,
};
use crate::state::rows;
use crate::state::{AppliedRow, Batch, Family, MemoryDisk, MemoryStore, Scan, Store};
use prost::Message as _;
use std::collections::{BTreeMap, HashSet, VecDeque};

pub(super) const HASHER: NameHasher = NameHasher::new(0x77);
pub(super) const TENANT: &str = "acme";

/// A message to publish, with what most tests leave alone filled in.
#[derive(Clone, Debug)]
pub(super) struct Draft(pub(super) weir_proto::v1::Message);

pub(super) fn event(task: &str, id: &str) -> Draft {
    Draft(weir_proto::v1::Message {
        message_id: id.to_owned(),
        task_id: task.to_owned(),
        agent_id: "desk".to_owned(),
        r#type: "event".to_owned(),
        payload: id.as_bytes().to_vec().into(),
        ..Default::default()
    })
}

pub(super) fn request(task: &str, execution: &str) -> Draft {
    let mut draft = event(task, &format!("request-{execution}"));
    draft.0.r#type = "task.request".to_owned();
    draft.0.execution_id = execution.to_owned();
    draft.0.effect = 3;
    draft
}

pub(super) fn report(task: &str, id: &str, execution: &str, state: FinalState) -> Draft {
    let mut draft = event(task, id);
    draft.0.r#type = "task.result".to_owned();
    draft.0.execution_id = execution.to_owned();
    draft.0.final_state = match state {
        FinalState::Completed => 1,
        FinalState::Failed => 2,
        FinalState::Canceled => 3,
        FinalState::Rejected => 4,
        FinalState::Unknown => 5,
    };
    draft
}

impl Draft {
    pub(super) fn with(mut self, change: impl FnOnce(&mut weir_proto::v1::Message)) -> Self {
        change(&mut self.0);
        self
    }

    pub(super) fn effect(self, effect: Effect) -> Self {
        self.with(|m| {
            m.effect = match effect {
                Effect::Unspecified => 0,
                Effect::None => 1,
                Effect::Idempotent => 2,
                Effect::Unsafe => 3,
            }
        })
    }

    fn headed(self) -> (Bytes, Arc<MessageHead>) {
        let bytes = Bytes::from(self.0.encode_to_vec());
        let head = admitted_head_of(HASHER, &bytes).unwrap();
        (bytes, head)
    }
}

/// What a frame left in the journal.
struct KeptFrame {
    lsn: Lsn,
    entries: Vec<u8>,
    records: Vec<StoredRecord>,
}

pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) now: UnixMillis,
    disk: MemoryDisk,
    store: MemoryStore,
    journal: Vec<KeptFrame>,
    messages: BTreeMap<(ChannelNo, Offset), Bytes>,
    tickets: u64,
    replies: BTreeMap<Ticket, Reply>,
    pub(super) streamed: Vec<Out>,
    limits: CacheLimits,
}

pub(super) fn channel() -> ChannelRef {
    ChannelRef { policy: "task_events".to_owned(), tenant: TENANT.to_owned(), agent: "desk".to_owned() }
}

pub(super) fn group_ref(name: &str) -> GroupRef {
    GroupRef { scope: TENANT.to_owned(), policy: "task_events".to_owned(), name: name.to_owned() }
}

pub(super) fn spec(name: &str) -> GroupSpec {
    GroupSpec {
        name: group_ref(name),
        selector: Selector::Tenant(TENANT.to_owned()),
        start: Start::Earliest,
        executes: true,
        skip_if_final: false,
        pressure: true,
        window: 0,
        max_attempts: 5,
    }
}

/// A session of group `g`.
pub(super) fn session(id: u128) -> SessionRef {
    session_of("g", id)
}

pub(super) fn session_of(group: &str, id: u128) -> SessionRef {
    let of_group = group.bytes().fold(0u128, |sum, b| sum * 256 + u128::from(b));
    SessionRef {
        id: SessionId(of_group << 64 | id),
        group: group_ref(group),
        member: format!("member-{id}"),
        instance: String::new(),
        timeout_ms: 30_000,
        held: None,
    }
}

impl World {
    /// With the policy `task_events` and the group `g`.
    pub(super) fn new() -> Self {
        Self::with_limits(CacheLimits::default())
    }

    pub(super) fn with_limits(limits: CacheLimits) -> Self {
        let disk = MemoryDisk::default();
        let store = MemoryStore::open(&disk);
        let now = UnixMillis(1_000_000);
        let mut engine =
            Engine::new(HASHER, settings(limits), Resident::default(), Counters::default(), Lsn(0), UnixMillis(0));
        engine.start(now);
        let mut world = Self {
            engine,
            now,
            disk,
            store,
            journal: Vec::new(),
            messages: BTreeMap::new(),
            tickets: 0,
            replies: BTreeMap::new(),
            streamed: Vec::new(),
            limits,
        };
        world.call(Command::PutPolicy(ChannelPolicy::named("task_events")));
        world.create(spec("g"));
        world
    }

    /// Carries a command out, with all that it and others want.
    pub(super) fn ask(&mut self, command: Command) -> Ticket {
        self.tickets += 1;
        let ticket = self.tickets;
        loop {
            let missing = self.engine.needs(&command);
            if missing.is_empty() {
                break;
            }
            for key in missing {
                let arrival = self.load(Want::Row(key));
                let turn = self.engine.arrived(self.now, arrival).unwrap();
                self.keep(turn);
            }
        }
        let turn = self.engine.handle(self.now, ticket, command);
        self.keep(turn);
        ticket
    }

    pub(super) fn call(&mut self, command: Command) -> Reply {
        let ticket = self.ask(command);
        self.reply(ticket).expect("answered at once")
    }

    pub(super) fn reply(&mut self, ticket: Ticket) -> Option<Reply> {
        self.replies.remove(&ticket)
    }

    /// Time passes.
    pub(super) fn pass(&mut self, millis: u64) {
        let end = self.now.plus(millis);
        while let Some(due) = self.engine.next_due().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            let turn = self.engine.tick(self.now);
            self.keep(turn);
        }
        self.now = end;
        let turn = self.engine.tick(self.now);
        self.keep(turn);
    }

    pub(super) fn keep(&mut self, turn: Turn) {
        let mut wants = VecDeque::from(turn.wants.clone());
        self.journal_turn(turn);
        while let Some(want) = wants.pop_front() {
            let arrival = self.load(want);
            let turn = self.engine.arrived(self.now, arrival).unwrap();
            wants.extend(turn.wants.clone());
            self.journal_turn(turn);
        }
    }

    fn journal_turn(&mut self, turn: Turn) {
        if !turn.entries.is_empty() {
            for record in &turn.records {
                self.messages.insert((record.channel, record.offset), record.bytes.clone());
            }
            let entries = entry::encode(&turn.entries).unwrap();
            self.journal.push(KeptFrame { lsn: turn.lsn, entries, records: turn.records });
        }
        for out in turn.outs {
            match out {
                Out::Reply(ticket, reply) => {
                    self.replies.insert(ticket, reply);
                }
                other => self.streamed.push(other),
            }
        }
    }

    fn load(&self, want: Want) -> Arrival {
        if let Want::Row(RowKey::Head(channel, offset)) = want {
            let loaded = match self.messages.get(&(channel, offset)) {
                Some(bytes) => Loaded::Head(head_of(HASHER, bytes).unwrap()),
                None => Loaded::Unreadable("segment 1 is damaged at 4096".to_owned()),
            };
            return Arrival::Row(RowKey::Head(channel, offset), loaded);
        }
        crate::broker::load(&self.store, None, HASHER, want).unwrap()
    }

    /// The disk loses a message.
    pub(super) fn damage(&mut self, channel: ChannelNo, offset: u64) {
        self.messages.remove(&(channel, Offset(offset))).expect("it is there");
    }

    /// A checkpoint, written and finished.
    pub(super) fn checkpoint(&mut self) {
        let frozen = self.engine.freeze().unwrap();
        let generation = frozen.generation;
        self.store
            .checkpoint(Batch {
                puts: frozen.puts,
                deletes: frozen.deletes,
                applied: AppliedRow {
                    journal_id: 0x77,
                    segment: crate::model::SegmentNo(1),
                    lsn: frozen.lsn,
                    broker_time: frozen.time,
                    epoch: frozen.counters.epoch,
                    next_channel: frozen.counters.channel.next(),
                    next_policy: frozen.counters.policy.next(),
                    next_group: frozen.counters.group.next(),
                },
            })
            .unwrap();
        self.engine.checkpoint_finished(generation);
        for _ in 0..3 {
            self.engine.sweep();
        }
    }

    /// The process dies and comes back: the last checkpoint, and the frames after it.
    pub(super) fn restart(&mut self) {
        self.store = MemoryStore::open(&self.disk);
        let applied = self.store.applied().unwrap();
        let mut resident = Resident::default();
        for (key, value) in self.rows(Family::Policies) {
            resident.policies.push((
                crate::model::PolicyNo(u32::from_be_bytes(key.try_into().unwrap())),
                rows::decode(&value).unwrap(),
            ));
        }
        for (key, value) in self.rows(Family::Groups) {
            resident.groups.push((
                crate::model::GroupNo(u32::from_be_bytes(key.try_into().unwrap())),
                rows::decode(&value).unwrap(),
            ));
        }
        for (key, value) in self.rows(Family::Sessions) {
            resident
                .sessions
                .push((SessionId(u128::from_be_bytes(key.try_into().unwrap())), rows::decode(&value).unwrap()));
        }
        for (key, value) in self.rows(Family::Deliveries) {
            resident.deliveries.push((rows::parse_delivery_key(&key).unwrap(), rows::decode(&value).unwrap()));
        }
        for (key, value) in self.rows(Family::Settles) {
            let row: rows::SettleBlockRow = rows::decode(&value).unwrap();
            resident.settle_blocks.push((u64::from_be_bytes(key.try_into().unwrap()), row.last_at));
        }
        let (lsn, time, counters) = applied.map_or((Lsn(0), UnixMillis(0), Counters::default()), |row| {
            let counters = Counters {
                epoch: row.epoch,
                channel: ChannelNo(row.next_channel.get() - 1),
                policy: crate::model::PolicyNo(row.next_policy.get() - 1),
                group: crate::model::GroupNo(row.next_group.get() - 1),
            };
            (row.lsn, row.broker_time, counters)
        });
        let mut engine = Engine::new(HASHER, settings(self.limits), resident, counters, lsn, time);
        for frame in self.journal.iter().filter(|frame| frame.lsn > lsn) {
            let entries = entry::decode(&frame.entries).unwrap();
            let heads: Vec<_> = frame.records.iter().map(|r| head_of(HASHER, &r.bytes).unwrap()).collect();
            loop {
                let missing = engine.replay_needs(&entries, &heads);
                if missing.is_empty() {
                    break;
                }
                for key in missing {
                    let Arrival::Row(key, row) =
                        crate::broker::load(&self.store, None, HASHER, Want::Row(key)).unwrap()
                    else {
                        unreachable!()
                    };
                    engine.admit(key, row).unwrap();
                }
            }
            engine.replay(frame.lsn, &entries, &heads);
        }
        engine.start(self.now);
        self.engine = engine;
        self.replies.clear();
    }

    pub(super) fn rows(&self, family: Family) -> Vec<(Vec<u8>, Bytes)> {
        self.store.scan(family, Scan { prefix: &[], after: None, limit: 4096 }).unwrap()
    }

    // Short words.

    pub(super) fn create(&mut self, spec: GroupSpec) -> GroupInfo {
        match self.call(Command::CreateGroup(spec)) {
            Reply::GroupCreated(info, _) => *info,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn try_publish(&mut self, drafts: Vec<Draft>) -> Result<Published, Refusal> {
        self.try_publish_to(channel(), drafts)
    }

    pub(super) fn try_publish_to(&mut self, channel: ChannelRef, drafts: Vec<Draft>) -> Result<Published, Refusal> {
        let messages = drafts.into_iter().map(Draft::headed).collect();
        match self.call(Command::Publish { channel, messages }) {
            Reply::Published(published) => Ok(published),
            Reply::Refused(refusal) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn publish(&mut self, drafts: Vec<Draft>) -> Vec<PublishResult> {
        self.try_publish(drafts).unwrap().results
    }

    pub(super) fn start_fetch(&mut self, session: &SessionRef, max: u32, wait_ms: u64) -> Ticket {
        let limits = FetchLimits { max_messages: max, max_bytes: 1 << 20, wait_ms, lease_ms: 0 };
        self.ask(Command::Fetch(session.clone(), limits))
    }

    pub(super) fn fetched(&mut self, ticket: Ticket) -> Option<Vec<DeliveryMeta>> {
        match self.reply(ticket)? {
            Reply::Fetched { deliveries, .. } => Some(deliveries),
            other => panic!("{other:?}"),
        }
    }

    /// What fetches that do not wait bring, until one brings nothing or `max` are here. (A fetch is answered with what is
    /// at hand, so several may be needed for all that is ready.)
    pub(super) fn fetch(&mut self, session: &SessionRef, max: u32) -> Vec<DeliveryMeta> {
        let mut all = Vec::new();
        let mut session = session.clone();
        while all.len() < max as usize {
            let ticket = self.start_fetch(&session, max - u32::try_from(all.len()).unwrap(), 0);
            self.pass(0);
            let got = self.fetched(ticket).expect("a fetch that does not wait is answered");
            if got.is_empty() {
                break;
            }
            all.extend(got);
            session.held = None;
        }
        all
    }

    pub(super) fn settle(&mut self, session: &SessionRef, delivery: &DeliveryMeta, outcome: Outcome) -> SettleResult {
        self.settle_as(session, delivery, outcome, false)
    }

    pub(super) fn settle_as(
        &mut self,
        session: &SessionRef,
        delivery: &DeliveryMeta,
        outcome: Outcome,
        not_executed: bool,
    ) -> SettleResult {
        let settle = Settle { lease: lease(delivery), outcome, not_executed };
        match self.call(Command::Settle(session.clone(), vec![settle])) {
            Reply::Settled(mut results) => results.pop().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn done(&mut self, session: &SessionRef, delivery: &DeliveryMeta) -> SettleResult {
        self.settle(session, delivery, Outcome::Done)
    }

    pub(super) fn begin(&mut self, session: &SessionRef, delivery: &DeliveryMeta) -> BeginResult {
        match self.call(Command::Begin(session.clone(), lease(delivery))) {
            Reply::Begun(result) => result,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn begun(&mut self, session: &SessionRef, delivery: &DeliveryMeta) -> Epoch {
        match self.begin(session, delivery) {
            BeginResult::Ok { fencing_token } => fencing_token,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn complete(
        &mut self,
        session: &SessionRef,
        delivery: &DeliveryMeta,
        execution: &str,
        token: Epoch,
        state: FinalState,
    ) -> CompleteResult {
        self.try_complete(session, delivery, (execution, token, state), Vec::new()).unwrap()
    }

    /// A complete with follow-ups.
    pub(super) fn try_complete(
        &mut self,
        session: &SessionRef,
        delivery: &DeliveryMeta,
        (execution, token, state): (&str, Epoch, FinalState),
        follow_ups: Vec<(ChannelRef, Draft)>,
    ) -> Result<CompleteResult, Refusal> {
        let (publishes, heads) = follow_ups
            .into_iter()
            .map(|(channel, draft)| {
                let (bytes, head) = draft.headed();
                ((channel, bytes), head)
            })
            .unzip();
        let complete = Complete {
            lease: lease(delivery),
            tenant: TENANT.to_owned(),
            execution_id: execution.to_owned(),
            fencing_token: token,
            final_state: state,
            artifact_ref: format!("artifact-of-{execution}"),
            publishes,
        };
        match self.call(Command::Complete(session.clone(), Box::new(complete), heads)) {
            Reply::Completed(result) => Ok(result),
            Reply::Refused(refusal) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn resolve(&mut self, execution: &str, state: Option<FinalState>) -> Result<Execution, Refusal> {
        let resolve = Resolve {
            tenant: TENANT.to_owned(),
            execution_id: execution.to_owned(),
            state,
            artifact_ref: String::new(),
            evidence: "asked the provider".to_owned(),
            by: "ops".to_owned(),
        };
        match self.call(Command::Resolve(resolve)) {
            Reply::Execution(execution) => Ok(*execution),
            Reply::Refused(refusal) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn explain(&mut self, execution: &str) -> Explanation {
        match self.call(Command::Explain(TENANT.to_owned(), execution.to_owned())) {
            Reply::Explained(explanation) => *explanation,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn info(&mut self, group: &str) -> GroupInfo {
        match self.call(Command::GetGroup(group_ref(group))) {
            Reply::Group(info) => *info,
            other => panic!("{other:?}"),
        }
    }

    /// The books of the group, which must balance.
    pub(super) fn audit(&mut self, group: &str) -> GroupAudit {
        let channels = (1..=20).map(ChannelNo).collect();
        match self.call(Command::Audit(group_ref(group), channels)) {
            Reply::Audited(audit) => {
                assert!(audit.balanced, "{audit:?}");
                *audit
            }
            other => panic!("{other:?}"),
        }
    }

    /// No two live leases for one message of one group, ever.
    pub(super) fn assert_leases_are_unique(&self) {
        let mut seen = HashSet::new();
        for key in self.engine.memory.leases.values() {
            assert!(seen.insert(*key), "two leases on {key:?}");
        }
    }
}

fn settings(limits: CacheLimits) -> EngineSettings {
    EngineSettings { session_timeout_ms: 30_000, limits }
}

pub(super) fn lease(delivery: &DeliveryMeta) -> LeaseRef {
    LeaseRef { epoch: delivery.epoch, offset: delivery.offset }
}

pub(super) fn offsets(results: &[PublishResult]) -> Vec<u64> {
    results
        .iter()
        .map(|result| match result {
            PublishResult::Stored(offset) => offset.get(),
            PublishResult::Duplicate(duplicate) => duplicate.offset.get(),
        })
        .collect()
}

pub(super) fn is_duplicate(result: &PublishResult) -> bool {
    matches!(result, PublishResult::Duplicate(_))
}
