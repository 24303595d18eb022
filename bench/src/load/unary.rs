//! `Publish` calls, a window of them in flight on one connection.

use super::Seen;
use super::answer::{PUBLISH, check};
use crate::codec::RawCodec;
use crate::stopwatch::Stopwatch;
use crate::workload::{Lane, Request};
use anyhow::Context as _;
use std::sync::Arc;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;

/// Calls a lane, each of the callers the next one of its share.
pub(super) async fn drive(channel: Channel, lane: Lane, in_flight: usize, start: Arc<Barrier>) -> anyhow::Result<Seen> {
    let mut shares: Vec<Lane> = vec![Lane::new(); in_flight];
    for (place, request) in lane.into_iter().enumerate() {
        if let Some(share) = shares.get_mut(place % in_flight) {
            share.push(request);
        }
    }
    start.wait().await;
    let mut callers: JoinSet<_> = shares.into_iter().map(|share| call(channel.clone(), share)).collect();
    let mut all = Seen::default();
    while let Some(seen) = callers.join_next().await {
        let seen = seen.context("a caller's task")??;
        all.confirmed += seen.confirmed;
        all.waits_us.extend(seen.waits_us);
    }
    Ok(all)
}

async fn call(channel: Channel, share: Lane) -> anyhow::Result<Seen> {
    let mut client = Grpc::new(channel);
    let mut seen = Seen { confirmed: 0, waits_us: Vec::with_capacity(share.len()) };
    for Request { bytes, messages } in share {
        let sent = Stopwatch::start();
        client.ready().await?;
        let path = PathAndQuery::from_static(PUBLISH);
        let answer = client.unary(tonic::Request::new(bytes), path, RawCodec).await?.into_inner();
        check(answer, messages)?;
        seen.answered(messages, sent);
    }
    Ok(seen)
}
