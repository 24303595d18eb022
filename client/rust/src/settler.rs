//! Settles for all jobs of a session: what waits goes in one call, and one call is in flight.
//!
//! A settle is safe to repeat, so it is repeated until it is answered or the session is closed.

use crate::backoff::Backoff;
use crate::connect::Client;
use crate::ending::Settle;
use crate::error::ClientError;
use crate::lease::Lease;
use crate::session::Session;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use weir_proto::v1::{SettleRequest, SettleResponse, SettleResult, Settlement, settle_result};

/// Most settlements in one call.
const SETTLEMENTS_MAX: usize = 1000;

/// What became of a settle.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Settled {
    /// It was taken, now or before.
    Taken,
    /// The lease was over.
    LeaseLost,
    /// It was refused for good; the lease goes on.
    Refused(ClientError),
    /// The session was closed before an answer came.
    Unanswered,
}

/// The way to the task that settles; it ends when the last of these is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Settler {
    orders: mpsc::Sender<Order>,
}

#[derive(Debug)]
struct Order {
    lease: Arc<Lease>,
    settle: Settle,
    answer: oneshot::Sender<Settled>,
}

impl Order {
    fn settlement(&self) -> Settlement {
        Settlement {
            epoch: self.lease.epoch(),
            offset: self.lease.offset,
            outcome: self.settle.outcome.into(),
            delay_ms: self.settle.delay_ms,
            reason: self.settle.reason.clone(),
            not_executed: self.settle.not_executed,
        }
    }

    /// Answers a job, which may be gone by now.
    fn answer(self, settled: Settled) {
        let _ = self.answer.send(settled);
    }
}

impl Settler {
    pub(crate) fn start(session: Arc<Session>, client: Client) -> Self {
        let (orders, waiting) = mpsc::channel(SETTLEMENTS_MAX);
        tokio::spawn(Settling { session, client }.run(waiting));
        Self { orders }
    }

    /// Settles one lease, and waits for what became of that.
    pub(crate) async fn settle(&self, lease: &Arc<Lease>, settle: Settle) -> Settled {
        let (answer, settled) = oneshot::channel();
        let order = Order { lease: Arc::clone(lease), settle, answer };
        if self.orders.send(order).await.is_err() {
            return Settled::Unanswered;
        }
        settled.await.unwrap_or(Settled::Unanswered)
    }
}

struct Settling {
    session: Arc<Session>,
    client: Client,
}

impl Settling {
    async fn run(self, mut waiting: mpsc::Receiver<Order>) {
        let mut orders = Vec::new();
        while waiting.recv_many(&mut orders, SETTLEMENTS_MAX).await > 0 {
            self.settle(std::mem::take(&mut orders)).await;
        }
    }

    /// Settles until each order is answered.
    async fn settle(&self, orders: Vec<Order>) {
        let mut backoff = Backoff::new(self.client.settings().backoff);
        let mut batches = vec![orders];
        while let Some(mut batch) = batches.pop() {
            match self.call(&batch).await {
                Ok(response) => {
                    let again = sort(batch, response);
                    if !again.orders.is_empty() {
                        batches.push(again.orders);
                        self.pause(backoff.next(again.after)).await;
                    }
                }
                Err(_) if self.session.end.closed.is_cancelled() => answer_all(batch, &Settled::Unanswered),
                // Nobody said whose fault it is: halves find out.
                Err(_) if batch.len() > 1 => {
                    batches.push(batch.split_off(batch.len() / 2));
                    batches.push(batch);
                }
                Err(error) => answer_all(batch, &Settled::Refused(error)),
            }
        }
    }

    async fn call(&self, orders: &[Order]) -> Result<SettleResponse, ClientError> {
        let patience = self.client.patience(None, self.session.end.closed.clone());
        let response = patience
            .call(|| {
                let request = SettleRequest {
                    session: Some(self.session.wire(None)),
                    settlements: orders.iter().map(Order::settlement).collect(),
                };
                let mut service = self.client.consume_service();
                async move { service.settle(request).await }
            })
            .await?;
        if response.results.len() == orders.len() {
            Ok(response)
        } else {
            let text = format!("{} results for {} settlements", response.results.len(), orders.len());
            Err(ClientError::nonsense(text))
        }
    }

    async fn pause(&self, wait: Duration) {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.session.end.closed.cancelled() => {}
        }
    }
}

/// What has to be settled again, and when.
#[derive(Debug, Default)]
struct Again {
    orders: Vec<Order>,
    after: Option<Duration>,
}

/// Answers what is answered, and gives back the rest.
fn sort(orders: Vec<Order>, response: SettleResponse) -> Again {
    let mut again = Again::default();
    for (order, result) in orders.into_iter().zip(response.results) {
        match judge(&order, result) {
            Ok(settled) => order.answer(settled),
            Err(after) => {
                again.orders.push(order);
                again.after = again.after.max(after);
            }
        }
    }
    again
}

/// What became of one order; an error says that it has to be repeated, and after what time.
fn judge(order: &Order, result: SettleResult) -> Result<Settled, Option<Duration>> {
    match result.result {
        Some(settle_result::Result::Ok(_)) => Ok(Settled::Taken),
        Some(settle_result::Result::AlreadySettled(before)) => {
            if before.outcome() != order.settle.outcome {
                tracing::warn!(epoch = result.epoch, before = ?before.outcome(), "settled before, with another outcome");
            }
            Ok(Settled::Taken)
        }
        // The lease went on under another epoch while the call was on its way.
        Some(settle_result::Result::LeaseLost(_)) if order.lease.epoch() != result.epoch => Err(None),
        Some(settle_result::Result::LeaseLost(_)) => Ok(Settled::LeaseLost),
        Some(settle_result::Result::Refused(refusal)) => {
            let error = ClientError::from(refusal);
            if error.retryable { Err(error.retry_after) } else { Ok(Settled::Refused(error)) }
        }
        None => Ok(Settled::Refused(ClientError::nonsense("a result says nothing"))),
    }
}

fn answer_all(orders: Vec<Order>, settled: &Settled) {
    for order in orders {
        order.answer(settled.clone());
    }
}
