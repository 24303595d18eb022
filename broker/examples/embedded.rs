//! weir inside a process: no socket, no server. Publishes a request, begins it, completes it, closes, opens again, and
//! asks what became of it.
//!
//! ```text
//! cargo run -p weir-broker --example embedded
//! ```

use prost::Message as _;
use std::error::Error;
use weir_broker::Broker;
use weir_broker::model::{
    BeginResult, ChannelRef, Complete, FetchLimits, FinalState, GroupRef, GroupSpec, LeaseRef, Publish, Selector,
    SessionId, SessionRef, Start,
};
use weir_proto::v1::{Effect, Message};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("weir-embedded-{}", std::process::id()));
    let broker = Broker::builder(&folder).open()?;

    // One channel a tenant and agent; it comes to be with its first message.
    let channel = ChannelRef { policy: "task_events".to_owned(), tenant: "acme".to_owned(), agent: "desk".to_owned() };
    let request = Message {
        message_id: "m-1".to_owned(),
        task_id: "refund-17".to_owned(),
        agent_id: "desk".to_owned(),
        execution_id: "refund-17/pay".to_owned(),
        r#type: "task.request".to_owned(),
        effect: Effect::Unsafe.into(),
        payload: br#"{"amount": 40}"#.to_vec().into(),
        ..Message::default()
    };
    let published =
        broker.publish(Publish { channel: channel.clone(), messages: vec![request.encode_to_vec().into()] }).await?;
    println!("published: {:?}", published.results);

    let group = GroupRef { scope: "acme".to_owned(), policy: "task_events".to_owned(), name: "refunders".to_owned() };
    broker
        .create_group(GroupSpec {
            name: group.clone(),
            selector: Selector::Tenant("acme".to_owned()),
            start: Start::Earliest,
            executes: true,
            skip_if_final: true,
            pressure: true,
            window: 0,
            max_attempts: 5,
        })
        .await?;
    let session = SessionRef {
        id: SessionId(rand::random()),
        group,
        member: "worker-1".to_owned(),
        instance: String::new(),
        timeout_ms: 0,
        held: None,
    };
    let limits = FetchLimits { max_messages: 10, max_bytes: 0, wait_ms: 1_000, lease_ms: 0 };
    let fetched = broker.fetch(session.clone(), limits).await?;
    for delivery in fetched.deliveries {
        let message = Message::decode(delivery.message.clone())?;
        println!("delivered: {} (attempt {})", message.execution_id, delivery.attempt);
        let lease = LeaseRef { epoch: delivery.epoch, offset: delivery.offset };
        // "I am about to act": durable before the money moves.
        let BeginResult::Ok { fencing_token } = broker.begin(session.clone(), lease).await? else { continue };
        // ... pay ...
        let complete = Complete {
            lease,
            tenant: delivery.channel.tenant.clone(),
            execution_id: message.execution_id,
            fencing_token,
            final_state: FinalState::Completed,
            artifact_ref: "receipt:4711".to_owned(),
            publishes: Vec::new(),
        };
        println!("completed: {:?}", broker.complete(session.clone(), complete).await?);
    }
    broker.close().await?;
    drop(broker);

    let broker = Broker::builder(&folder).open()?;
    let story = broker.explain("acme", "refund-17/pay").await?;
    println!("{} -> {}", story.summary, story.verdict.name());
    for (at, line) in story.story {
        println!("  {at}  {line}");
    }
    broker.close().await?;
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
