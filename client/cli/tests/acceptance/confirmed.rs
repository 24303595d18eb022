//! What was confirmed is there, whenever the broker is killed.

use crate::process::{
    Counting, Dice, Member, Placed, Server, make_group, placed, report, rounds, settlement, to_desk, try_publish,
};
use std::collections::{BTreeMap, BTreeSet};
use weir_proto::v1::publish_service_client::PublishServiceClient;
use weir_proto::v1::{self, FinalState, SettleOutcome, settle_result};

/// A member that settles half of what it sees and gives the rest back.
struct Half {
    member: Member,
    settled: BTreeSet<(String, u64)>,
}

impl Half {
    async fn until_the_kill(mut self) -> Self {
        self.member.drop_work();
        loop {
            let Ok(deliveries) = self.member.try_fetch(20, 50).await else { return self };
            let place = |delivery: &v1::Delivery| (delivery.agent_id.clone(), delivery.offset);
            for delivery in &deliveries {
                assert!(!self.settled.contains(&place(delivery)), "settled, and handed out again: {delivery:?}");
                let outcome = if delivery.acquired % 2 == 0 { SettleOutcome::Done } else { SettleOutcome::Release };
                let Ok(answers) = self.member.try_settle(vec![settlement(delivery, outcome)]).await else {
                    return self;
                };
                let taken = matches!(answers[0], settle_result::Result::Ok(_));
                assert!(taken, "{answers:?}");
                if outcome == SettleOutcome::Done {
                    self.settled.insert(place(delivery));
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s11_confirmed_means_kept_through_kills_at_random_instants_also_while_starting() {
    let mut dice = Dice::new("kill during publishing");
    let mut server = Server::start(&[]);
    let members = make_group(&server, "half").await;
    let mut half = Half { member: Member::new(&server, &members, "half"), settled: BTreeSet::new() };
    let mut publishers: Vec<Counting> = (0..4).map(Counting::new).collect();
    for round in 0..rounds(20, 200) {
        let publishing: Vec<_> = publishers
            .drain(..)
            .map(|mut publisher| {
                publisher.resends = round;
                tokio::spawn(publisher.until_it_ends(server.wire(), dice.fork()))
            })
            .collect();
        half.member = half.member.over(server.wire());
        let settling = tokio::spawn(half.until_the_kill());
        tokio::time::sleep(dice.millis(80)).await;
        server.kill();
        for publisher in publishing {
            publishers.push(publisher.await.unwrap());
        }
        half = settling.await.unwrap();
        if round % 2 == 1 {
            server.start_and_kill(dice.millis(150));
        }
        server.start_again();
    }
    let mut confirmed = BTreeMap::new();
    for publisher in &mut publishers {
        // What was open at the last kill is settled first, as every round does with the one before.
        if let Some(count) = publisher.open.take() {
            try_publish(&server, publisher.batch(publisher.confirmed, count)).await.unwrap();
            publisher.confirmed += count;
        }
        publisher.everything_again(&server).await;
        confirmed.insert(publisher.agent(), publisher.confirmed);
    }
    eprintln!("confirmed: {confirmed:?}; settled: {}", half.settled.len());
    let everyone = make_group(&server, "all").await;
    let mut read: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (message, delivery) in Member::new(&server, &everyone, "all").drain().await {
        assert_eq!(message.payload, delivery.offset.to_string(), "the counter is the offset");
        read.entry(delivery.agent_id).or_default().push(delivery.offset);
    }
    for (agent, mut offsets) in read {
        offsets.sort_unstable();
        let whole: Vec<_> = (0..confirmed[&agent]).collect();
        assert_eq!(offsets, whole, "{agent}: each once, without a hole");
    }
    half.member = half.member.over(server.wire());
    half.member.drop_work();
    for delivery in half.member.fetch(1000, 0).await {
        let place = (delivery.agent_id.clone(), delivery.offset);
        assert!(!half.settled.contains(&place), "settled, and handed out again: {delivery:?}");
    }
    let audit = server.json(&["audit"]);
    assert_eq!(audit["balanced"], true, "{audit}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s07_a_pair_cut_off_by_a_kill_is_stored_exactly_once_by_its_repeats() {
    let mut dice = Dice::new("kill during the publish of a pair");
    let mut server = Server::start(&[]);
    let rounds = rounds(10, 200);
    for round in 0..rounds {
        let pair = |id: &str| {
            let id = format!("{id} {round}");
            to_desk(vec![report("t", &id, &format!("x{round}"), FinalState::Completed)])
        };
        let sent: Vec<_> = ["a", "b"]
            .map(|id| {
                let (mut publishing, request) = (PublishServiceClient::new(server.wire()), pair(id));
                tokio::spawn(async move { publishing.publish(request).await.ok() })
            })
            .into();
        tokio::time::sleep(dice.millis(4)).await;
        server.kill();
        let mut answers = Vec::new();
        for answer in sent {
            answers.extend(answer.await.unwrap().map(|answer| placed(answer.into_inner())[0]));
        }
        server.start_again();
        let (c, d) = tokio::join!(try_publish(&server, pair("c")), try_publish(&server, pair("d")));
        answers.extend([c, d].map(|answer| placed(answer.unwrap())[0]));
        let offset = answers[0].offset();
        assert!(answers.iter().all(|answer| answer.offset() == offset), "{answers:?}");
        let stored = answers.iter().filter(|answer| matches!(answer, Placed::Stored(_))).count();
        assert!(stored <= 1, "{answers:?}");
    }
    let everyone = make_group(&server, "all").await;
    let read = Member::new(&server, &everyone, "reader").drain().await;
    let executions: BTreeSet<_> = read.iter().map(|(message, _)| message.execution_id.clone()).collect();
    assert_eq!((read.len() as u64, executions.len() as u64), (rounds, rounds), "one event a pair, never none");
}
