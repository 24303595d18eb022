//! One channel's lane: sends its batches one after the other until nothing is left.
//!
//! A request is stored all or none. So a message that is refused for good is taken out and the rest goes again; and a
//! channel that has no room for the whole batch is offered half of it, down to single messages.

use super::lane::Item;
use super::{Published, Shared};
use crate::backoff::Backoff;
use crate::error::ClientError;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use weir_proto::server::PublishRequest;
use weir_proto::v1::{ChannelRef, ErrorReason, PublishResponse};

/// Sends what the channel has until nothing is left.
pub(super) async fn run(shared: Arc<Shared>, channel: ChannelRef) {
    let mut lane =
        Delivery { backoff: Backoff::new(shared.client.settings().backoff), size: usize::MAX, shared, channel };
    lane.linger().await;
    while let Some(batch) = lane.shared.lanes.take(&lane.channel, &lane.shared.options) {
        lane.deliver(batch).await;
    }
}

struct Delivery {
    shared: Arc<Shared>,
    channel: ChannelRef,
    backoff: Backoff,
    /// Most messages of the next request; smaller than a batch while the channel refuses whole ones.
    size: usize,
}

/// What is sensible after a failed request.
enum Next {
    /// The same again after a wait.
    Wait(Duration),
    /// A smaller request at once.
    Split,
    /// Without this message of the request.
    Without(usize),
}

impl Delivery {
    async fn linger(&self) {
        let options = &self.shared.options;
        if options.linger.is_zero() {
            return;
        }
        if let Some(full) = self.shared.lanes.filling(&self.channel, options) {
            tokio::select! {
                () = full.notified() => {}
                () = sleep(options.linger) => {}
            }
        }
    }

    /// Sends a batch until each of its messages is answered.
    async fn deliver(&mut self, mut open: VecDeque<Item>) {
        loop {
            let now = Instant::now();
            refuse_late(&mut open, now, &ClientError::out_of_time());
            if open.is_empty() {
                return;
            }
            let count = self.size.clamp(1, open.len());
            match self.attempt(&open, count).await {
                Ok(response) => {
                    self.backoff.reset();
                    self.size = self.size.saturating_mul(2);
                    let pause = Duration::from_millis(response.retry_after_ms);
                    answer(open.drain(..count), response);
                    self.slow_down(pause).await;
                }
                Err(error) => self.fail(&mut open, count, error).await,
            }
        }
    }

    async fn attempt(&self, open: &VecDeque<Item>, count: usize) -> Result<PublishResponse, ClientError> {
        // The semaphore is never closed; without a permit the call is merely not counted.
        let _call = self.shared.calls.acquire().await;
        let request = PublishRequest {
            policy: self.channel.policy.clone(),
            tenant: self.channel.tenant.clone(),
            agent_id: self.channel.agent_id.clone(),
            messages: open.iter().take(count).map(|item| item.message.clone()).collect(),
        };
        let limit = self.shared.client.settings().call_timeout;
        let mut service = self.shared.service.clone();
        let response = match timeout(limit, service.publish(request)).await {
            Ok(Ok(response)) => response.into_inner(),
            Ok(Err(status)) => return Err(status.into()),
            Err(_) => return Err(ClientError::unanswered(limit)),
        };
        let results = response.results.iter().filter(|result| result.outcome.is_some()).count();
        if results != count || response.results.len() != count {
            return Err(ClientError::nonsense(format!("{results} results for {count} messages")));
        }
        Ok(response)
    }

    async fn fail(&mut self, open: &mut VecDeque<Item>, count: usize, error: ClientError) {
        for item in open.iter_mut().take(count) {
            item.may_have_applied |= error.may_have_applied;
        }
        match self.judge(&error, count) {
            Next::Wait(wait) => self.wait(open, wait, &error).await,
            Next::Split => self.size = count / 2,
            Next::Without(index) => {
                if let Some(item) = open.remove(index) {
                    let field = error.field.replacen(&format!("messages[{index}]"), "message", 1);
                    item.refuse(&ClientError { field, ..error });
                }
            }
        }
    }

    fn judge(&mut self, error: &ClientError, count: usize) -> Next {
        let culprit = culprit(&error.field).filter(|index| *index < count);
        match (error.retryable, culprit) {
            (true, _) if error.reason == ErrorReason::DepthExceeded && count > 1 => Next::Split,
            (true, _) => Next::Wait(self.backoff.next(error.retry_after)),
            (false, Some(index)) => Next::Without(index),
            // Nobody said whose fault it is: halves find out.
            (false, None) if count > 1 => Next::Split,
            (false, None) => Next::Without(0),
        }
    }

    /// Waits, and refuses at once whatever cannot wait so long.
    async fn wait(&self, open: &mut VecDeque<Item>, wait: Duration, error: &ClientError) {
        let again = Instant::now() + wait;
        tracing::debug!(%error, wait_ms = wait.as_millis(), channel = ?self.channel, "publish failed, will be repeated");
        refuse_late(open, again, error);
        for item in self.shared.lanes.refuse_until(&self.channel, again, error) {
            item.refuse(error);
        }
        sleep_until(again).await;
        self.shared.lanes.refuse_no_more(&self.channel);
    }

    /// The channel asks for less: waits as it asks, but no longer than a refusal would make it wait.
    async fn slow_down(&self, pause: Duration) {
        let pause = pause.min(self.shared.client.settings().backoff.longest);
        if !pause.is_zero() {
            sleep(pause).await;
        }
    }
}

fn answer(items: impl Iterator<Item = Item>, response: PublishResponse) {
    let level = response.level();
    for (item, result) in items.zip(response.results) {
        let Some(outcome) = result.outcome else {
            continue;
        };
        item.answer(Ok(Published { outcome, level, depth: response.depth, limit: response.limit }));
    }
}

/// Refuses the messages whose time is over at `when`.
fn refuse_late(open: &mut VecDeque<Item>, when: Instant, error: &ClientError) {
    for _ in 0..open.len() {
        let Some(item) = open.pop_front() else { return };
        if item.until <= when {
            item.refuse(error);
        } else {
            open.push_back(item);
        }
    }
}

/// Which message a field path is about: 3 of `messages[3].task_id`.
fn culprit(field: &str) -> Option<usize> {
    let (index, _) = field.strip_prefix("messages[")?.split_once(']')?;
    index.parse().ok()
}
