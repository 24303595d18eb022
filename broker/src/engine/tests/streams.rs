//! Sessions with a stream: it ends with its session, and nothing is handed to a session that has nowhere to put it.

use super::super::{Command, Out, Reply};
use super::harness::*;
use crate::engine::Ticket;
use crate::model::SessionRef;

fn attach(world: &mut World, session: &SessionRef) -> Ticket {
    let ticket = world.ask(Command::Attach(session.clone(), 0));
    assert!(matches!(world.reply(ticket), Some(Reply::Joined { .. })));
    ticket
}

fn credit(world: &mut World, session: &SessionRef, stream: Ticket, messages: u32, bytes: u64) {
    world.call(Command::Credit(session.id, stream, messages, bytes));
}

fn is_over(world: &World, stream: Ticket) -> bool {
    world.streamed.iter().any(|out| matches!(out, Out::StreamOver(_, of) if *of == stream))
}

fn delivered(world: &World) -> usize {
    world.streamed.iter().map(|out| if let Out::Deliver(_, some) = out { some.len() } else { 0 }).sum()
}

#[test]
fn a_stream_ends_with_its_session_and_a_session_that_comes_back_without_one_is_handed_nothing() {
    let mut world = World::new();
    let member = session(1);
    let stream = attach(&mut world, &member);
    world.pass(member.timeout_ms);
    assert!(is_over(&world, stream), "silence");
    world.call(Command::Heartbeat(member.clone()));
    credit(&mut world, &member, stream, 10, 1 << 20);
    world.publish(vec![event("t", "1"), event("u", "2")]);
    assert_eq!((world.info("g").in_flight, delivered(&world)), (0, 0));

    let again = attach(&mut world, &member);
    credit(&mut world, &member, again, 10, 1 << 20);
    assert_eq!(delivered(&world), 2);
    world.call(Command::Leave(member));
    assert!(is_over(&world, again), "leaving");
}

#[test]
fn a_newer_session_of_an_instance_ends_the_stream_of_the_older() {
    let mut world = World::new();
    let named = |id| SessionRef { instance: "pod-0".to_owned(), ..session(id) };
    let stream = attach(&mut world, &named(1));
    attach(&mut world, &named(2));
    assert!(is_over(&world, stream));
}

#[test]
fn a_session_asks_in_one_way_at_a_time_and_the_newest_counts() {
    let mut world = World::new();
    let member = session(1);
    let waiting = world.start_fetch(&member, 1, 30_000);
    let stream = attach(&mut world, &member);
    assert_eq!(world.fetched(waiting).expect("the fetch is given up").len(), 0);
    credit(&mut world, &member, stream, 10, 1 << 20);
    // What ends the fetch later does not touch the stream.
    world.call(Command::CancelFetch(member.id, waiting));
    world.pass(30_000 - 1);
    world.publish(vec![event("t", "1")]);
    assert_eq!(delivered(&world), 1);

    let fetch = world.start_fetch(&member, 1, 30_000);
    assert!(is_over(&world, stream));
    credit(&mut world, &member, stream, 10, 1 << 20);
    world.publish(vec![event("u", "2"), event("v", "3")]);
    assert_eq!(world.fetched(fetch).unwrap().len(), 1, "as much as the fetch asked for");
}

#[test]
fn messages_without_bytes_let_nothing_through_however_often_others_call() {
    let mut world = World::new();
    let member = session(1);
    let stream = attach(&mut world, &member);
    credit(&mut world, &member, stream, 1_000, 0);
    world.publish(vec![event("t", "1")]);
    world.publish(vec![event("u", "2")]);
    assert_eq!(delivered(&world), 0);
    credit(&mut world, &member, stream, 0, 1);
    assert_eq!(delivered(&world), 1, "one comes while any are left");
}
