//! Both flavours say the same on the wire, and a message's bytes pass through the server's unchanged.
#![allow(missing_docs)]

use prost::Message as _;
use weir_proto::{server, v1};

fn message(n: u32) -> v1::Message {
    v1::Message {
        message_id: format!("m{n}"),
        task_id: "booking 7".into(),
        agent_id: "desk".into(),
        r#type: "task.request".into(),
        execution_id: "x1".into(),
        effect: v1::Effect::Unsafe.into(),
        retry_budget: Some(0),
        attributes: [("k".to_owned(), "v".to_owned())].into(),
        payload: "{}".into(),
        ..Default::default()
    }
}

#[test]
fn the_server_reads_a_publish_with_each_message_verbatim() {
    let typed = v1::PublishRequest {
        policy: "task_events".into(),
        tenant: "acme".into(),
        agent_id: "desk".into(),
        messages: vec![message(1), message(2)],
    };

    let raw = server::PublishRequest::decode(typed.encode_to_vec().as_slice()).unwrap();

    let expected: Vec<_> = typed.messages.iter().map(v1::Message::encode_to_vec).collect();
    assert_eq!(raw.messages, expected);
    assert_eq!(v1::PublishRequest::decode(raw.encode_to_vec().as_slice()).unwrap(), typed);
}

#[test]
fn a_client_reads_a_delivery_the_server_wrote_as_bytes() {
    let raw = server::FetchResponse {
        deliveries: vec![server::Delivery {
            policy: "task_events".into(),
            offset: 3,
            message: message(1).encode_to_vec().into(),
            epoch: 9,
            ..Default::default()
        }],
        waiting: None,
        held: None,
        notices: vec![],
    };

    let typed = v1::FetchResponse::decode(raw.encode_to_vec().as_slice()).unwrap();

    assert_eq!(typed.deliveries[0].message, Some(message(1)));
    assert_eq!((typed.deliveries[0].offset, typed.deliveries[0].epoch), (3, 9));
}

#[test]
fn every_rpc_has_a_request_and_a_response_of_its_own() {
    for encoded in [weir_proto::FILE_DESCRIPTOR_SET, weir_proto::TEST_FILE_DESCRIPTOR_SET] {
        let set = prost_types::FileDescriptorSet::decode(encoded).unwrap();
        for file in &set.file {
            for method in file.service.iter().flat_map(|service| &service.method) {
                let own = |suffix| format!(".{}.{}{suffix}", file.package(), method.name());
                assert_eq!(method.input_type(), own("Request"));
                assert_eq!(method.output_type(), own("Response"));
            }
            for item in &file.enum_type {
                assert!(item.value[0].name().ends_with("_UNSPECIFIED"), "{}", item.name());
            }
        }
    }
}
