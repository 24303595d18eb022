//! A disk that fills up: new work is refused while there is room left to finish what is there.

use super::machine::Machine;
use super::story::{channel, done, fetch, group, over_all, session};
use crate::broker::{Broker, Health};
use crate::model::{Publish, Reason, Refusal};
use prost::Message as _;
use weir_proto::v1::Message;

const GROUP: &str = "workers";
const MIB: usize = 1024 * 1024;

async fn publish(broker: &Broker, id: u32) -> Result<(), Refusal> {
    let message = Message {
        message_id: format!("m{id}"),
        task_id: format!("t{}", id % 8),
        agent_id: "desk".to_owned(),
        r#type: "event".to_owned(),
        payload: vec![b'.'; 50_000].into(),
        ..Message::default()
    };
    let messages = vec![message.encode_to_vec().into()];
    broker.publish(Publish { channel: channel("desk"), messages }).await.map(drop)
}

#[tokio::test]
async fn a_full_disk_refuses_new_work_finishes_the_old_and_takes_more_once_there_is_room() {
    let mut machine = Machine::new(1);
    machine.spares = 2;
    machine.disk.set_capacity(Some(12 * MIB));
    let broker = machine.open().unwrap();
    broker.create_group(over_all(GROUP, true)).await.unwrap();
    let mut stored = 0;
    let refused = loop {
        match publish(&broker, stored).await {
            Ok(()) => stored += 1,
            Err(refused) => break refused,
        }
        assert!(stored < 1_000, "the disk never fills up");
    };
    assert_eq!(refused.reason, Reason::StorageFull, "{refused}");
    assert!(broker.status().await.unwrap().storage_full);

    let member = session(1, GROUP);
    let mut settled = 0;
    while settled < stored {
        for delivery in fetch(&broker, &member, 10).await.unwrap() {
            assert!(done(&broker, &member, &delivery).await.unwrap());
            settled += 1;
        }
    }
    // Also a restart has its room.
    broker.close().await.unwrap();
    let broker = machine.open().unwrap();
    machine.disk.set_capacity(None);
    while publish(&broker, stored).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(broker.health(), Health::Serving);
    let audit = broker.audit(group(GROUP)).await.unwrap();
    assert!(audit.balanced, "{audit:?}");
    assert_eq!((audit.info.counts.settled_total(), audit.info.waiting), (u64::from(stored), 1));
    broker.close().await.unwrap();
}
