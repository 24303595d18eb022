//! What the answers have to say.

use anyhow::{bail, ensure};
use bytes::Bytes;
use prost::Message as _;
use weir_proto::v1::publish_result::Outcome;
use weir_proto::v1::publish_stream_response::Outcome as Streamed;
use weir_proto::v1::{PublishResponse, PublishStreamResponse};

/// Paths of the two calls.
pub(super) const PUBLISH: &str = "/weir.v1.PublishService/Publish";
pub(super) const PUBLISH_STREAM: &str = "/weir.v1.PublishService/PublishStream";

/// Checks the answer to a call: so many messages, each stored and durable.
pub(super) fn check(answer: Bytes, messages: usize) -> anyhow::Result<()> {
    check_published(&PublishResponse::decode(answer)?, messages)
}

/// Checks an answer of a stream: that of the request with this sequence.
pub(super) fn check_streamed(answer: Bytes, sequence: u64, messages: usize) -> anyhow::Result<()> {
    let answer = PublishStreamResponse::decode(answer)?;
    ensure!(answer.sequence == sequence, "answer {} came where {sequence} was due", answer.sequence);
    match answer.outcome {
        Some(Streamed::Published(published)) => check_published(&published, messages),
        other => bail!("publish {sequence} was not taken: {other:?}"),
    }
}

fn check_published(answer: &PublishResponse, messages: usize) -> anyhow::Result<()> {
    ensure!(answer.results.len() == messages, "{} results for {messages} messages", answer.results.len());
    for result in &answer.results {
        match &result.outcome {
            Some(Outcome::Stored(stored)) if stored.durable => {}
            other => bail!("not stored and durable: {other:?}"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_proto::v1::{PublishResult, Stored};

    fn answer(durable: bool) -> PublishResponse {
        let stored = PublishResult { outcome: Some(Outcome::Stored(Stored { offset: 1, durable })) };
        PublishResponse { results: vec![stored; 2], ..PublishResponse::default() }
    }

    #[test]
    fn only_what_is_stored_and_durable_counts() {
        assert!(check(answer(true).encode_to_vec().into(), 2).is_ok());
        assert!(check(answer(true).encode_to_vec().into(), 3).is_err());
        assert!(check(answer(false).encode_to_vec().into(), 2).is_err());
    }

    #[test]
    fn answers_of_a_stream_come_in_the_order_of_its_requests() {
        let streamed = PublishStreamResponse { sequence: 7, outcome: Some(Streamed::Published(answer(true))) };
        let bytes = Bytes::from(streamed.encode_to_vec());
        assert!(check_streamed(bytes.clone(), 7, 2).is_ok());
        assert!(check_streamed(bytes, 8, 2).is_err());
        let refused = PublishStreamResponse { sequence: 7, outcome: Some(Streamed::Refused(Default::default())) };
        assert!(check_streamed(refused.encode_to_vec().into(), 7, 2).is_err());
    }
}
