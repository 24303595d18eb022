//! The consuming side of a measurement: members of one group that settle whatever they get.

mod fetch;
mod progress;
mod stream;

use crate::load::{Driven, RUN_LIMIT, Seen, connect};
use crate::stopwatch::Stopwatch;
use crate::workload::{POLICY, TENANT};
use anyhow::{Context as _, bail, ensure};
use clap::ValueEnum;
use progress::Progress;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tonic::transport::Channel;
use weir_proto::v1::group_service_client::GroupServiceClient;
use weir_proto::v1::{
    CreateGroupRequest, GroupRef, GroupSettings, Session, SettleOutcome, SettleResult, Settlement, settle_result,
};

/// Name of the group.
const GROUP: &str = "settlers";
/// Largest answer a member takes: deliveries of a request's size, and what is told beside them.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// How members take messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// `Consume`: a stream a member, credit given back as messages come
    Stream,
    /// `Fetch` and `Settle`: calls, one after the other
    Fetch,
}

/// Members of a group, each over a connection of its own.
pub(crate) struct Members {
    channels: Vec<Channel>,
    way: Way,
    window: u32,
}

impl Members {
    /// Opens the connections, and makes the group over all channels of the tenant, from their start.
    ///
    /// # Errors
    /// If the server cannot be reached or refuses the group.
    pub(crate) async fn open(address: &str, count: usize, way: Way, window: u32) -> anyhow::Result<Self> {
        let mut channels = Vec::with_capacity(count);
        for _ in 0..count {
            channels.push(connect(address).await?);
        }
        let settings = GroupSettings { selector: format!("{TENANT}:*"), ..GroupSettings::default() };
        let request = CreateGroupRequest { group: Some(group()), settings: Some(settings) };
        let channel = channels.first().context("no members")?.clone();
        GroupServiceClient::new(channel).create_group(request).await.context("making the group")?;
        Ok(Self { channels, way, window })
    }

    /// Settles so many messages, and waits for the answers.
    ///
    /// # Errors
    /// If a connection broke, a settle was answered with anything but OK, or it took longer than any run may.
    pub(crate) async fn settle(&self, messages: u64) -> anyhow::Result<Driven> {
        let start = Arc::new(Barrier::new(self.channels.len() + 1));
        let progress = Arc::new(Progress::until(messages));
        let mut running = JoinSet::new();
        for (number, channel) in self.channels.iter().cloned().enumerate() {
            let member = Member {
                channel,
                session: session(number),
                window: self.window,
                start: Arc::clone(&start),
                progress: Arc::clone(&progress),
            };
            match self.way {
                Way::Stream => running.spawn(stream::settle(member)),
                Way::Fetch => running.spawn(fetch::settle(member)),
            };
        }
        start.wait().await;
        let clock = Stopwatch::start();
        let mut driven = Driven { elapsed: Duration::ZERO, confirmed: 0, waits_us: Vec::new() };
        let all = async {
            while let Some(seen) = running.join_next().await {
                driven.take(seen.context("a member's task")??);
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(RUN_LIMIT, all)
            .await
            .with_context(|| format!("{} of {messages} settled within {RUN_LIMIT:?}", progress.settled()))??;
        driven.elapsed = clock.elapsed();
        driven.waits_us.sort_unstable();
        ensure!(driven.confirmed == messages, "{} of {messages} settled", driven.confirmed);
        Ok(driven)
    }
}

/// What a member is given.
struct Member {
    channel: Channel,
    session: Session,
    /// Messages it may hold.
    window: u32,
    start: Arc<Barrier>,
    progress: Arc<Progress>,
}

impl Member {
    /// Counts the answers to a settle that was sent then.
    fn settled(&self, seen: &mut Seen, results: &[SettleResult], sent: Stopwatch) -> anyhow::Result<()> {
        for result in results {
            if !matches!(result.result, Some(settle_result::Result::Ok(_))) {
                bail!("not settled: {result:?}");
            }
        }
        seen.answered(results.len(), sent);
        self.progress.add(results.len() as u64);
        Ok(())
    }
}

fn group() -> GroupRef {
    GroupRef { scope: TENANT.to_owned(), policy: POLICY.to_owned(), name: GROUP.to_owned() }
}

fn session(number: usize) -> Session {
    Session {
        session_id: rand::random::<[u8; 16]>().to_vec().into(),
        group: Some(group()),
        member: format!("member-{number}"),
        ..Session::default()
    }
}

fn done(epoch: u64, offset: u64) -> Settlement {
    Settlement { epoch, offset, outcome: SettleOutcome::Done.into(), ..Settlement::default() }
}
