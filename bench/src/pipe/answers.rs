//! Answers of the size weir's have, encoded once.

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use prost::Message as _;
use weir_proto::v1::publish_result::Outcome;
use weir_proto::v1::publish_stream_response::Outcome as Streamed;
use weir_proto::v1::{PublishLevel, PublishResponse, PublishResult, PublishStreamResponse, Stored};

/// Tag of `sequence` in a request and in an answer of a stream: field 1, a varint.
const SEQUENCE_TAG: u8 = 0x08;
/// Longest varint.
const VARINT_BYTES_MAX: usize = 10;
/// An offset of the usual length.
const OFFSET: u64 = 1_000;

/// The answers to publishes of one size.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    unary: Bytes,
    /// An answer of a stream, but for its sequence.
    streamed: Bytes,
}

impl Answers {
    /// With so many results each.
    pub(super) fn new(results: usize) -> Self {
        let result =
            |n: u64| PublishResult { outcome: Some(Outcome::Stored(Stored { offset: OFFSET + n, durable: true })) };
        let published = PublishResponse {
            results: (0..results as u64).map(result).collect(),
            level: PublishLevel::Normal.into(),
            ..PublishResponse::default()
        };
        let unary = published.encode_to_vec().into();
        let streamed = PublishStreamResponse { sequence: 0, outcome: Some(Streamed::Published(published)) };
        Self { unary, streamed: streamed.encode_to_vec().into() }
    }

    /// That of a call.
    pub(super) fn unary(&self) -> Bytes {
        self.unary.clone()
    }

    /// That of a request of a stream, with its sequence, which the request begins with.
    pub(super) fn streamed(&self, request: &[u8]) -> anyhow::Result<Bytes> {
        ensure!(request.first() == Some(&SEQUENCE_TAG), "a request that does not begin with its sequence");
        let last = request.iter().skip(1).take(VARINT_BYTES_MAX).position(|byte| byte & 0x80 == 0);
        let sequence = last.and_then(|last| request.get(..last + 2)).context("a sequence without an end")?;
        Ok([sequence, &self.streamed].concat().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_proto::v1::PublishStreamRequest;

    #[test]
    fn an_answer_of_a_stream_echoes_the_sequence_and_has_all_results() {
        let answers = Answers::new(3);
        for sequence in [1, 127, 128, u64::MAX] {
            let request = PublishStreamRequest { sequence, policy: "p".into(), ..Default::default() };
            let answer = answers.streamed(&request.encode_to_vec()).unwrap();
            let answer = PublishStreamResponse::decode(answer).unwrap();
            assert_eq!(answer.sequence, sequence);
            let Some(Streamed::Published(published)) = answer.outcome else { panic!("no answer") };
            assert_eq!(published, PublishResponse::decode(answers.unary()).unwrap());
            assert_eq!(published.results.len(), 3);
        }
    }

    #[test]
    fn a_request_without_a_sequence_is_refused() {
        let answers = Answers::new(1);
        assert!(answers.streamed(b"\x12\x01p").is_err());
        assert!(answers.streamed(&[0x08, 0xff]).is_err());
        assert!(answers.streamed(b"").is_err());
    }
}
