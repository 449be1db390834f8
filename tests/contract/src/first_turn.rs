//! Instances that are created together with their first turn.

use swirl_model::CloudEvent;
use swirl_model::data;
use swirl_model::event::{Command, Event, EventMatch, HistoryEntry};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::{EndStatus, Status};
use swirl_model::scope::{Cursor, Scope, StartEvent, Work};
use swirl_ports::{Commit, Created, Filter, Listening, NewRecords, Removed};

use crate::Backend;
use crate::kit::*;

/// This many history entries.
pub fn history(entries: u32) -> Vec<HistoryEntry> {
    let entry = |fork| HistoryEntry {
        data: None,
        at: at(7),
        scope: ScopeId::root(),
        event: Event::Joined {
            fork,
            in_state: None,
        },
        data_until: None,
    };
    (0..entries).map(entry).collect()
}

/// An instance that its first turn ends, with this many history entries.
pub fn ended_at_once(id: &str, entries: u32) -> NewRecords {
    ended_as(id, entries, EndStatus::Completed)
}

pub fn ended_as(id: &str, entries: u32, status: EndStatus) -> NewRecords {
    let mut new = new(id);
    let mut scope = new.root.clone();
    scope.cursor = Cursor::Ended;
    scope.data = data!({"end": true});
    let end = Command::End {
        status,
        output: (status == EndStatus::Completed).then(|| data!({"out": 1})),
        error: None,
    };
    take_turn(&mut new, scope, history(entries), vec![end]);
    new
}

/// Adds the first turn to a new instance, at the time 7.
fn take_turn(
    new: &mut NewRecords,
    scope: Scope,
    history: Vec<HistoryEntry>,
    commands: Vec<Command>,
) {
    let id = new.header.id.clone();
    let turn = Commit::first(id, scope, history, commands, at(7));
    new.first_turn = Some(Box::new(turn));
}

/// The first turn of a new instance.
pub fn turn(new: &mut NewRecords) -> &mut Commit {
    new.first_turn.as_mut().unwrap()
}

/// The results are the same as for an instance that was driven to its end.
pub async fn a_first_turn_may_end_an_instance(b: Backend) {
    b.create(new("driven")).await;
    let end = Command::End {
        status: EndStatus::Completed,
        output: Some(data!({"out": 1})),
        error: None,
    };
    b.act(&root("driven"), change(vec![end]).at(Cursor::Ended))
        .await;
    let mut wanted = ended_at_once("a", 1200);
    wanted.header.key = Some("k".to_owned());
    b.create(wanted).await;
    let id = InstanceId::new("a");
    let found = b.store.instance(&id).await.unwrap().unwrap();
    assert_eq!(found.header.key.as_deref(), Some("k"));
    assert_eq!(found.state.status, Status::Completed);
    assert_eq!(found.state.output, Some(data!({"out": 1})));
    assert_eq!(found.state.ended_at, Some(at(7)));
    assert!(found.state.error.is_none() && !found.state.suspended);
    assert_eq!(b.store.history(&id).await.unwrap(), history(1200));
    let scopes = b.store.scopes(&id).await.unwrap();
    let driven = b.store.scopes(&InstanceId::new("driven")).await.unwrap();
    assert_eq!((scopes.len(), scopes[0].rev), (1, driven[0].rev));
    assert_eq!(scopes[0].data, data!({"end": true}));
    assert_eq!(b.store.view(&id).await.unwrap().unwrap().1, []);

    assert!(b.is_gone(&root("a")).await);
    assert!(b.store.runnable(10).await.unwrap().is_empty());
    assert!(b.store.unflushed(10).await.unwrap().is_empty());
    assert_eq!(b.store.suspend(&id, true, None).await.unwrap(), None);
    for (status, wanted) in [
        (Status::Running, &[][..]),
        (Status::Completed, &["a", "driven"]),
    ] {
        let filter = Filter {
            statuses: vec![status],
            limit: 10,
            ..Filter::default()
        };
        let found = b.store.list(&filter).await.unwrap();
        let mut found: Vec<_> = found.iter().map(|line| line.header.id.as_str()).collect();
        found.sort_unstable();
        assert_eq!(found, wanted, "{status:?}");
    }
}

pub async fn an_instance_with_a_first_turn_may_exist_already(b: Backend) {
    // A running instance isn't affected by an ended one.
    b.create(new("a")).await;
    let again = b.store.create(ended_at_once("a", 3)).await.unwrap();
    assert_eq!(again, Created::Exists { conflict: false });
    let id = InstanceId::new("a");
    let found = b.store.instance(&id).await.unwrap().unwrap();
    assert_eq!(found.state.status, Status::Running);
    assert_eq!(b.store.history(&id).await.unwrap(), []);
    assert_eq!(b.store.runnable(10).await.unwrap(), [root("a")]);

    b.create(ended_at_once("b", 3)).await;
    for again in [ended_at_once("b", 5), new("b")] {
        let again = b.store.create(again).await.unwrap();
        assert_eq!(again, Created::Exists { conflict: false });
    }
    let mut other = ended_at_once("b", 3);
    other.header.input = data!({"n": 2});
    let again = b.store.create(other).await.unwrap();
    assert_eq!(again, Created::Exists { conflict: true });
    let id = InstanceId::new("b");
    assert_eq!(b.store.history(&id).await.unwrap(), history(3));
    assert_eq!(b.store.runnable(10).await.unwrap(), [root("a")]);
}

/// None of its effects are lost if the process dies right after its creation.
pub async fn effects_of_a_first_turn_stay_until_flushed(b: Backend) {
    let commands = ["1", "2", "3"].map(|number| Command::Publish(event(number, "t", &[])));
    let made = || {
        let mut new = ended_at_once("a", 3);
        turn(&mut new).commands.splice(0..0, commands.clone());
        new
    };
    let Created::WithTurn { outbox, wake } = b.store.create(made()).await.unwrap() else {
        panic!("its effects are not there")
    };
    assert_eq!(wake, []);
    let sent: Vec<Command> = outbox.iter().map(|entry| entry.command.clone()).collect();
    assert_eq!(sent, commands);
    let id = InstanceId::new("a");
    let found = b.store.instance(&id).await.unwrap().unwrap();
    assert_eq!(found.state.status, Status::Completed);
    assert_eq!(b.store.unflushed(10).await.unwrap(), outbox);
    let again = b.store.create(made()).await.unwrap();
    assert_eq!(again, Created::Exists { conflict: false });
    assert_eq!(b.store.unflushed(10).await.unwrap(), outbox);
    assert_eq!(b.store.remove(&id).await.unwrap(), Removed::Busy);
    b.store.flushed(&outbox[..1]).await.unwrap();
    assert_eq!(b.store.unflushed(10).await.unwrap(), outbox[1..]);
    b.store.flushed(&outbox).await.unwrap();
    assert!(b.store.unflushed(10).await.unwrap().is_empty());
    assert_eq!(b.store.remove(&id).await.unwrap(), Removed::Done);
}

/// Its timers, waits and history are those of a creation and a commit, and it continues like any other instance.
pub async fn a_first_turn_may_wait(b: Backend) {
    let mut new = new("a");
    new.root.timers = vec![timer(1, 50)];
    let mut scope = new.root.clone();
    scope.cursor = blocked(Work::Sleep);
    scope.timers.push(timer(2, 20));
    let commands = vec![
        Command::Arm(timer(2, 20)),
        Command::Subscribe(subscription(7, vec![filter("t", &[])])),
    ];
    take_turn(&mut new, scope, history(3), commands);
    let created = b.store.create(new).await.unwrap();
    let Created::WithTurn { outbox, wake } = created else {
        panic!("{created:?}")
    };
    assert!(outbox.is_empty() && wake.is_empty(), "{outbox:?} {wake:?}");
    let id = InstanceId::new("a");
    assert_eq!(b.store.history(&id).await.unwrap(), history(3));
    assert!(b.store.runnable(10).await.unwrap().is_empty());
    assert_eq!(b.store.scopes(&id).await.unwrap()[0].rev, 1);
    let due = b.store.due_timers(at(60), 10).await.unwrap();
    let due: Vec<u32> = due.iter().map(|due| due.timer.seq).collect();
    assert_eq!(due, [2, 1]);
    let ingested = b.ingest(&event("e", "t", &[]), &[]).await;
    assert_eq!(ingested.woken, [root("a")]);
    let held = b.hold(&root("a")).await;
    assert_eq!(held.inbox.len(), 1, "{:?}", held.inbox);
}

/// The creation of an instance that these events start, with a first turn that waits for events of these kinds.
async fn start(b: &Backend, id: &str, events: &[CloudEvent], kinds: &[&str]) -> Vec<ScopeRef> {
    let mut new = new(id);
    let starts = events.iter().zip(0..);
    let starts = starts.map(|(event, def)| StartEvent {
        def,
        event: event.clone(),
    });
    new.root.start_events.extend(starts);
    let mut scope = new.root.clone();
    scope.start_events.clear();
    scope.cursor = blocked(Work::Events);
    let slots = kinds.iter().map(|kind| by_order(kind)).collect();
    let waits = vec![Command::Subscribe(subscription(7, slots))];
    take_turn(&mut new, scope, history(1), waits);
    match b.store.create(new).await.unwrap() {
        Created::WithTurn { wake, .. } => wake,
        other => panic!("{other:?}"),
    }
}

fn by_order(kind: &str) -> EventMatch {
    filter(kind, &[("order", None)])
}

/// The instance begins with its event, so it gets an event that came after that and before its creation, which others
/// have had too.
pub async fn a_first_turn_gets_events_since_the_start(b: Backend) {
    let only = trigger(vec![by_order("t")], true);
    let first = event("1", "t", &[("order", "1")]);
    let listening = Listening::new(std::slice::from_ref(&only), &only.events);
    b.events.ingest(&first, listening, at(0)).await.unwrap();
    b.waiting("b", vec![by_order("u")]).await;
    let between = event("2", "u", &[("order", "1")]);
    b.ingest(&between, &[by_order("u")]).await;
    let woken = start(&b, "a", std::slice::from_ref(&first), &["u", "t"]).await;
    assert_eq!(woken, [root("a")]);
    assert_eq!(event_ids(&b.inbox(&root("a")).await), ["2"]);
    assert_eq!(event_ids(&b.inbox(&root("b")).await), ["2"]);
}

/// An event of a set that was kept until the other one came.
pub async fn a_first_turn_does_not_get_its_start_events_again(b: Backend) {
    let both = trigger(vec![by_order("t"), by_order("u")], false);
    let events = [
        event("1", "t", &[("order", "1")]),
        event("2", "u", &[("order", "1")]),
    ];
    let kept = [by_order("t"), by_order("u")];
    for (event, starts) in events.iter().zip([0, 1]) {
        let listening = Listening::new(std::slice::from_ref(&both), &kept);
        let ingested = b.events.ingest(event, listening, at(0)).await.unwrap();
        assert_eq!(ingested.starts.len(), starts);
        if starts == 0 {
            b.events.acknowledge(event, at(0)).await.unwrap();
        }
    }
    let woken = start(&b, "a", &events, &["t"]).await;
    b.events.acknowledge(&events[1], at(0)).await.unwrap();
    assert_eq!(woken, []);
    assert!(b.inbox(&root("a")).await.is_empty());
    let next = event("3", "t", &[("order", "1")]);
    let ingested = b.ingest(&next, &kept).await;
    assert_eq!(ingested.woken, [root("a")]);
}
