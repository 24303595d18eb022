//! What is published: made and encoded before any clock starts, the same for weir and for the pipe.

mod message;
mod pattern;

pub(crate) use pattern::{Call, Order, Pattern, at_least_one_to};

use bytes::Bytes;
use message::Maker;
use prost::Message as _;
use weir_proto::server::{PublishRequest, PublishStreamRequest};

/// The policy of all channels.
pub(crate) const POLICY: &str = "task_events";
/// The tenant of all channels.
pub(crate) const TENANT: &str = "bench";

/// One encoded publish.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The request as it goes over the wire.
    pub(crate) bytes: Bytes,
    /// Messages in it.
    pub(crate) messages: usize,
}

/// The publishes of one connection, in order. On a stream the first has sequence 1.
pub(crate) type Lane = Vec<Request>;

/// Encoded publishes, by connection.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    /// What goes before the measuring.
    pub(crate) warm_up: Vec<Lane>,
    /// What is measured.
    pub(crate) measured: Vec<Lane>,
    /// Messages in what is measured.
    pub(crate) messages: u64,
    /// Messages in what goes before.
    warm_up_messages: u64,
    /// Mean length of a measured request.
    pub(crate) request_bytes: u64,
}

impl Workload {
    /// Makes and encodes all messages of a pattern.
    ///
    /// # Errors
    /// If a message id of the pattern does not fit its place; never for a pattern that the command line let through.
    pub(crate) fn prepare(pattern: &Pattern, payload_bytes: usize) -> anyhow::Result<Self> {
        let mut maker = Maker::new(pattern, payload_bytes);
        let warm_up = lanes(&mut maker, pattern, pattern.warm_up_requests())?;
        let measured = lanes(&mut maker, pattern, pattern.requests())?;
        let bytes: u64 = measured.iter().flatten().map(|request| request.bytes.len() as u64).sum();
        let count = |lanes: &[Lane]| lanes.iter().flatten().map(|request| request.messages as u64).sum();
        Ok(Self {
            messages: count(&measured),
            warm_up_messages: count(&warm_up),
            request_bytes: bytes / pattern.requests().max(1),
            warm_up,
            measured,
        })
    }
}

impl Workload {
    /// Messages in all of it.
    pub(crate) const fn all_messages(&self) -> u64 {
        self.warm_up_messages + self.messages
    }
}

fn lanes(maker: &mut Maker, pattern: &Pattern, requests: u64) -> anyhow::Result<Vec<Lane>> {
    let mut lanes = vec![Lane::new(); pattern.connections];
    for request in 0..requests {
        let lane = usize::try_from(request)? % pattern.connections;
        if let Some(lane) = lanes.get_mut(lane) {
            let (agent_id, messages) = maker.next_batch(pattern.batch);
            let count = messages.len();
            let (policy, tenant) = (POLICY.to_owned(), TENANT.to_owned());
            let bytes = match pattern.call {
                Call::Stream => {
                    let sequence = lane.len() as u64 + 1;
                    PublishStreamRequest { sequence, policy, tenant, agent_id, messages }.encode_to_vec()
                }
                Call::Unary => PublishRequest { policy, tenant, agent_id, messages }.encode_to_vec(),
            };
            lane.push(Request { bytes: bytes.into(), messages: count });
        }
    }
    Ok(lanes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use weir_proto::v1;

    fn pattern() -> Pattern {
        Pattern {
            messages: 60,
            batch: 10,
            connections: 2,
            channels: 2,
            tasks: 3,
            in_flight: 4,
            call: Call::Stream,
            order: Order::Turns,
            executions: false,
            warm_up: Some(20),
        }
    }

    fn decoded(lanes: &[Lane]) -> Vec<Vec<v1::PublishStreamRequest>> {
        let decode = |request: &Request| v1::PublishStreamRequest::decode(request.bytes.clone()).unwrap();
        lanes.iter().map(|lane| lane.iter().map(decode).collect()).collect()
    }

    #[test]
    fn all_messages_are_there_each_with_an_id_of_its_own_spread_over_channels_and_tasks() {
        let workload = Workload::prepare(&pattern(), 256).unwrap();
        assert_eq!((workload.messages, workload.warm_up_messages), (60, 20));
        let mut ids = BTreeSet::new();
        for (lanes, each) in [(&workload.warm_up, 1), (&workload.measured, 3)] {
            let lanes = decoded(lanes);
            assert_eq!(lanes.iter().map(Vec::len).collect::<Vec<_>>(), [each, each]);
            for (lane, requests) in lanes.iter().enumerate() {
                for (place, request) in requests.iter().enumerate() {
                    assert_eq!(request.sequence, place as u64 + 1);
                    assert!(request.agent_id.ends_with(&lane.to_string()), "{}", request.agent_id);
                    let tasks: BTreeSet<_> = request.messages.iter().map(|message| &message.task_id).collect();
                    assert_eq!(tasks.len(), 3);
                    for message in &request.messages {
                        assert_eq!(message.payload.len(), 256);
                        assert!(message.execution_id.is_empty());
                        assert!(ids.insert(message.message_id.clone()));
                    }
                }
            }
        }
        assert_eq!(ids.len(), 80);
    }

    #[test]
    fn with_executions_each_request_is_followed_by_its_final_report_in_the_same_task() {
        let pattern = Pattern { executions: true, ..pattern() };
        let workload = Workload::prepare(&pattern, 16).unwrap();
        let mut executions = BTreeSet::new();
        for request in decoded(&workload.measured).iter().flatten() {
            for pair in request.messages.chunks(2) {
                let [asked, done] = pair else { panic!("an odd number") };
                assert_eq!((asked.r#type.as_str(), done.r#type.as_str()), ("task.request", "task.result"));
                assert_eq!((&asked.task_id, &asked.execution_id), (&done.task_id, &done.execution_id));
                assert_eq!(done.final_state(), v1::FinalState::Completed);
                assert!(executions.insert(asked.execution_id.clone()));
            }
        }
        assert_eq!(executions.len(), 30);
    }

    #[test]
    fn random_channels_are_the_same_each_time() {
        let pattern = Pattern { order: Order::Random, channels: 1000, batch: 1, call: Call::Unary, ..pattern() };
        let bytes =
            |workload: &Workload| workload.measured.iter().flatten().map(|r| r.bytes.clone()).collect::<Vec<_>>();
        let (first, second) = (Workload::prepare(&pattern, 8).unwrap(), Workload::prepare(&pattern, 8).unwrap());
        assert_eq!(bytes(&first), bytes(&second));
        let request = v1::PublishRequest::decode(bytes(&first).remove(0)).unwrap();
        assert_eq!((request.policy.as_str(), request.tenant.as_str(), request.messages.len()), (POLICY, TENANT, 1));
    }
}
