//! Consuming over one stream.

use super::rig::{PATIENCE, Rig, event, session, task_request};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Streaming};
use weir_proto::v1::{self, begin_response, consume_request, consume_response, settle_result};

struct Member {
    asks: mpsc::Sender<v1::ConsumeRequest>,
    told: Streaming<v1::ConsumeResponse>,
}

impl Member {
    async fn open(rig: &Rig) -> Self {
        let (asks, requests) = mpsc::channel(64);
        let told = rig.consuming().consume(ReceiverStream::new(requests)).await.unwrap().into_inner();
        Self { asks, told }
    }

    async fn join(rig: &Rig, session: v1::Session) -> Self {
        let mut member = Self::open(rig).await;
        member.ask(7, consume_request::Frame::Join(v1::Join { session: Some(session), lease_ms: 0 })).await;
        let joined = member.next().await;
        assert_eq!(joined.request_id, 7);
        assert!(matches!(joined.frame, Some(consume_response::Frame::Joined(_))), "{joined:?}");
        member
    }

    async fn ask(&self, request_id: u64, frame: consume_request::Frame) {
        self.asks.send(v1::ConsumeRequest { request_id, frame: Some(frame) }).await.unwrap();
    }

    async fn credit(&self, messages: u32) {
        self.ask(0, consume_request::Frame::Credit(v1::Credit { messages, bytes: 1 << 20 })).await;
    }

    async fn message(&mut self) -> Result<Option<v1::ConsumeResponse>, tonic::Status> {
        tokio::time::timeout(PATIENCE, self.told.message()).await.unwrap()
    }

    async fn next(&mut self) -> v1::ConsumeResponse {
        self.message().await.unwrap().expect("the stream goes on")
    }

    /// Deliveries until there are so many.
    async fn deliveries(&mut self, count: usize) -> Vec<v1::Delivery> {
        let mut found = Vec::new();
        while found.len() < count {
            if let Some(consume_response::Frame::Deliveries(some)) = self.next().await.frame {
                found.extend(some.deliveries);
            }
        }
        found
    }

    /// The answer to this request.
    async fn answer(&mut self, request_id: u64) -> consume_response::Frame {
        loop {
            let frame = self.next().await;
            if frame.request_id == request_id {
                return frame.frame.unwrap();
            }
        }
    }
}

fn settle(delivery: &v1::Delivery, outcome: v1::SettleOutcome) -> consume_request::Frame {
    let settlement = v1::Settlement {
        epoch: delivery.epoch,
        offset: delivery.offset,
        outcome: outcome.into(),
        ..Default::default()
    };
    consume_request::Frame::Settle(v1::SettleRequest { session: None, settlements: vec![settlement] })
}

#[tokio::test]
async fn a_member_joins_gets_what_its_credit_allows_and_settles_until_it_leaves() {
    let rig = Rig::new().await;
    let group = rig.group("task_events", "workers").await;
    let messages = (0..5).map(|n| event(&format!("t{n}"), "m")).collect();
    rig.publish("task_events", messages).await;
    let mut member = Member::join(&rig, session(1, group)).await;
    assert_eq!(rig.status().await.leases, 0);

    member.credit(2).await;
    let first = member.deliveries(2).await;
    assert_eq!(rig.status().await.leases, 2);
    member.credit(3).await;
    let all = [first, member.deliveries(3).await].concat();
    for (n, delivery) in (100..).zip(&all) {
        member.ask(n, settle(delivery, v1::SettleOutcome::Done)).await;
    }
    for n in 100..105 {
        let consume_response::Frame::Settle(settled) = member.answer(n).await else { panic!("no settle") };
        assert!(matches!(settled.results[0].result, Some(settle_result::Result::Ok(_))));
    }
    member.ask(200, consume_request::Frame::Leave(v1::LeaveRequest::default())).await;
    assert!(matches!(member.answer(200).await, consume_response::Frame::Leave(_)));
    assert_eq!(member.message().await.unwrap(), None);
    assert_eq!(rig.status().await.members, 0);
    rig.stop().await;
}

#[tokio::test]
async fn frames_of_one_stream_take_effect_in_their_order_without_waiting_for_each_other() {
    let rig = Rig::new().await;
    let group = rig.group("task_events", "workers").await;
    rig.publish("task_events", vec![task_request("t1", "m1", "x1")]).await;
    let mut member = Member::join(&rig, session(1, group)).await;
    member.credit(1).await;
    let delivery = member.deliveries(1).await.remove(0);
    let (epoch, offset) = (delivery.epoch, delivery.offset);

    let begin = v1::BeginRequest { session: None, epoch, offset };
    member.ask(1, consume_request::Frame::Begin(begin)).await;
    member.ask(2, settle(&delivery, v1::SettleOutcome::Release)).await;
    member.ask(3, settle(&delivery, v1::SettleOutcome::Unknown)).await;
    let consume_response::Frame::Begin(begun) = member.answer(1).await else { panic!("no begin") };
    assert!(matches!(begun.result, Some(begin_response::Result::Granted(_))), "{begun:?}");
    let consume_response::Frame::Settle(released) = member.answer(2).await else { panic!("no settle") };
    let Some(settle_result::Result::Refused(refusal)) = &released.results[0].result else { panic!("{released:?}") };
    assert_eq!(refusal.reason(), v1::ErrorReason::ExecutionBegun);
    let consume_response::Frame::Settle(unknown) = member.answer(3).await else { panic!("no settle") };
    assert!(matches!(unknown.results[0].result, Some(settle_result::Result::Ok(_))), "{unknown:?}");
    rig.stop().await;
}

#[tokio::test]
async fn under_credit_and_settles_that_never_pause_every_message_comes_once_and_in_order_of_its_task() {
    const TASKS: u64 = 100;
    const EACH: u64 = 20;
    let rig = Rig::new().await;
    let group = rig.group("task_events", "workers").await;
    for n in 0..EACH {
        let messages = (0..TASKS).map(|task| event(&format!("t{task}"), &format!("m{n}"))).collect();
        rig.publish("task_events", messages).await;
    }
    let mut member = Member::join(&rig, session(1, group)).await;
    member.credit(50).await;
    let mut seen = std::collections::BTreeMap::<String, u64>::new();
    let mut settled = 0;
    while settled < TASKS * EACH {
        match member.next().await.frame.unwrap() {
            consume_response::Frame::Deliveries(some) => {
                for delivery in some.deliveries {
                    let message = delivery.message.as_ref().unwrap();
                    let next = seen.entry(message.task_id.clone()).or_default();
                    assert_eq!((message.message_id.as_str(), delivery.attempt), (format!("m{next}").as_str(), 1));
                    *next += 1;
                    member.ask(1, settle(&delivery, v1::SettleOutcome::Done)).await;
                    member.credit(1).await;
                }
            }
            consume_response::Frame::Settle(answer) => {
                assert!(matches!(answer.results[0].result, Some(settle_result::Result::Ok(_))), "{answer:?}");
                settled += 1;
            }
            _ => {}
        }
    }
    assert!(seen.values().all(|count| *count == EACH));
    rig.stop().await;
}

#[tokio::test]
async fn a_frame_that_makes_no_sense_is_refused_and_the_stream_goes_on() {
    let rig = Rig::new().await;
    let group = rig.group("task_events", "workers").await;
    let mut member = Member::join(&rig, session(1, group.clone())).await;
    member.ask(1, consume_request::Frame::Join(v1::Join::default())).await;
    let named = v1::HeartbeatRequest { session: Some(session(1, group)), held: None };
    member.ask(2, consume_request::Frame::Heartbeat(named)).await;
    member.ask(3, consume_request::Frame::Settle(v1::SettleRequest::default())).await;
    for (id, field) in [(1, "join"), (2, "session"), (3, "settlements")] {
        let consume_response::Frame::Refused(refusal) = member.answer(id).await else { panic!("taken") };
        assert_eq!((refusal.reason(), refusal.field.as_str()), (v1::ErrorReason::InvalidArgument, field));
    }
    member.ask(4, consume_request::Frame::Heartbeat(v1::HeartbeatRequest::default())).await;
    assert!(matches!(member.answer(4).await, consume_response::Frame::Heartbeat(_)));
    rig.stop().await;
}

#[tokio::test]
async fn a_stream_that_does_not_begin_with_a_join_ends_with_the_reason() {
    let rig = Rig::new().await;
    let mut stranger = Member::open(&rig).await;
    stranger.credit(1).await;
    let status = stranger.message().await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().starts_with("join"), "{status}");
    rig.stop().await;
}

#[tokio::test]
async fn s21_members_are_told_of_the_drain_and_their_streams_end_as_unavailable() {
    let rig = Rig::new().await;
    let group = rig.group("task_events", "workers").await;
    rig.publish("task_events", vec![event("t1", "m1")]).await;
    let mut member = Member::join(&rig, session(1, group)).await;
    member.credit(10).await;
    let delivery = member.deliveries(1).await.remove(0);
    let broker = rig.broker.clone();
    let drained = tokio::spawn(async move { broker.drain(PATIENCE).await });
    loop {
        if let Some(consume_response::Frame::Notice(notice)) = member.next().await.frame
            && matches!(notice.kind, Some(v1::notice::Kind::Draining(_)))
        {
            break;
        }
    }
    member.ask(1, settle(&delivery, v1::SettleOutcome::Done)).await;
    let consume_response::Frame::Settle(settled) = member.answer(1).await else { panic!("no settle") };
    assert!(matches!(settled.results[0].result, Some(settle_result::Result::Ok(_))));
    tokio::time::timeout(PATIENCE, drained).await.unwrap().unwrap().unwrap();
    rig.ask_to_stop();
    assert_eq!(member.message().await.unwrap_err().code(), Code::Unavailable);
    drop(member);
    rig.stop().await;
}

#[tokio::test]
async fn a_stream_whose_session_leaves_by_another_way_ends_and_says_so() {
    let rig = Rig::new().await;
    let group = rig.group("task_events", "g").await;
    let mut member = Member::join(&rig, session(1, group.clone())).await;
    rig.consuming().leave(v1::LeaveRequest { session: Some(session(1, group)) }).await.unwrap();
    let ended = member.message().await.unwrap_err();
    assert_eq!(ended.code(), Code::Aborted, "{ended}");
    rig.stop().await;
}
