//! How the server reads requests: as tonic would, but bytes that are no request are the caller's fault.
//!
//! tonic answers them with INTERNAL, which tells the caller that the server is broken and that another try may help.

use crate::ERROR_DOMAIN;
use prost::Message;
use std::collections::HashMap;
use std::marker::PhantomData;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};
use tonic::{Code, Status};
use tonic_prost::ProstEncoder;
use tonic_types::{ErrorDetails, StatusExt as _};

/// Protobuf; what cannot be decoded is INVALID_ARGUMENT, with the [`ErrorReason`](crate::v1::ErrorReason) of that name.
#[derive(Clone, Debug)]
pub struct RequestCodec<T, U> {
    kinds: PhantomData<(T, U)>,
}

/// The reading half of [`RequestCodec`].
#[derive(Clone, Debug)]
pub struct RequestDecoder<U> {
    kind: PhantomData<U>,
}

impl<T, U> Default for RequestCodec<T, U> {
    fn default() -> Self {
        Self { kinds: PhantomData }
    }
}

impl<T, U> Codec for RequestCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = RequestDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::new(BufferSettings::default())
    }

    fn decoder(&mut self) -> Self::Decoder {
        RequestDecoder { kind: PhantomData }
    }
}

impl<U: Message + Default> Decoder for RequestDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        U::decode(bytes).map(Some).map_err(|error| undecodable(&error))
    }
}

fn undecodable(error: &prost::DecodeError) -> Status {
    let facts = [("retryable", "false"), ("may_have_applied", "false")];
    let facts: HashMap<_, _> = facts.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let mut details = ErrorDetails::new();
    details.set_error_info(crate::v1::ErrorReason::InvalidArgument.name(), ERROR_DOMAIN, facts);
    Status::with_error_details(Code::InvalidArgument, format!("the request cannot be decoded: {error}"), details)
}
