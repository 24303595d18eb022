//! A member over unary calls.

use super::{ANSWER_BYTES_MAX, Member, done};
use crate::load::Seen;
use crate::stopwatch::Stopwatch;
use weir_proto::server::consume_service_client::ConsumeServiceClient;
use weir_proto::v1::{FetchRequest, HeartbeatRequest, SettleRequest};

/// Longest wait of a fetch, in milliseconds.
const WAIT_MS: u64 = 1_000;

/// Fetches and settles, one after the other, until the run is over.
pub(super) async fn settle(member: Member) -> anyhow::Result<Seen> {
    let mut client = ConsumeServiceClient::new(member.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX);
    let session = Some(member.session.clone());
    // Joins.
    let joined = client.heartbeat(HeartbeatRequest { session: session.clone(), held: None }).await;
    // Whatever came of it: the others wait here.
    member.start.wait().await;
    joined?;
    let mut seen = Seen::default();
    let mut over = std::pin::pin!(member.progress.over());
    loop {
        let request = FetchRequest {
            session: session.clone(),
            max_messages: member.window,
            wait_ms: WAIT_MS,
            ..FetchRequest::default()
        };
        let fetched = tokio::select! {
            fetched = client.fetch(request) => fetched?.into_inner(),
            () = &mut over => return Ok(seen),
        };
        if fetched.deliveries.is_empty() {
            continue;
        }
        let settlements = fetched.deliveries.iter().map(|one| done(one.epoch, one.offset)).collect();
        let sent = Stopwatch::start();
        let answer = client.settle(SettleRequest { session: session.clone(), settlements }).await?.into_inner();
        member.settled(&mut seen, &answer.results, sent)?;
    }
}
