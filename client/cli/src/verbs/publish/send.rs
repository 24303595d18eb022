//! Sends one batch until all of it is stored, known already, or rejected.

use crate::connection::Connection;
use crate::names::ChannelKey;
use crate::refused::Refused;
use crate::verbs::publish::queue::{Batch, Queued};
use crate::verbs::publish::verdict::{self, Verdict};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use weir_proto::server::PublishRequest;
use weir_proto::v1::publish_result::Outcome as Answer;
use weir_proto::v1::{Duplicate, PublishResponse};

/// First wait before a retry, where the broker names none.
const WAIT_FIRST: Duration = Duration::from_millis(100);
/// Longest wait before a retry, whoever names it.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// What became of messages.
#[derive(Debug)]
pub(super) enum Outcome {
    /// One was stored.
    Stored {
        /// Whether its bytes were synced before the answer.
        durable: bool,
    },
    /// One was known already.
    Duplicate {
        /// Its line.
        line: u64,
        /// The first one.
        first: Box<Duplicate>,
    },
    /// One was refused.
    Rejected {
        /// Its line.
        line: u64,
        /// Why.
        refused: Refused,
    },
    /// Some were given up.
    GivenUp {
        /// Their lines.
        lines: Vec<u64>,
        /// Why.
        refused: Refused,
    },
}

/// What must not be tried any more.
#[derive(Debug)]
pub(super) enum End {
    /// Anything to this channel.
    Channel(Refused),
    /// Anything at all.
    Run(Refused),
}

/// A batch that came back.
#[derive(Debug)]
pub(super) struct Sent {
    /// Where it went.
    pub(super) channel: ChannelKey,
    /// What became of its messages.
    pub(super) outcomes: Vec<Outcome>,
    /// Set if it was given up.
    pub(super) end: Option<End>,
}

/// Sends batches under one policy.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    connection: Connection,
    policy: String,
}

impl Sender {
    /// Publishes under `policy`.
    pub(super) fn new(connection: Connection, policy: String) -> Self {
        Self { connection, policy }
    }

    /// Sends a batch, again and in parts where that may help. Gives up when nothing was stored for as long as an answer
    /// may take.
    pub(super) async fn send(&self, batch: Batch) -> Sent {
        let mut outcomes = Vec::with_capacity(batch.lines.len());
        let mut parts = VecDeque::from([batch.lines]);
        let mut patience = Patience::new(self.connection.timeout());
        let end = loop {
            let Some(part) = parts.pop_front() else {
                break None;
            };
            match self.publish(&batch.channel, &part).await {
                Ok(response) => {
                    let pause = Duration::from_millis(response.retry_after_ms).min(WAIT_MAX);
                    outcomes.extend(taken(&part, response));
                    patience = Patience::new(self.connection.timeout());
                    if !parts.is_empty() || !pause.is_zero() {
                        sleep(pause).await;
                    }
                }
                Err(refused) => {
                    let verdict = verdict::of(&refused, part.len());
                    let tried = Tried { part, refused };
                    if let Some(end) = tried.follow(verdict, &mut parts, &mut outcomes, &mut patience).await {
                        break Some(end);
                    }
                }
            }
        };
        Sent { channel: batch.channel, outcomes, end }
    }

    async fn publish(&self, channel: &ChannelKey, part: &[Queued]) -> Result<PublishResponse, Refused> {
        let request = PublishRequest {
            policy: self.policy.clone(),
            tenant: channel.tenant.clone(),
            agent_id: channel.agent_id.clone(),
            messages: part.iter().map(|line| line.message.clone()).collect(),
        };
        let mut publisher = self.connection.publisher();
        let response = self.connection.call(publisher.publish(request)).await?;
        if response.results.len() == part.len() && response.results.iter().all(|r| r.outcome.is_some()) {
            return Ok(response);
        }
        Err(Refused::nonsense("the answer does not say what became of each message"))
    }
}

fn taken(part: &[Queued], response: PublishResponse) -> impl Iterator<Item = Outcome> {
    let results = response.results.into_iter().filter_map(|result| result.outcome);
    part.iter().zip(results).map(|(line, result)| match result {
        Answer::Stored(stored) => Outcome::Stored { durable: stored.durable },
        Answer::Duplicate(first) => Outcome::Duplicate { line: line.number, first: Box::new(first) },
    })
}

/// Messages that were refused together.
struct Tried {
    part: Vec<Queued>,
    refused: Refused,
}

impl Tried {
    /// Does what the verdict says: puts what is to be sent again at the front of `parts`, or gives up.
    async fn follow(
        mut self,
        verdict: Verdict,
        parts: &mut VecDeque<Vec<Queued>>,
        outcomes: &mut Vec<Outcome>,
        patience: &mut Patience,
    ) -> Option<End> {
        match verdict {
            Verdict::Message(place) => {
                let line = self.part.remove(place).number;
                outcomes.push(Outcome::Rejected { line, refused: self.refused });
                if !self.part.is_empty() {
                    parts.push_front(self.part);
                }
            }
            Verdict::Split => {
                let second = self.part.split_off(self.part.len() / 2);
                parts.push_front(second);
                parts.push_front(self.part);
            }
            Verdict::Wait => {
                if !patience.wait(self.refused.retry_after).await {
                    let away = self.refused.is_away();
                    let refused = self.give_up(parts, outcomes);
                    return Some(if away { End::Run(refused) } else { End::Channel(refused) });
                }
                parts.push_front(self.part);
            }
            Verdict::Channel => return Some(End::Channel(self.give_up(parts, outcomes))),
            Verdict::Run => return Some(End::Run(self.give_up(parts, outcomes))),
        }
        None
    }

    fn give_up(self, parts: &mut VecDeque<Vec<Queued>>, outcomes: &mut Vec<Outcome>) -> Refused {
        let rest = parts.drain(..).flatten();
        let lines = self.part.into_iter().chain(rest).map(|line| line.number).collect();
        outcomes.push(Outcome::GivenUp { lines, refused: self.refused.clone() });
        self.refused
    }
}

/// How long to go on without success.
struct Patience {
    until: Instant,
    next: Duration,
}

impl Patience {
    fn new(limit: Duration) -> Self {
        Self { until: Instant::now() + limit, next: WAIT_FIRST }
    }

    /// Waits as the broker asks, else longer each time; `false`, at once, if the time is over.
    async fn wait(&mut self, asked: Option<Duration>) -> bool {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        let pause = asked.unwrap_or(self.next).clamp(Duration::from_millis(10), WAIT_MAX).min(left);
        self.next = (self.next * 2).min(WAIT_MAX);
        sleep(pause).await;
        true
    }
}
