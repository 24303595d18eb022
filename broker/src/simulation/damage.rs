//! What was confirmed and is damaged on the medium: told where it is met, and nobody else is held back.

use super::machine::Machine;
use super::story::{channel, done, fetch, group, over_all, session};
use crate::broker::{Broker, OpenError, SessionEvent};
use crate::model::Publish;
use prost::Message as _;
use std::path::{Path, PathBuf};
use weir_proto::v1::Message;

const GROUP: &str = "workers";
/// Whatever a test waits for comes within this, or the test fails.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);
/// What the damaged message says.
const NEEDLE: &[u8] = b"the one that rots";

async fn publish(broker: &Broker, task: &str, id: &str, payload: &[u8]) {
    let message = Message {
        message_id: id.to_owned(),
        task_id: task.to_owned(),
        agent_id: "desk".to_owned(),
        r#type: "event".to_owned(),
        payload: payload.to_vec().into(),
        ..Message::default()
    };
    let messages = vec![message.encode_to_vec().into()];
    broker.publish(Publish { channel: channel("desk"), messages }).await.unwrap();
}

/// The file of the journal that holds these bytes, and where.
fn place_of(machine: &Machine, bytes: &[u8]) -> (PathBuf, usize) {
    let dir = Path::new("/data/journal");
    let files = machine.disk.list(dir).into_iter().map(|name| dir.join(name));
    files
        .filter_map(|path| {
            let contents = machine.disk.contents(&path);
            contents.windows(bytes.len()).position(|window| window == bytes).map(|at| (path, at))
        })
        .next()
        .expect("the journal holds it")
}

/// A machine on which a broker took a message that is damaged now, between others, and another one after it.
async fn rotten(tail_bytes: usize) -> Machine {
    let mut machine = Machine::new(1);
    machine.tail_bytes = tail_bytes;
    let broker = machine.open().unwrap();
    broker.create_group(over_all(GROUP, true)).await.unwrap();
    publish(&broker, "good", "1", b"fine").await;
    publish(&broker, "bad", "2", NEEDLE).await;
    publish(&broker, "bad", "3", b"behind it").await;
    publish(&broker, "good", "4", b"fine too").await;
    broker.close().await.unwrap();
    // The next life's journal proves all that the first one wrote, and its checkpoint is past it.
    let broker = machine.open().unwrap();
    publish(&broker, "good", "5", b"and fine").await;
    // Where a segment's messages lie is known without reading the segment once it has its index.
    let indexed = async {
        while !machine.disk.list(Path::new("/data/index")).iter().any(|name| name.ends_with(".idx")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, indexed).await.expect("the first segment is never indexed");
    broker.close().await.unwrap();
    let (path, at) = place_of(&machine, NEEDLE);
    machine.disk.decay(&path, at, 0x10);
    machine
}

async fn only_that_task_waits(broker: &Broker, name: &str) {
    let parked = broker.parked(group(GROUP)).await.unwrap();
    assert_eq!(parked.len(), 1, "{name}");
    assert!(parked[0].reason.starts_with("data_loss: "), "{name}: {}", parked[0].reason);
    assert!(parked[0].reason.contains("segment 1"), "{name}: it names the place: {}", parked[0].reason);
    let audit = broker.audit(group(GROUP)).await.unwrap();
    assert!(audit.balanced, "{name}: {audit:?}");
    assert_eq!((audit.info.parked, audit.info.waiting), (1, 1), "{name}");
}

#[tokio::test]
async fn a_flipped_bit_holds_back_its_task_alone_over_restarts() {
    let machine = rotten(64 * 1024).await;
    for life in 1..=3 {
        let name = format!("life {life}");
        let broker = machine.open().unwrap();
        let member = session(life, GROUP);
        publish(&broker, "new", &format!("{life}"), b"the channel goes on").await;
        let mut good = Vec::new();
        loop {
            let got = fetch(&broker, &member, 10).await.unwrap();
            if got.is_empty() {
                break;
            }
            for delivery in got {
                assert!(done(&broker, &member, &delivery).await.unwrap(), "{name}");
                good.push(delivery.task_id);
            }
        }
        good.sort();
        let expected: &[&str] = if life == 1 { &["good", "good", "good", "new"] } else { &["new"] };
        assert_eq!(good, expected, "{name}");
        only_that_task_waits(&broker, &name).await;
        broker.leave(member).await.unwrap();
        broker.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_message_that_rots_between_grant_and_delivery_is_set_aside_and_its_stream_goes_on() {
    let mut machine = Machine::new(2);
    // Only the newest stays in memory, so that the bytes of the others come from the medium.
    machine.tail_bytes = 0;
    let broker = machine.open().unwrap();
    broker.create_group(over_all(GROUP, true)).await.unwrap();
    publish(&broker, "bad", "1", NEEDLE).await;
    publish(&broker, "bad", "2", b"behind it").await;
    publish(&broker, "good", "3", &[b'.'; 100_000]).await;
    let (path, at) = place_of(&machine, NEEDLE);
    machine.disk.decay(&path, at, 0x10);
    let member = session(1, GROUP);
    let (_, mut stream) = broker.consume(member.clone(), 0).await.unwrap();
    stream.credit(1, 1 << 20);
    let Some(Ok(SessionEvent::Deliveries(got))) = stream.next().await else { panic!() };
    assert_eq!(got.iter().map(|d| d.task_id.as_str()).collect::<Vec<_>>(), ["good"], "the credit was not used up");
    assert!(done(&broker, &member, &got[0]).await.unwrap());
    only_that_task_waits(&broker, "live").await;
    assert_eq!(broker.group(group(GROUP)).await.unwrap().counts.delivered, 2);
}

#[tokio::test]
async fn a_segment_that_is_gone_refuses_the_start_and_is_named() {
    let machine = rotten(64 * 1024).await;
    let (path, _) = place_of(&machine, b"fine too");
    machine.disk.process().remove(&path).unwrap();
    match machine.open() {
        Err(OpenError::DataLoss(what)) => assert!(what.contains("segment 1"), "{what}"),
        other => panic!("{other:?}"),
    }
    assert!(machine.open().is_err(), "and goes on to");
}
