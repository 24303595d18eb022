//! What waits to be sent, by channel.

use crate::names::ChannelKey;
use crate::verbs::publish::reader::Line;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};

/// Most messages in one batch.
const BATCH_MESSAGES_MAX: usize = 500;
/// Bytes of messages from which a batch takes no more.
const BATCH_BYTES: usize = 4 << 20;
/// Messages from which no more are read.
const WAITING_MESSAGES: usize = 50_000;
/// Bytes of messages from which no more are read.
const WAITING_BYTES: usize = 64 << 20;

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queued {
    /// Its line in the input, from 1.
    pub(super) number: u64,
    /// The message, encoded.
    pub(super) message: Bytes,
}

/// Messages of one channel that go out together.
#[derive(Debug)]
pub(super) struct Batch {
    /// Where they go.
    pub(super) channel: ChannelKey,
    /// The messages, in the order of the input.
    pub(super) lines: Vec<Queued>,
}

/// Messages that wait, in order within their channels. A channel has one batch out at a time.
#[derive(Debug, Default)]
pub(super) struct Queues {
    channels: HashMap<ChannelKey, Channel>,
    /// Channels with something to send and nothing out, longest waiting first.
    ready: VecDeque<ChannelKey>,
    messages: usize,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Channel {
    lines: VecDeque<Queued>,
    is_out: bool,
}

impl Queues {
    /// Whether more may be read.
    pub(super) fn has_room(&self) -> bool {
        self.messages < WAITING_MESSAGES && self.bytes < WAITING_BYTES
    }

    /// Adds a message behind those of its channel.
    pub(super) fn push(&mut self, line: Line) {
        self.messages += 1;
        self.bytes += line.message.len();
        let channel = self.channels.entry(line.channel.clone()).or_default();
        if channel.lines.is_empty() && !channel.is_out {
            self.ready.push_back(line.channel);
        }
        channel.lines.push_back(Queued { number: line.number, message: line.message });
    }

    /// The next batch to send, if there is one.
    pub(super) fn next_batch(&mut self) -> Option<Batch> {
        let key = self.ready.pop_front()?;
        let channel = self.channels.get_mut(&key)?;
        let mut lines = Vec::new();
        let mut bytes = 0;
        while lines.len() < BATCH_MESSAGES_MAX && bytes < BATCH_BYTES {
            let Some(line) = channel.lines.pop_front() else {
                break;
            };
            bytes += line.message.len();
            lines.push(line);
        }
        channel.is_out = true;
        self.messages -= lines.len();
        self.bytes -= bytes;
        Some(Batch { channel: key, lines })
    }

    /// The channel's batch is back: its next one may go.
    pub(super) fn finished(&mut self, key: &ChannelKey) {
        let Some(channel) = self.channels.get_mut(key) else {
            return;
        };
        channel.is_out = false;
        if channel.lines.is_empty() {
            self.channels.remove(key);
        } else {
            self.ready.push_back(key.clone());
        }
    }

    /// Forgets a channel whose batch is back, and returns the lines that waited behind it.
    pub(super) fn drop_channel(&mut self, key: &ChannelKey) -> Vec<u64> {
        let Some(channel) = self.channels.remove(key) else {
            return Vec::new();
        };
        self.messages -= channel.lines.len();
        self.bytes -= channel.lines.iter().map(|line| line.message.len()).sum::<usize>();
        channel.lines.into_iter().map(|line| line.number).collect()
    }

    /// Forgets everything that waits, and returns the lines by channel.
    pub(super) fn drain(&mut self) -> Vec<(ChannelKey, Vec<u64>)> {
        let mut keys: Vec<_> = self.channels.keys().cloned().collect();
        keys.sort();
        self.ready.clear();
        keys.into_iter().map(|key| (key.clone(), self.drop_channel(&key))).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn line(number: u64, agent: &str, bytes: usize) -> Line {
        Line { number, channel: ChannelKey::new("t", agent), message: vec![0; bytes].into() }
    }

    fn numbers(batch: &Batch) -> Vec<u64> {
        batch.lines.iter().map(|line| line.number).collect()
    }

    #[test]
    fn a_channel_keeps_its_order_and_has_one_batch_out() {
        let mut queues = Queues::default();
        queues.push(line(1, "a", 1));
        queues.push(line(2, "b", 1));
        queues.push(line(3, "a", 1));
        let first = queues.next_batch().unwrap();
        assert_eq!(numbers(&first), [1, 3]);
        queues.push(line(4, "a", 1));
        assert_eq!(numbers(&queues.next_batch().unwrap()), [2]);
        assert!(queues.next_batch().is_none());
        queues.finished(&first.channel);
        assert_eq!(numbers(&queues.next_batch().unwrap()), [4]);
    }

    #[test]
    fn a_batch_is_bounded_in_messages_and_bytes() {
        let mut queues = Queues::default();
        (0..501).for_each(|number| queues.push(line(number, "a", 1)));
        assert_eq!(queues.next_batch().unwrap().lines.len(), 500);
        (0..3).for_each(|number| queues.push(line(number, "b", 3 << 20)));
        assert_eq!(queues.next_batch().unwrap().lines.len(), 2);
    }

    #[test]
    fn reading_stops_when_too_much_waits_and_goes_on_when_it_is_sent() {
        let mut queues = Queues::default();
        queues.push(line(1, "a", WAITING_BYTES));
        assert!(!queues.has_room());
        queues.next_batch().unwrap();
        assert!(queues.has_room());
    }

    #[test]
    fn a_dropped_channel_names_what_waited() {
        let mut queues = Queues::default();
        queues.push(line(1, "a", 1));
        let batch = queues.next_batch().unwrap();
        queues.push(line(2, "a", 1));
        queues.push(line(3, "b", 1));
        assert_eq!(queues.drop_channel(&batch.channel), [2]);
        assert_eq!(queues.drain(), [(ChannelKey::new("t", "b"), vec![3])]);
        assert!(queues.next_batch().is_none());
        assert_eq!((queues.messages, queues.bytes), (0, 0));
    }
}
