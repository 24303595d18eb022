//! Calls of one stream that are on their way: begun in order, answered in order.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A call on its way.
pub(super) type Call<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A bounded queue of calls. Each is polled once when it is pushed, which hands it to the broker's queue, so the broker
/// sees the calls of a stream in the order of the stream; after that only the one whose answer is next is looked at.
pub(super) struct InFlight<T> {
    calls: VecDeque<Slot<T>>,
    bytes: usize,
    calls_max: usize,
    bytes_max: usize,
}

struct Slot<T> {
    stage: Stage<T>,
    bytes: usize,
}

enum Stage<T> {
    Running(Call<T>),
    Answered(T),
}

impl<T: Unpin> InFlight<T> {
    /// At most so many calls, with so many bytes (one call more is let in below both).
    pub(super) const fn new(calls_max: usize, bytes_max: usize) -> Self {
        Self { calls: VecDeque::new(), bytes: 0, calls_max, bytes_max }
    }

    /// Whether another call may be pushed.
    pub(super) fn has_room(&self) -> bool {
        self.calls.len() < self.calls_max && self.bytes < self.bytes_max
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Begins a call that keeps `bytes` in memory.
    pub(super) fn push(&mut self, bytes: usize, mut call: Call<T>, cx: &mut Context<'_>) {
        let stage = match call.as_mut().poll(cx) {
            Poll::Ready(answer) => Stage::Answered(answer),
            Poll::Pending => Stage::Running(call),
        };
        self.bytes += bytes;
        self.calls.push_back(Slot { stage, bytes });
    }

    /// The next answer; `None` if nothing is on its way.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(slot) = self.calls.front_mut() else { return Poll::Ready(None) };
        if let Stage::Running(call) = &mut slot.stage {
            match call.as_mut().poll(cx) {
                Poll::Ready(answer) => slot.stage = Stage::Answered(answer),
                Poll::Pending => return Poll::Pending,
            }
        }
        match self.calls.pop_front() {
            Some(Slot { stage: Stage::Answered(answer), bytes }) => {
                self.bytes -= bytes;
                Poll::Ready(Some(answer))
            }
            Some(_) | None => Poll::Ready(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::oneshot;

    async fn push<T: Unpin>(calls: &mut InFlight<T>, bytes: usize, call: Call<T>) {
        let mut call = Some(call);
        poll_fn(|cx| {
            if let Some(call) = call.take() {
                calls.push(bytes, call, cx);
            }
            Poll::Ready(())
        })
        .await;
    }

    #[tokio::test]
    async fn calls_begin_at_once_and_are_answered_in_order() {
        let begun = Arc::new(AtomicUsize::new(0));
        let mut calls = InFlight::new(8, 100);
        let mut open = Vec::new();
        for _ in 0..3 {
            let (answer, reply) = oneshot::channel::<u32>();
            open.push(answer);
            let begun = Arc::clone(&begun);
            let call = Box::pin(async move {
                begun.fetch_add(1, Ordering::Relaxed);
                reply.await.unwrap()
            });
            push(&mut calls, 10, call).await;
        }
        assert_eq!(begun.load(Ordering::Relaxed), 3);
        for (n, answer) in open.into_iter().enumerate().rev() {
            answer.send(u32::try_from(n).unwrap()).unwrap();
        }
        for n in 0..3 {
            assert_eq!(poll_fn(|cx| calls.poll_next(cx)).await, Some(n));
        }
        assert_eq!(poll_fn(|cx| calls.poll_next(cx)).await, None);
    }

    #[tokio::test]
    async fn calls_and_bytes_are_bounded_and_given_back() {
        let mut calls = InFlight::new(2, 100);
        push(&mut calls, 100, Box::pin(async { 1 })).await;
        assert!(!calls.has_room());
        assert_eq!(poll_fn(|cx| calls.poll_next(cx)).await, Some(1));
        for n in 0..2 {
            assert!(calls.has_room());
            push(&mut calls, 1, Box::pin(async move { n })).await;
        }
        assert!(!calls.has_room());
    }
}
