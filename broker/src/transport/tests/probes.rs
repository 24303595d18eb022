//! What watches the server: health, reflection, the HTTP port.

use super::rig::{PATIENCE, Rig, event};
use crate::transport::http::{Front, serve_http};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

#[tokio::test]
async fn health_is_serving_until_the_broker_drains() {
    let rig = Rig::new().await;
    let mut health = HealthClient::new(rig.wire.clone());
    let request = HealthCheckRequest { service: "weir.v1.PublishService".into() };
    let mut looks = health.watch(request).await.unwrap().into_inner();
    let mut expected = vec![ServingStatus::Serving, ServingStatus::NotServing];
    let mut draining = false;
    while let Some(wanted) = expected.first().copied() {
        let look = tokio::time::timeout(PATIENCE, looks.message()).await.unwrap().unwrap().unwrap();
        if look.status() == wanted {
            expected.remove(0);
        }
        if look.status() == ServingStatus::Serving && !draining {
            draining = true;
            rig.broker.drain(PATIENCE).await.unwrap();
        }
    }
    drop(looks);
    rig.stop().await;
}

async fn get(front: &Front, path: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(serve_http(front.clone(), listener, std::future::pending()));
    let mut socket = TcpStream::connect(address).await.unwrap();
    let ask = format!("GET {path} HTTP/1.1\r\nhost: weir\r\nconnection: close\r\n\r\n");
    socket.write_all(ask.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    server.abort();
    answer
}

#[tokio::test]
async fn the_http_port_says_ready_once_the_broker_is_and_has_its_metrics() {
    let front = Front::new(|| "process 1\n".to_owned());
    assert!(get(&front, "/readyz").await.starts_with("HTTP/1.1 503"));
    assert!(get(&front, "/healthz").await.starts_with("HTTP/1.1 200"));

    let rig = Rig::new().await;
    let group = rig.group("task_events", "g").await;
    rig.publish("task_events", vec![event("t", "m")]).await;
    front.opened(rig.broker.clone());
    assert!(get(&front, "/readyz").await.starts_with("HTTP/1.1 200"));
    let metrics = get(&front, "/metrics").await;
    let labels = format!("{{tenant=\"acme\",policy=\"task_events\",group=\"{}\"}}", group.name);
    for line in [
        "process 1".to_owned(),
        "weir_serving 1".to_owned(),
        "weir_published_total 1".to_owned(),
        format!("weir_group_depth{labels} 1"),
        format!("weir_group_offered_total{labels} 1"),
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in\n{metrics}");
    }

    rig.broker.drain(PATIENCE).await.unwrap();
    assert!(get(&front, "/readyz").await.starts_with("HTTP/1.1 503"));
    rig.stop().await;
}

#[tokio::test]
async fn reflection_knows_every_service() {
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
    let rig = Rig::new().await;
    let ask = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut client = ServerReflectionClient::new(rig.wire.clone());
    let mut answers = client.server_reflection_info(tokio_stream::once(ask)).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response;
    let Some(MessageResponse::ListServicesResponse(list)) = answer else { panic!("{answer:?}") };
    let names: Vec<_> = list.service.iter().map(|service| service.name.as_str()).collect();
    for name in ["weir.v1.ConsumeService", "weir.v1.PublishService", "grpc.health.v1.Health"] {
        assert!(names.contains(&name), "{names:?}");
    }
    drop(answers);
    rig.stop().await;
}

#[tokio::test]
async fn a_connection_of_the_http_port_beyond_the_bound_is_closed_and_the_others_are_served() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(serve_http(Front::new(String::new), listener, std::future::pending()));
    let mut open = Vec::new();
    for _ in 0..64 {
        let mut socket = TcpStream::connect(address).await.unwrap();
        // Answered, so that it is known to be served, and kept.
        socket.write_all(b"GET /healthz HTTP/1.1\r\nhost: weir\r\n\r\n").await.unwrap();
        assert!(socket.read(&mut [0; 1024]).await.unwrap() > 0);
        open.push(socket);
    }
    let mut beyond = TcpStream::connect(address).await.unwrap();
    let ended = tokio::time::timeout(PATIENCE, beyond.read(&mut [0; 1])).await.unwrap();
    assert!(matches!(ended, Ok(0)) || ended.is_err(), "{ended:?}");
    server.abort();
}
