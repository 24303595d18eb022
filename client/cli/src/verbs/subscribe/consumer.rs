//! The member at work: fetch, print, settle, again.

use crate::cli::Global;
use crate::connection::{Connection, within};
use crate::exit::Failure;
use crate::names::ChannelKey;
use crate::output::{Map, Output, Tree, escape};
use crate::refused::Refused;
use crate::verbs::subscribe::heartbeat::Heart;
use crate::verbs::subscribe::idle::{Idle, is_quiet};
use crate::verbs::subscribe::leases::{HELD_MAX, Leases};
use crate::verbs::subscribe::{get, line};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use weir_proto::v1::notice::Kind;
use weir_proto::v1::settle_result::Result as Settled;
use weir_proto::v1::{
    ErrorReason, FetchRequest, FetchResponse, GroupRef, LeaveRequest, Notice, Session, SettleOutcome, SettleRequest,
    SettleResult,
};

/// Most messages asked for at once.
const FETCH_MESSAGES: u64 = 100;
/// Longest wait for a first message.
const FETCH_WAIT: Duration = Duration::from_secs(10);
/// The same while the end depends on the group being quiet.
const FETCH_WAIT_WATCHFUL: Duration = Duration::from_millis(500);
/// Most settlements in one call.
const SETTLEMENTS_MAX: usize = 1_000;
/// First and longest wait before a call is tried again.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Longest wait for the answer to a goodbye.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// When to end by itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ending {
    /// After so many messages.
    pub(super) max: Option<u64>,
    /// When the group was quiet for so long.
    pub(super) idle: Option<Duration>,
}

/// What the member does.
#[derive(Debug)]
pub(super) struct Consumer {
    /// The way to the broker.
    pub(super) connection: Connection,
    /// The group.
    pub(super) group: GroupRef,
    /// The member's name.
    pub(super) member: String,
    /// How long it may be silent, in milliseconds.
    pub(super) session_timeout_ms: u64,
    /// How messages are settled; not at all if none.
    pub(super) settle: Option<SettleOutcome>,
    /// For retries: how long they wait, in milliseconds.
    pub(super) retry_delay_ms: u64,
    /// When to end.
    pub(super) ending: Ending,
    /// Whether settles are shown.
    pub(super) verbose: bool,
}

impl Consumer {
    /// Works until `stopped`, or to its own end; then leaves the group.
    ///
    /// # Errors
    /// What the broker refused, or that stdout took no more.
    pub(super) async fn run(
        self,
        global: &Global,
        stopped: watch::Receiver<bool>,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let (sessions, session) = watch::channel(self.new_session());
        let heart = Heart::start(global, session)?;
        let mut work =
            Work { consumer: &self, sessions, stopped, leases: Leases::default(), backoff: BACKOFF.0, printed: 0 };
        let result = work.go_on(output).await;
        // A heartbeat behind the goodbye would join again.
        heart.stop();
        work.leave().await;
        result
    }

    fn new_session(&self) -> Session {
        Session {
            session_id: rand::random::<[u8; 16]>().to_vec().into(),
            group: Some(self.group.clone()),
            member: self.member.clone(),
            instance_id: String::new(),
            held: None,
            session_timeout_ms: self.session_timeout_ms,
        }
    }
}

struct Work<'a> {
    consumer: &'a Consumer,
    sessions: watch::Sender<Session>,
    stopped: watch::Receiver<bool>,
    leases: Leases,
    backoff: Duration,
    printed: u64,
}

impl Work<'_> {
    async fn go_on(&mut self, output: &mut Output) -> Result<(), Failure> {
        let mut idle = self.consumer.ending.idle.map(Idle::new);
        while let Some(most) = self.still_wanted() {
            let Some(answer) = self.until_stopped(self.fetch(most)).await else {
                return Ok(());
            };
            let Some(answer) = self.heard(answer).await? else {
                continue;
            };
            if let Some(held) = answer.held {
                self.leases.answered(held);
            }
            self.notice(answer.notices);
            let came = !answer.deliveries.is_empty();
            for delivery in answer.deliveries {
                self.leases.add(&delivery);
                output.json_line(&line::of(delivery))?;
                self.printed += 1;
            }
            self.settle(output).await?;
            if let Some(idle) = &mut idle {
                let quiet = !came && self.is_quiet().await?;
                if idle.observe(Instant::now(), quiet) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// How many messages to ask for; `None` at the end.
    fn still_wanted(&self) -> Option<u64> {
        if *self.stopped.borrow() {
            return None;
        }
        match self.consumer.ending.max {
            Some(max) => Some(max.saturating_sub(self.printed)).filter(|left| *left > 0),
            None => Some(FETCH_MESSAGES),
        }
    }

    async fn fetch(&self, wanted: u64) -> Result<FetchResponse, Refused> {
        let room = (HELD_MAX - self.leases.len().min(HELD_MAX)) as u64;
        let most = wanted.min(FETCH_MESSAGES).min(room);
        if most == 0 {
            sleep(FETCH_WAIT_WATCHFUL).await;
            return Ok(FetchResponse::default());
        }
        let wait = match self.consumer.ending.idle {
            Some(_) => FETCH_WAIT_WATCHFUL,
            None => FETCH_WAIT,
        };
        let request = FetchRequest {
            session: Some(Session { held: Some(self.leases.held()), ..self.session() }),
            max_messages: u32::try_from(most).unwrap_or(u32::MAX),
            max_bytes: 0,
            wait_ms: crate::duration::millis(wait),
            lease_ms: 0,
        };
        let limit = wait + self.consumer.connection.timeout();
        within(limit, self.consumer.connection.consumer().fetch(request)).await
    }

    fn session(&self) -> Session {
        self.sessions.borrow().clone()
    }

    /// Sorts out an answer: `None` means to try again, after the wait that was due.
    async fn heard<T>(&mut self, answer: Result<T, Refused>) -> Result<Option<T>, Failure> {
        let refused = match answer {
            Ok(answer) => {
                self.backoff = BACKOFF.0;
                return Ok(Some(answer));
            }
            Err(refused) => refused,
        };
        if refused.reason == Some(ErrorReason::StaleSession) {
            say("the session is over; joining again");
            self.leases.lose_all();
            self.sessions.send_replace(self.consumer.new_session());
        } else if refused.is_away() || refused.grpc == tonic::Code::ResourceExhausted {
            if self.backoff == BACKOFF.0 {
                say(&format!("trying again: {refused}"));
            }
        } else {
            return Err(refused.into());
        }
        let pause = refused.retry_after.unwrap_or(self.backoff).min(BACKOFF.1);
        self.backoff = (self.backoff * 2).min(BACKOFF.1);
        self.until_stopped(sleep(pause)).await;
        Ok(None)
    }

    fn notice(&mut self, notices: Vec<Notice>) {
        for notice in notices {
            match notice.kind {
                Some(Kind::Revoked(revoked)) => {
                    if let Some(lease) = revoked.lease {
                        self.leases.lose(lease.epoch);
                    }
                }
                Some(Kind::Draining(_)) => say("the broker is going down"),
                // The others ask nothing of a member that neither begins nor keeps messages back.
                _ => {}
            }
        }
    }

    /// Settles what is held, until every settle is answered or the work is stopped.
    async fn settle(&mut self, output: &mut Output) -> Result<(), Failure> {
        let Some(outcome) = self.consumer.settle else {
            return Ok(());
        };
        loop {
            let settlements = self.leases.settlements(outcome, self.consumer.retry_delay_ms, SETTLEMENTS_MAX);
            if settlements.is_empty() {
                return Ok(());
            }
            let asked = settlements.len();
            let request = SettleRequest { session: Some(self.session()), settlements };
            let mut consumer = self.consumer.connection.consumer();
            let answer = self.consumer.connection.call(consumer.settle(request)).await;
            match self.heard(answer).await? {
                Some(answer) if answer.results.len() != asked => {
                    return Err(Refused::nonsense("the answer does not say what became of each settle").into());
                }
                Some(answer) => {
                    for result in answer.results {
                        self.settled(result, output)?;
                    }
                }
                None if *self.stopped.borrow() => return Ok(()),
                None => {}
            }
        }
    }

    fn settled(&mut self, result: SettleResult, output: &mut Output) -> Result<(), Failure> {
        let Some(place) = self.leases.remove(result.epoch, result.offset) else {
            return Ok(());
        };
        let channel = ChannelKey::new(place.tenant, place.agent_id).to_string();
        let became = match result.result {
            Some(Settled::Ok(_)) => "OK",
            Some(Settled::AlreadySettled(_)) => "ALREADY_SETTLED",
            Some(Settled::LeaseLost(_)) => {
                say(&format!("offset {} of {channel} comes again: its lease was lost", result.offset));
                "LEASE_LOST"
            }
            Some(Settled::Refused(refused)) => {
                let reason = refused.reason().name();
                return Err(Failure::error(format!(
                    "offset {} of {channel} was not settled: {reason}: {}",
                    result.offset, refused.text
                )));
            }
            None => {
                return Err(Failure::error("the answer does not say what became of a settle"));
            }
        };
        if self.consumer.verbose {
            let line = Map::new()
                .with("settled", became)
                .with("policy", place.policy)
                .with("channel", channel)
                .with("offset", result.offset)
                .with("epoch", result.epoch);
            output.json_line(&Tree::from(line))?;
        }
        Ok(())
    }

    /// Whether nothing can come; a broker that does not answer leaves it open.
    async fn is_quiet(&mut self) -> Result<bool, Failure> {
        let answer = get(&self.consumer.connection, &self.consumer.group).await;
        let own = self.leases.len() as u64;
        Ok(self.heard(answer).await?.is_some_and(|group| is_quiet(&group, own)))
    }

    /// Waits for `work`, or until stopped: then `None`.
    async fn until_stopped<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut stopped = self.stopped.clone();
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => None,
            done = work => Some(done),
        }
    }

    async fn leave(&self) {
        let request = LeaveRequest { session: Some(self.session()) };
        let left = within(LEAVE_TIMEOUT, self.consumer.connection.consumer().leave(request)).await;
        if let Err(refused) = left {
            say(&format!("could not say goodbye: {refused}"));
        }
    }
}

fn say(words: &str) {
    eprintln!("{}", escape::controls(words));
}
