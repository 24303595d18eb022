//! The newest messages, in memory.

use crate::journal::Placed;
use crate::model::{ChannelNo, Offset};
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};

/// Bytes of messages that share one allocation, and go together.
const CHUNK_BYTES: usize = 256 * 1024;
/// Longer messages get an allocation of their own.
const SHARED_BYTES_MAX: usize = CHUNK_BYTES / 8;
/// Messages in a chunk, however short they are.
const CHUNK_MESSAGES_MAX: usize = 8192;
/// What a message takes beside its bytes.
const MESSAGE_OVERHEAD_BYTES: usize = 40;
/// What a run of messages of one channel takes beside them.
const RUN_OVERHEAD_BYTES: usize = 128;
/// Messages taken in before others get a chance at the lock.
const LOCKED_MESSAGES_MAX: usize = 256;

/// Bytes by channel and offset, the latest first to stay, within a bound of bytes.
///
/// Messages are copied into chunks, because a message as it came pins the whole request that it came in. What is
/// counted is what is pinned: a chunk as a whole, from its first message on until all of it goes. Bytes handed out keep
/// their chunk alive for as long as they live, beyond this cache's count.
#[derive(Debug)]
pub(crate) struct TailCache {
    bytes_max: usize,
    /// Held for copying or finding some messages.
    tail: Mutex<Tail>,
}

#[derive(Debug, Default)]
struct Tail {
    channels: HashMap<ChannelNo, Channel>,
    chunks: Chunks,
}

/// A run of a channel's offsets up to its newest.
#[derive(Debug)]
struct Channel {
    first: Offset,
    messages: VecDeque<Bytes>,
}

/// The memory, oldest first; the last chunk is being filled.
#[derive(Debug, Default)]
struct Chunks {
    queue: VecDeque<Chunk>,
    /// The memory of a chunk that went, for the next one: memory that is new to the process costs ten times the copying.
    spare: Option<BytesMut>,
    pinned_bytes: usize,
}

/// What goes together.
#[derive(Debug, Default)]
struct Chunk {
    /// For each run of messages, in the order in which they came, the channel and how many.
    runs: Vec<(ChannelNo, usize)>,
    messages: usize,
    /// What is left of its memory.
    room: BytesMut,
    pinned_bytes: usize,
}

impl TailCache {
    /// An empty cache that pins at most `bytes_max`, and one message however long.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, tail: Mutex::default() }
    }

    /// Takes in messages as they were placed.
    pub(crate) fn placed(&self, records: &[Placed]) {
        for records in records.chunks(LOCKED_MESSAGES_MAX) {
            let mut tail = self.tail.lock();
            for run in records.chunk_by(|a, b| a.channel == b.channel) {
                tail.push(run);
            }
            tail.shrink_to(self.bytes_max);
        }
    }

    /// The bytes of a message, if they are here.
    pub(crate) fn get(&self, channel: ChannelNo, offset: Offset) -> Option<Bytes> {
        self.tail.lock().get(channel, offset)
    }

    /// The bytes of those messages that are here, in the order of `keys`.
    pub(crate) fn get_many(&self, keys: &[(ChannelNo, Offset)]) -> Vec<Option<Bytes>> {
        let mut found = Vec::with_capacity(keys.len());
        for keys in keys.chunks(LOCKED_MESSAGES_MAX) {
            let tail = self.tail.lock();
            found.extend(keys.iter().map(|&(channel, offset)| tail.get(channel, offset)));
        }
        found
    }

    /// Bytes that the cache pins.
    #[cfg(test)]
    pub(crate) fn pinned_bytes(&self) -> usize {
        self.tail.lock().chunks.pinned_bytes
    }
}

impl Tail {
    fn get(&self, channel: ChannelNo, offset: Offset) -> Option<Bytes> {
        let channel = self.channels.get(&channel)?;
        let at = usize::try_from(offset.get().checked_sub(channel.first.get())?).ok()?;
        channel.messages.get(at).cloned()
    }

    /// Takes in messages of one channel.
    fn push(&mut self, run: &[Placed]) {
        let Some(Placed { channel: number, offset, .. }) = run.first() else { return };
        let channel = self.channels.entry(*number);
        let channel = channel.or_insert_with(|| Channel { first: *offset, messages: VecDeque::new() });
        for record in run {
            // One that does not follow the newest was moved within the journal: nobody waits for it here.
            if channel.next() == Some(record.offset) {
                channel.messages.push_back(self.chunks.copy(*number, &record.bytes));
            }
        }
    }

    /// Lets the oldest chunks go, but never the last.
    fn shrink_to(&mut self, bytes_max: usize) {
        while self.chunks.pinned_bytes > bytes_max
            && let Some(chunk) = self.chunks.pop_oldest()
        {
            for (channel, count) in &chunk.runs {
                self.drop_oldest(*channel, *count);
            }
            self.chunks.recycle(chunk);
        }
    }

    fn drop_oldest(&mut self, number: ChannelNo, count: usize) {
        let Some(channel) = self.channels.get_mut(&number) else { return };
        channel.messages.drain(..count.min(channel.messages.len()));
        channel.first.0 += count as u64;
        if channel.messages.is_empty() {
            self.channels.remove(&number);
        } else if channel.messages.capacity() > 4 * channel.messages.len() {
            channel.messages.shrink_to_fit();
        }
    }
}

impl Channel {
    fn next(&self) -> Option<Offset> {
        self.first.get().checked_add(self.messages.len() as u64).map(Offset)
    }
}

impl Chunks {
    /// Copies a message into the last chunk, or into one of its own that then is the last.
    fn copy(&mut self, channel: ChannelNo, bytes: &Bytes) -> Bytes {
        if bytes.len() > SHARED_BYTES_MAX {
            self.begin(BytesMut::with_capacity(bytes.len()));
        } else if self.queue.back().is_none_or(|chunk| chunk.is_full_for(bytes.len())) {
            let room = self.spare.take().unwrap_or_else(|| BytesMut::with_capacity(CHUNK_BYTES));
            self.begin(room);
        }
        let Some(chunk) = self.queue.back_mut() else {
            return Bytes::copy_from_slice(bytes);
        };
        self.pinned_bytes += chunk.note(channel);
        chunk.room.extend_from_slice(bytes);
        chunk.room.split().freeze()
    }

    fn begin(&mut self, room: BytesMut) {
        let pinned_bytes = room.capacity();
        self.queue.push_back(Chunk { room, pinned_bytes, ..Chunk::default() });
        self.pinned_bytes += pinned_bytes;
    }

    /// Keeps the memory of a chunk whose messages have gone, unless somebody still holds one of them.
    fn recycle(&mut self, mut chunk: Chunk) {
        if self.spare.is_none() && chunk.room.try_reclaim(CHUNK_BYTES) && chunk.room.capacity() < 2 * CHUNK_BYTES {
            self.spare = Some(chunk.room);
        }
    }

    fn pop_oldest(&mut self) -> Option<Chunk> {
        if self.queue.len() <= 1 {
            return None;
        }
        let chunk = self.queue.pop_front()?;
        self.pinned_bytes -= chunk.pinned_bytes;
        Some(chunk)
    }
}

impl Chunk {
    fn is_full_for(&self, len: usize) -> bool {
        self.messages >= CHUNK_MESSAGES_MAX || self.room.capacity() < len
    }

    /// Notes one more message and answers what it pins beside its bytes.
    fn note(&mut self, channel: ChannelNo) -> usize {
        self.messages += 1;
        let mut pinned = MESSAGE_OVERHEAD_BYTES;
        match self.runs.last_mut() {
            Some((of, count)) if *of == channel => *count += 1,
            _ => {
                self.runs.push((channel, 1));
                pinned += RUN_OVERHEAD_BYTES;
            }
        }
        self.pinned_bytes += pinned;
        pinned
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]
    use super::super::testing::placed;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Bytes that name their message.
    fn bytes(channel: u64, offset: u64, len: usize) -> Bytes {
        let mut bytes = format!("{channel}/{offset} ").into_bytes();
        bytes.resize(len.max(bytes.len()), b'.');
        Bytes::from(bytes)
    }

    proptest! {
        #[test]
        fn what_is_here_is_right_and_the_newest_stay(
            runs in vec((0..5_u64, 1..200_usize, 0..3000_usize), 1..60), max in 0..3_000_000_usize,
        ) {
            let cache = TailCache::new(max);
            let mut heads = [100_u64, 0, 7, u64::MAX / 2, 3];
            for (channel, count, len) in runs {
                let head = &mut heads[channel as usize];
                let records: Vec<_> = (0..count as u64)
                    .map(|n| placed(1, channel, *head + n, 0, bytes(channel, *head + n, len)))
                    .collect();
                *head += count as u64;
                cache.placed(&records);
                let newest = *head - 1;
                prop_assert_eq!(cache.get(ChannelNo(channel), Offset(newest)), Some(bytes(channel, newest, len)));
                prop_assert_eq!(cache.get(ChannelNo(channel), Offset(*head)), None);
                let longest = CHUNK_BYTES + CHUNK_MESSAGES_MAX * (MESSAGE_OVERHEAD_BYTES + RUN_OVERHEAD_BYTES);
                prop_assert!(cache.pinned_bytes() <= max + longest);
            }
            let tail = cache.tail.lock();
            let counted: usize = tail.chunks.queue.iter().map(|chunk| chunk.messages).sum();
            prop_assert_eq!(counted, tail.channels.values().map(|channel| channel.messages.len()).sum::<usize>());
            prop_assert_eq!(tail.chunks.pinned_bytes, tail.chunks.queue.iter().map(|c| c.pinned_bytes).sum::<usize>());
            prop_assert!(tail.chunks.pinned_bytes <= max || tail.chunks.queue.len() == 1);
            for (channel, kept) in &tail.channels {
                prop_assert_eq!(kept.next(), Some(Offset(heads[channel.get() as usize])), "the newest are here");
                for (at, message) in (kept.first.get()..).zip(&kept.messages) {
                    let name = format!("{channel}/{at} ");
                    prop_assert!(message.starts_with(name.as_bytes()));
                }
            }
        }
    }

    #[test]
    fn the_oldest_go_first() {
        let cache = TailCache::new(4 * CHUNK_BYTES);
        for offset in 0..10_000 {
            cache.placed(&[placed(1, 1, offset, 0, bytes(1, offset, 1000))]);
        }
        let here: Vec<bool> = (0..10_000).map(|offset| cache.get(ChannelNo(1), Offset(offset)).is_some()).collect();
        let gone = here.iter().take_while(|here| !**here).count();
        assert!(here[gone..].iter().all(|here| *here));
        assert!((500..=1100).contains(&(10_000 - gone)), "{} stay", 10_000 - gone);
    }

    #[test]
    fn a_message_longer_than_the_bound_is_here_until_the_next() {
        let cache = TailCache::new(1000);
        let get = |offset| cache.get(ChannelNo(1), Offset(offset)).map(|bytes| bytes.len());
        cache.placed(&[placed(1, 1, 0, 0, bytes(1, 0, 2_000_000))]);
        assert_eq!((get(0), get(1)), (Some(2_000_000), None));
        cache.placed(&[placed(1, 1, 1, 0, bytes(1, 1, 10))]);
        assert_eq!((get(0), get(1)), (None, Some(10)));
    }

    #[test]
    fn a_message_that_was_moved_is_not_taken_for_a_new_one() {
        let cache = TailCache::new(1 << 20);
        cache.placed(&[placed(1, 1, 50, 0, bytes(1, 50, 10)), placed(1, 1, 3, 0, bytes(1, 3, 10))]);
        cache.placed(&[placed(1, 1, 51, 0, bytes(1, 51, 10))]);
        let here = cache.get_many(&[3, 50, 51].map(|offset| (ChannelNo(1), Offset(offset))));
        assert_eq!(here.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, true]);
    }
}
