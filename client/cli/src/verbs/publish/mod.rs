//! `weirctl pub`: lines in, messages out.
//!
//! A thread reads and checks lines ([`reader`]); they wait by channel ([`queue`]) and go out in batches, several channels
//! at once, but one batch a channel, so that nothing of a task overtakes anything ([`send`]). Batches grow by themselves:
//! what came while one was under way is the next.

mod progress;
mod queue;
mod reader;
mod send;
mod tally;
mod verdict;

use crate::connection::Connection;
use crate::exit::Failure;
use crate::names::ChannelKey;
use crate::ndjson::Rules;
use crate::output::Output;
use crate::refused::Refused;
use progress::Progress;
use queue::Queues;
use reader::Item;
use send::{End, Sender, Sent};
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use tally::Tally;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;

/// Most batches on their way at once.
const BATCHES_IN_FLIGHT_MAX: usize = 8;

/// What `pub` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The channel policy to publish under
    #[arg(long, value_name = "POLICY")]
    policy: String,
    /// Publish every line to this channel, whatever its own `channel` and `tenant` say
    #[arg(long, value_name = "TENANT:AGENT")]
    channel: Option<ChannelKey>,
    /// Where the lines come from; `-` is stdin
    #[arg(long, value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Give each message a new message_id, so that only executions tell repeats apart
    #[arg(long)]
    fresh_ids: bool,
    /// Write a JSON line for each duplicate, naming the first one's place
    #[arg(long, short)]
    verbose: bool,
    /// Tell the progress on stderr also where that is no terminal
    #[arg(long)]
    progress: bool,
}

/// Publishes all lines, and ends with one object of counts.
///
/// # Errors
/// If a line was rejected; they were told one by one.
pub(crate) async fn run(args: Args, connection: &Connection, output: &mut Output) -> Result<(), Failure> {
    let rules = Rules { channel: args.channel, fresh_ids: args.fresh_ids };
    let lines = reader::start(&args.file, rules)?;
    let run = Run {
        sender: Sender::new(connection.clone(), args.policy),
        queues: Queues::default(),
        in_flight: JoinSet::new(),
        gave_up: HashMap::new(),
        tally: Tally::new(args.verbose),
        progress: Progress::new(args.progress),
        reading: true,
    };
    run.finish(lines, output).await
}

/// A run under way.
struct Run {
    sender: Sender,
    queues: Queues,
    in_flight: JoinSet<Sent>,
    /// Channels that take no more, and why: nothing later may pass what was refused.
    gave_up: HashMap<ChannelKey, Refused>,
    tally: Tally,
    progress: Progress,
    reading: bool,
}

impl Run {
    async fn finish(mut self, mut lines: Receiver<io::Result<Vec<Item>>>, output: &mut Output) -> Result<(), Failure> {
        loop {
            self.send_what_is_ready();
            if !self.reading && self.in_flight.is_empty() {
                break;
            }
            tokio::select! {
                chunk = lines.recv(), if self.reading && self.queues.has_room() => self.take(chunk),
                Some(done) = self.in_flight.join_next() => {
                    let sent = done.map_err(|error| Failure::error(format!("a batch was lost: {error}")))?;
                    self.settle(sent, output)?;
                }
                () = self.progress.is_due() => self.progress.show(&self.tally),
            }
        }
        self.progress.end();
        output.json_line(&self.tally.counts())?;
        self.tally.result()
    }

    fn send_what_is_ready(&mut self) {
        while self.in_flight.len() < BATCHES_IN_FLIGHT_MAX {
            let Some(batch) = self.queues.next_batch() else {
                return;
            };
            let sender = self.sender.clone();
            self.in_flight.spawn(async move { sender.send(batch).await });
        }
    }

    fn take(&mut self, chunk: Option<io::Result<Vec<Item>>>) {
        let items = match chunk {
            None => {
                self.reading = false;
                return;
            }
            Some(Err(error)) => {
                self.reading = false;
                self.tally.input_failed();
                self.progress.say(&format!("the input cannot be read on: {error}"));
                return;
            }
            Some(Ok(items)) => items,
        };
        for item in items {
            match item {
                Item::Bad { number, fault } => {
                    self.progress.say(&self.tally.bad_line(number, &fault));
                }
                Item::Good(line) => match self.gave_up.get(&line.channel) {
                    Some(refused) => {
                        let words = self.tally.not_sent(&line.channel, &[line.number], refused);
                        self.progress.say(&words);
                    }
                    None => self.queues.push(line),
                },
            }
        }
    }

    fn settle(&mut self, sent: Sent, output: &mut Output) -> Result<(), Failure> {
        for outcome in sent.outcomes {
            let told = self.tally.take(&sent.channel, outcome);
            if let Some(words) = told.words {
                self.progress.say(&words);
            }
            if let Some(line) = told.data {
                output.json_line(&line)?;
            }
        }
        match sent.end {
            None => self.queues.finished(&sent.channel),
            Some(End::Channel(refused)) => {
                let unsent = self.queues.drop_channel(&sent.channel);
                self.tell_unsent(&sent.channel, &unsent, &refused);
                self.gave_up.insert(sent.channel, refused);
            }
            Some(End::Run(refused)) => self.stop(&sent.channel, &refused),
        }
        Ok(())
    }

    /// Nothing more can be published: reads no further, and sends nothing of what waits.
    fn stop(&mut self, channel: &ChannelKey, refused: &Refused) {
        self.queues.drop_channel(channel);
        for (channel, unsent) in self.queues.drain() {
            self.tell_unsent(&channel, &unsent, refused);
        }
        if std::mem::take(&mut self.reading) {
            self.progress.say("the rest of the input was not read; run it again: repeats are found");
        }
    }

    fn tell_unsent(&mut self, channel: &ChannelKey, lines: &[u64], refused: &Refused) {
        if !lines.is_empty() {
            self.progress.say(&self.tally.not_sent(channel, lines, refused));
        }
    }
}
