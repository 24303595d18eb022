//! Reads and checks the input on a thread of its own.

use crate::exit::Failure;
use crate::names::ChannelKey;
use crate::ndjson::{FieldFault, Rules};
use bytes::Bytes;
use prost::Message as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use tokio::sync::mpsc;

/// Longest line, in bytes: the largest payload there is as base64, and room for the rest.
const LINE_BYTES_MAX: usize = 32 << 20;
/// Most lines handed on at once.
const CHUNK_LINES_MAX: usize = 256;
/// Bytes of messages from which a chunk is handed on.
const CHUNK_BYTES: usize = 1 << 20;
/// Chunks that may wait to be taken.
const CHUNKS_WAITING_MAX: usize = 4;
/// Bytes read from the input at once.
const BUFFER_BYTES: usize = 256 << 10;

/// A line that is a message.
#[derive(Debug)]
pub(super) struct Line {
    /// Its number in the input, from 1.
    pub(super) number: u64,
    /// Where it goes.
    pub(super) channel: ChannelKey,
    /// The message, encoded.
    pub(super) message: Bytes,
}

/// What a line turned out to be.
#[derive(Debug)]
pub(super) enum Item {
    /// A message.
    Good(Line),
    /// No message.
    Bad {
        /// Its number in the input, from 1.
        number: u64,
        /// What is wrong with it.
        fault: FieldFault,
    },
}

/// Starts to read `file`, or stdin if it is `-`. The chunks end with the input, or with the error that ended it; reading
/// stops when nobody takes them.
///
/// # Errors
/// If the file cannot be opened.
pub(super) fn start(file: &Path, rules: Rules) -> Result<mpsc::Receiver<io::Result<Vec<Item>>>, Failure> {
    let input: Box<dyn Read + Send> = if file == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let opened = File::open(file).map_err(|error| Failure::error(format!("{}: {error}", file.display())))?;
        Box::new(opened)
    };
    let (chunks, taken) = mpsc::channel(CHUNKS_WAITING_MAX);
    std::thread::Builder::new().name("reader".to_owned()).spawn(move || {
        let mut lines = Lines::new(input, rules);
        while let Some(chunk) = lines.next_chunk().transpose() {
            let last = chunk.is_err();
            if chunks.blocking_send(chunk).is_err() || last {
                return;
            }
        }
    })?;
    Ok(taken)
}

struct Lines<R> {
    input: BufReader<R>,
    rules: Rules,
    number: u64,
    line: Vec<u8>,
}

impl<R: Read> Lines<R> {
    fn new(input: R, rules: Rules) -> Self {
        let input = BufReader::with_capacity(BUFFER_BYTES, input);
        Self { input, rules, number: 0, line: Vec::new() }
    }

    /// The next lines, blank ones left out. Hands on what it has rather than wait for more.
    fn next_chunk(&mut self) -> io::Result<Option<Vec<Item>>> {
        let mut items = Vec::new();
        let mut bytes = 0;
        while items.len() < CHUNK_LINES_MAX && bytes < CHUNK_BYTES {
            if !items.is_empty() && self.input.buffer().is_empty() {
                break;
            }
            let Some(whole) = self.next_line()? else {
                break;
            };
            self.number += 1;
            if whole && self.line.trim_ascii().is_empty() {
                continue;
            }
            let item = self.item(whole);
            if let Item::Good(line) = &item {
                bytes += line.message.len();
            }
            items.push(item);
        }
        Ok(Some(items).filter(|items| !items.is_empty()))
    }

    fn item(&self, whole: bool) -> Item {
        let number = self.number;
        if !whole {
            let fault = FieldFault::of_line(format!("is longer than {LINE_BYTES_MAX} bytes"));
            return Item::Bad { number, fault };
        }
        match self.rules.read(&self.line) {
            Ok((channel, message)) => Item::Good(Line { number, channel, message: message.encode_to_vec().into() }),
            Err(fault) => Item::Bad { number, fault },
        }
    }

    /// Reads a line into `self.line`; `false` if it was too long and passed over, `None` at the end.
    fn next_line(&mut self) -> io::Result<Option<bool>> {
        self.line.clear();
        let most = LINE_BYTES_MAX as u64 + 1;
        let read = (&mut self.input).take(most).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        if self.line.last() == Some(&b'\n') || self.line.len() <= LINE_BYTES_MAX {
            return Ok(Some(true));
        }
        self.line = Vec::new();
        self.input.skip_until(b'\n')?;
        Ok(Some(false))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LINE: &str = r#"{"channel":"a:b","agent_id":"b","task_id":"t","message_id":"m","type":"event"}"#;

    fn numbers(text: &[u8]) -> Vec<(u64, bool)> {
        let mut lines = Lines::new(text, Rules::default());
        let mut found = Vec::new();
        while let Some(chunk) = lines.next_chunk().unwrap() {
            found.extend(chunk.iter().map(|item| match item {
                Item::Good(line) => (line.number, true),
                Item::Bad { number, .. } => (*number, false),
            }));
        }
        found
    }

    #[test]
    fn lines_are_counted_blank_ones_too() {
        let text = format!("{LINE}\n\n  \r\nnonsense\n{LINE}");
        assert_eq!(numbers(text.as_bytes()), [(1, true), (4, false), (5, true)]);
        assert_eq!(numbers(b""), []);
        assert_eq!(numbers(b"\n\n"), []);
    }

    #[test]
    fn a_line_too_long_is_passed_over() {
        let mut text = vec![b' '; LINE_BYTES_MAX + 10];
        text.push(b'\n');
        text.extend_from_slice(LINE.as_bytes());
        assert_eq!(numbers(&text), [(1, false), (2, true)]);
    }

    #[test]
    fn many_lines_come_in_chunks() {
        let text = format!("{LINE}\n").repeat(1_000);
        assert_eq!(numbers(text.as_bytes()).len(), 1_000);
    }
}
