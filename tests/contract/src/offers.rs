//! Events that are offered to a scope, which decides about them.

use std::sync::Arc;

use swirl_model::event::{Command, EventMatch, Input};
use swirl_model::scope::{Frame, FramePart, ListenRun, Queued, Work};
use swirl_model::workflow::StateId;
use swirl_model::{CloudEvent, Data};
use swirl_ports::{Committed, InboxItem, Listening};

use crate::kit::*;
use crate::{Backend, INSTANCE_BYTES};

fn offering(kind: &str, attributes: &[(&str, Option<&str>)]) -> EventMatch {
    EventMatch {
        apart: true,
        offers: true,
        ..filter(kind, attributes)
    }
}

fn take(wait: u32, event: &CloudEvent) -> Command {
    Command::Take {
        wait,
        key: event.key(),
    }
}

/// The events in the inbox, and which of them came before the wait.
async fn offered_early(b: &Backend, id: &str) -> Vec<bool> {
    let items = b.inbox(&root(id)).await;
    let early = |item: &InboxItem| matches!(item.input, Input::Event { early: true, .. });
    items.iter().map(early).collect()
}

async fn got(b: &Backend, id: &str) -> Vec<String> {
    event_ids(&b.inbox(&root(id)).await)
}

fn ordered(id: &str) -> CloudEvent {
    event(id, "t", &[("order", "1")])
}

pub async fn an_offering_slot_stays_open(b: Backend) {
    b.waiting("a", vec![offering("t", &[])]).await;
    for id in ["1", "2", "2", "3"] {
        b.ingest(&event(id, "t", &[]), &[]).await;
    }
    b.ingest(&event("4", "u", &[]), &[]).await;
    let items = b.inbox(&root("a")).await;
    assert_eq!(event_ids(&items), ["1", "2", "3"], "in order, each once");
    assert!(matches!(items[0].input, Input::Event { offered: true, .. }));
    // Whatever the scope says about them, the next one comes too.
    let some = change(vec![]).consumed(&[&items[0].id, &items[1].id]);
    b.act(&root("a"), some).await;
    b.ingest(&event("5", "t", &[]), &[]).await;
    assert_eq!(got(&b, "a").await, ["3", "5"]);
    b.act(&root("a"), change(vec![Command::Unsubscribe(1)]))
        .await;
    assert!(b.ingest(&event("6", "t", &[]), &[]).await.woken.is_empty());
}

pub async fn an_offer_has_the_further_attributes(b: Backend) {
    let mut by_subject = offering("t", &[]);
    by_subject.attributes = vec![("subject".into(), Some("s".to_owned()))];
    b.waiting("a", vec![by_subject]).await;
    let subject = |id: &str, subject: &str| event(id, "t", &[("subject", subject)]);
    b.ingest(&subject("1", "x"), &[]).await;
    b.ingest(&subject("2", "s"), &[]).await;
    b.ingest(&event("3", "t", &[]), &[]).await;
    assert_eq!(got(&b, "a").await, ["2"]);
}

pub async fn all_offering_waits_of_an_instance_get_an_event(b: Backend) {
    b.create(new("a")).await;
    let forking = change(vec![fork("r", 1, 2, 2, 2)]).at(forked(1, 2));
    b.act(&root("a"), forking).await;
    for branch in ["r.1.0", "r.1.1"] {
        let wait = Command::Subscribe(subscription(1, vec![offering("t", &[])]));
        let waiting = change(vec![wait]).at(blocked(Work::Events));
        b.act(&scope("a", branch), waiting).await;
    }
    let ingested = b.ingest(&event("1", "t", &[]), &[]).await;
    assert_eq!(ingested.woken, [scope("a", "r.1.0"), scope("a", "r.1.1")]);
    for branch in ["r.1.0", "r.1.1"] {
        assert_eq!(event_ids(&b.inbox(&scope("a", branch)).await), ["1"]);
    }
}

/// What an instance only looked at is there for its later waits, and what it took is not.
pub async fn an_offered_event_is_consumed_when_it_is_taken(b: Backend) {
    let kept = vec![offering("t", &[("order", Some("1"))])];
    b.waiting("a", kept.clone()).await;
    let events = ["1", "2", "3"].map(ordered);
    for event in &events {
        b.ingest(event, &kept).await;
    }
    assert_eq!(offered_early(&b, "a").await, [false; 3]);
    let items = b.inbox(&root("a")).await;
    let ids: Vec<&str> = items.iter().map(|item| &*item.id).collect();
    let next = Command::Subscribe(subscription(2, kept.clone()));
    let commands = vec![take(1, &events[1]), Command::Unsubscribe(1), next];
    b.act(&root("a"), change(commands).consumed(&ids)).await;
    assert_eq!(got(&b, "a").await, ["1", "3"]);
    // Others that begin later don't get what it took.
    b.waiting("b", kept).await;
    assert_eq!(got(&b, "b").await, ["1", "3"]);
    assert_eq!(offered_early(&b, "b").await, [true; 2]);
}

/// Its first delivery was never acknowledged.
pub async fn a_taken_event_is_not_offered_to_a_later_wait(b: Backend) {
    b.waiting("a", vec![offering("t", &[])]).await;
    let event = event("1", "t", &[]);
    b.ingest(&event, &[]).await;
    let items = b.inbox(&root("a")).await;
    let next = Command::Subscribe(subscription(2, vec![offering("t", &[])]));
    let commands = vec![take(1, &event), Command::Unsubscribe(1), next];
    let taken = change(commands).consumed(&[&items[0].id]);
    b.act(&root("a"), taken.at(blocked(Work::Events))).await;
    b.ingest(&event, &[]).await;
    assert_eq!(got(&b, "a").await, [""; 0]);
}

/// Whoever keeps it: here another definition, whose instance began later.
pub async fn an_event_that_is_kept_for_others_is_consumed_when_it_is_taken(b: Backend) {
    b.waiting("a", vec![offering("t", &[])]).await;
    let kept = vec![filter("t", &[("order", Some("1"))])];
    b.ingest(&ordered("1"), &kept).await;
    b.ingest(&ordered("2"), &kept).await;
    let items = b.inbox(&root("a")).await;
    let ids: Vec<&str> = items.iter().map(|item| &*item.id).collect();
    let commands = vec![take(1, &ordered("1"))];
    b.act(&root("a"), change(commands).consumed(&ids)).await;
    b.waiting("b", kept).await;
    assert_eq!(got(&b, "b").await, ["2"]);
}

/// Each of them looks at the event, and none takes it from the others, however many begin at once.
pub async fn a_kept_event_is_offered_to_all_that_begin(b: Backend) {
    let kept = vec![offering("t", &[("order", Some("1"))])];
    for id in ["1", "2", "3"] {
        b.ingest(&ordered(id), &kept).await;
    }
    let ids: Vec<String> = (0..60).map(|at| format!("a{at}")).collect();
    let begun = ids.iter().map(|id| b.waiting(id, kept.clone()));
    futures::future::join_all(begun).await;
    for id in ids {
        assert_eq!(got(&b, &id).await, ["1", "2", "3"], "{id}");
    }
}

pub async fn early_events_are_offered_once(b: Backend) {
    let kept = vec![offering("t", &[("order", Some("1"))])];
    let events = ["1", "2", "3"].map(ordered);
    b.ingest(&events[0], &kept).await;
    b.ingest(&events[1], &kept).await;
    b.waiting("a", kept.clone()).await;
    assert_eq!(got(&b, "a").await, ["1", "2"]);
    let items = b.inbox(&root("a")).await;
    let ids: Vec<&str> = items.iter().map(|item| &*item.id).collect();
    b.act(&root("a"), change(vec![]).consumed(&ids)).await;
    // Neither another event nor another wait brings them again.
    b.ingest(&events[2], &kept).await;
    let other = Command::Subscribe(subscription(2, vec![offering("u", &[])]));
    b.act(&root("a"), change(vec![other])).await;
    assert_eq!(got(&b, "a").await, ["3"]);
}

/// The events that a listening task has taken count for the size of its instance.
pub async fn a_queue_counts_for_its_instance(b: Backend) {
    b.create(new("a")).await;
    let queued = Queued {
        value: Data::string("x".repeat(INSTANCE_BYTES + 2_000)),
        name: "e".into(),
        source: "/s".to_owned(),
        id: "1".to_owned(),
        offer: None,
    };
    let run = ListenRun {
        held_bytes: queued.bytes(),
        queue: vec![Arc::new(queued)],
        ..ListenRun::default()
    };
    let frame = Frame {
        state: StateId(0),
        part: FramePart::Body,
        task: Arc::default(),
        params: 0,
        iteration: None,
        attempt: None,
        extending: None,
        listen: Some(Box::new(run)),
        bytes: 0,
    };
    let held = b.hold(&root("a")).await;
    let large = change(vec![]).at(blocked(Work::Events)).frames(vec![frame]);
    let Committed::Full(room) = b.commit_of(&held, large).await else {
        panic!("it doesn't fit into {INSTANCE_BYTES} bytes")
    };
    assert_eq!(room.limit, INSTANCE_BYTES);
}

/// Nobody takes events out of the inbox of a suspended instance.
pub async fn a_suspended_instance_is_offered_no_more_than_it_may_hold(b: Backend) {
    b.waiting("a", vec![offering("t", &[])]).await;
    let id = root("a").instance;
    b.store.suspend(&id, true, None).await.unwrap();
    let ingest = async |ids: std::ops::Range<u32>| {
        let mut full = 0;
        for id in ids {
            let large = sized(event(&id.to_string(), "t", &[]), 20_000);
            full += b.ingest(&large, &[]).await.full.len();
        }
        full
    };
    let full = ingest(0..20).await;
    b.store.suspend(&id, false, None).await.unwrap();
    let offered = got(&b, "a").await.len();
    assert!((3..=6).contains(&offered), "{offered}");
    assert_eq!(full, 20 - offered, "the others are reported");
    assert_eq!(ingest(20..30).await, 0);
    assert_eq!(got(&b, "a").await.len(), offered + 10);
}

fn sized(mut event: CloudEvent, bytes: usize) -> CloudEvent {
    event.data = Some(Data::string("x".repeat(bytes)));
    event
}

/// An event that is kept waits until the instance is resumed.
pub async fn a_resumed_instance_is_offered_what_it_had_no_room_for(b: Backend) {
    let open = vec![offering("u", &[]), offering("t", &[("order", None)])];
    b.waiting("a", open.clone()).await;
    let id = root("a").instance;
    b.store.suspend(&id, true, None).await.unwrap();
    let mut number = 0;
    for bytes in [20_000, 2_000] {
        for _ in 0..20 {
            number += 1;
            let event = event(&format!("u{number}"), "u", &[]);
            b.ingest(&sized(event, bytes), &open).await;
        }
    }
    for id in ["1", "2", "3"] {
        let ingested = b.ingest(&sized(ordered(id), 4_000), &open).await;
        assert_eq!(ingested.full, [root("a").instance]);
        assert!(ingested.woken.is_empty());
    }
    let resumed = b.store.suspend(&id, false, None).await.unwrap().unwrap();
    assert!(resumed.wake.contains(&root("a")));
    let mut offered = got(&b, "a").await;
    offered.retain(|id| !id.starts_with('u'));
    assert_eq!(offered, ["1", "2", "3"]);
}

/// Values of such a wait are its own.
pub async fn offers_teach_an_instance_nothing(b: Backend) {
    let open = vec![offering("t", &[("order", None)])];
    b.waiting("a", open.clone()).await;
    b.ingest(&event("1", "t", &[("order", "1")]), &open).await;
    b.ingest(&event("2", "t", &[("order", "2")]), &open).await;
    b.ingest(&event("3", "t", &[]), &open).await;
    assert_eq!(got(&b, "a").await, ["1", "2"]);
}

/// Events of a set of a task's trigger share the values that were found for them, and come in their order.
pub async fn a_set_shares_the_values_of_its_events(b: Backend) {
    let give = async |id: &str, kind: &str, key: &str, now: i64| {
        let place = |own: &str| EventMatch {
            shares: match own == kind {
                true => vec![("k".into(), key.to_owned())],
                false => Vec::new(),
            },
            apart: true,
            ..filter(own, &[])
        };
        let both = [trigger(vec![place("t"), place("u")], false)];
        let event = event(id, kind, &[]);
        let ingested = b.events.ingest(&event, Listening::new(&both, &[]), at(now));
        let ingested = ingested.await.unwrap();
        b.events.acknowledge(&event, at(now)).await.unwrap();
        start_ids(&ingested).concat().join(" ")
    };
    assert_eq!(give("1", "u", "a", 1).await, "");
    assert_eq!(give("2", "u", "b", 2).await, "");
    assert_eq!(give("3", "t", "b", 3).await, "2 3");
    assert_eq!(give("4", "t", "a", 4).await, "1 4");
}
