//! Bytes that are no request, to every method.

use super::rig::Rig;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;
use tonic_types::StatusExt as _;

/// Sent as field 1: neither a text nor a message.
const JUNK: [u8; 2] = [0xff, 0xff];

/// The path of every method whose request has a field 1, and whether its requests are a stream.
fn methods() -> Vec<(String, bool)> {
    let set = FileDescriptorSet::decode(weir_proto::FILE_DESCRIPTOR_SET).unwrap();
    let with_field_1 = |name: &str| {
        let messages = set.file.iter().filter(|file| file.package() == "weir.v1").flat_map(|file| &file.message_type);
        messages
            .filter(|message| name == format!(".weir.v1.{}", message.name()))
            .any(|message| message.field.iter().any(|field| field.number() == 1))
    };
    let services = set.file.iter().flat_map(|file| &file.service);
    services
        .flat_map(|service| service.method.iter().map(move |method| (service.name(), method)))
        .filter(|(_, method)| with_field_1(method.input_type()))
        .map(|(service, method)| (format!("/weir.v1.{service}/{}", method.name()), method.client_streaming()))
        .collect()
}

async fn refusal(rig: &Rig, path: &str, streaming: bool) -> Status {
    let mut client = tonic::client::Grpc::new(rig.wire.clone());
    client.ready().await.unwrap();
    // A request of one field of bytes, and an answer of none.
    let codec = ProstCodec::<Vec<u8>, ()>::default();
    let path = path.parse().unwrap();
    if !streaming {
        return client.unary(Request::new(JUNK.to_vec()), path, codec).await.unwrap_err();
    }
    let frames = tokio_stream::once(JUNK.to_vec());
    match client.streaming(Request::new(frames), path, codec).await {
        Err(refused) => refused,
        Ok(answers) => answers.into_inner().message().await.unwrap_err(),
    }
}

#[tokio::test]
async fn what_cannot_be_decoded_is_the_callers_fault_and_not_worth_another_try() {
    let rig = Rig::new().await;
    let methods = methods();
    assert!(methods.len() > 15, "{methods:?}");
    for (path, streaming) in methods {
        let refused = refusal(&rig, &path, streaming).await;
        assert_eq!(refused.code(), Code::InvalidArgument, "{path}: {refused}");
        let info = refused.get_details_error_info().unwrap();
        assert_eq!((info.domain.as_str(), info.reason.as_str()), ("weir", "INVALID_ARGUMENT"), "{path}");
        assert_eq!(info.metadata["retryable"], "false", "{path}");
    }
    rig.stop().await;
}
