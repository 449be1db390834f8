//! Events and the waits for them.

use std::sync::Arc;

use swirl_model::event::{Command, EventMatch, Input, Slot, Subscription};
use swirl_model::ids::InstanceId;
use swirl_model::scope::{Cursor, Work};
use swirl_ports::matching::Listeners;
use swirl_ports::{KeptDropped, KeptGroup, Listening};

use crate::Backend;
use crate::kit::*;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

async fn got(b: &Backend, id: &str) -> Vec<String> {
    event_ids(&b.inbox(&root(id)).await)
}

pub async fn an_event_reaches_waiting_instances(b: Backend) {
    b.waiting("a", vec![filter("t", &[])]).await;
    b.waiting("b", vec![filter("other", &[])]).await;
    let mut by_source = filter("t", &[]);
    (by_source.kind, by_source.source) = (None, Some("/test".to_owned()));
    b.waiting("c", vec![by_source]).await;
    b.create(new("d")).await;
    let ingested = b.ingest(&event("1", "t", &[]), &[]).await;
    assert_eq!(ingested.woken, [root("a"), root("c")]);
    assert!(ingested.starts.is_empty() && !ingested.duplicate);
    let items = b.inbox(&root("a")).await;
    let Input::Event {
        wait: 1,
        slot: 0,
        event,
        ..
    } = &items[0].input
    else {
        panic!("not the event: {items:?}")
    };
    assert_eq!(event.id, "1");
    assert!(got(&b, "b").await.is_empty());
}

pub async fn a_slot_takes_one_event(b: Backend) {
    b.create(new("a")).await;
    let any = Slot {
        slot: 0,
        filters: vec![filter("x", &[]), filter("t", &[])],
    };
    let second = Slot {
        slot: 1,
        filters: vec![filter("t", &[])],
    };
    let subscribe = Command::Subscribe(Subscription {
        wait: 3,
        slots: vec![any, second],
    });
    b.act(&root("a"), change(vec![subscribe])).await;
    for id in ["1", "2", "3"] {
        b.ingest(&event(id, "t", &[]), &[]).await;
    }
    let items = b.inbox(&root("a")).await;
    assert_eq!(event_ids(&items), ["1", "2"]);
    assert!(matches!(items[1].input, Input::Event { slot: 1, .. }));
    let again = Command::Subscribe(subscription(4, vec![filter("t", &[])]));
    b.act(&root("a"), change(vec![again, Command::Unsubscribe(4)]))
        .await;
    assert!(b.ingest(&event("4", "t", &[]), &[]).await.woken.is_empty());
}

pub async fn correlation_is_learnt(b: Backend) {
    b.waiting(
        "a",
        vec![
            filter("t", &[("Order", None)]),
            filter("u", &[("order", None)]),
        ],
    )
    .await;
    b.create(new("b")).await;
    let known = Command::Correlate(vec![("order".into(), "2".to_owned())]);
    let filters = vec![filter("t", &[("order", None)])];
    b.act(
        &root("b"),
        change(vec![known, Command::Subscribe(subscription(1, filters))]),
    )
    .await;
    assert!(
        b.ingest(&event("0", "t", &[("other", "1")]), &[])
            .await
            .woken
            .is_empty()
    );
    assert_eq!(
        b.ingest(&event("1", "t", &[("order", "1")]), &[])
            .await
            .woken,
        [root("a")]
    );
    let learnt = b
        .store
        .instance(&InstanceId::new("a"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        learnt.state.correlation.get("order").map(String::as_str),
        Some("1")
    );
    assert!(
        b.ingest(&event("2", "u", &[("order", "2")]), &[])
            .await
            .woken
            .is_empty()
    );
    assert_eq!(
        b.ingest(&event("3", "u", &[("order", "1")]), &[])
            .await
            .woken,
        [root("a")]
    );
    assert_eq!(
        b.ingest(&event("4", "t", &[("order", "2")]), &[])
            .await
            .woken,
        [root("b")]
    );
    // A value in the definition takes precedence over the instance's value, which stays.
    let explicit = vec![filter("v", &[("order", Some("9"))])];
    b.act(
        &root("b"),
        change(vec![Command::Subscribe(subscription(2, explicit))]),
    )
    .await;
    assert_eq!(
        b.ingest(&event("5", "v", &[("order", "9")]), &[])
            .await
            .woken,
        [root("b")]
    );
    let learnt = b
        .store
        .instance(&InstanceId::new("b"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        learnt.state.correlation.get("order").map(String::as_str),
        Some("2")
    );
}

pub async fn early_events_are_kept(b: Backend) {
    let kept = [filter("t", &[("order", None)])];
    b.create(new("b")).await;
    b.create(new("c")).await;
    b.ingest(&event("1", "t", &[("order", "1")]), &kept).await;
    b.ingest(&event("2", "t", &[("order", "2")]), &kept).await;
    b.ingest(&event("3", "t", &[("order", "1")]), &kept).await;
    b.create(new("a")).await;
    // An instance that began later, and instances that existed already but waited later.
    for id in ["a", "b", "c"] {
        let known = Command::Correlate(vec![("order".into(), "1".to_owned())]);
        let wait = Command::Subscribe(subscription(1, kept.to_vec()));
        b.act(&root(id), change(vec![known, wait])).await;
        // In the order of arrival, and to each instance once.
        assert_eq!(got(&b, id).await, ["1"]);
        let wait = Command::Subscribe(subscription(2, vec![kept[0].clone(), kept[0].clone()]));
        b.act(&root(id), change(vec![wait])).await;
        assert_eq!(got(&b, id).await, ["1", "3"]);
    }
    assert_eq!(
        b.ingest(&event("4", "t", &[("order", "1")]), &kept)
            .await
            .woken,
        [root("a"), root("b"), root("c")]
    );
}

/// An event that an instance used is not kept for an instance that begins later.
pub async fn a_used_event_is_not_early(b: Backend) {
    let kept = [filter("t", &[("order", None)])];
    let begin = async |id: &str| {
        b.create(new(id)).await;
        let known = Command::Correlate(vec![("order".into(), "1".to_owned())]);
        let wait = Command::Subscribe(subscription(1, kept.to_vec()));
        b.act(&root(id), change(vec![known, wait])).await;
    };
    begin("a").await;
    b.ingest(&event("1", "t", &[("order", "1")]), &kept).await;
    b.ingest(&event("2", "t", &[("order", "1")]), &kept).await;
    assert_eq!(got(&b, "a").await, ["1"]);
    begin("b").await;
    assert_eq!(got(&b, "b").await, ["2"], "nobody had that one");
    begin("c").await;
    assert!(got(&b, "c").await.is_empty());
    // An event that the instance could not use becomes available again, and is kept.
    let items = b.inbox(&root("b")).await;
    let late = change(Vec::new()).consumed(&[&items[0].id]);
    let second = event("2", "t", &[("order", "1")]);
    b.act(&root("b"), late.refused(&second)).await;
    begin("d").await;
    assert_eq!(got(&b, "d").await, ["2"]);
}

pub async fn events_without_correlation_are_not_kept(b: Backend) {
    let correlated = filter("t", &[("order", None)]);
    b.ingest(&event("1", "t", &[]), std::slice::from_ref(&correlated))
        .await;
    b.ingest(
        &event("2", "u", &[("order", "1")]),
        std::slice::from_ref(&correlated),
    )
    .await;
    b.waiting(
        "a",
        vec![correlated.clone(), filter("u", &[("order", None)])],
    )
    .await;
    assert!(got(&b, "a").await.is_empty());
    // It is kept, but an instance without correlation gets only new events.
    b.ingest(&event("3", "t", &[("order", "1")]), &[correlated])
        .await;
    assert_eq!(got(&b, "a").await, ["3"]);
    b.waiting("b", vec![filter("t", &[])]).await;
    assert!(got(&b, "b").await.is_empty());
}

pub async fn an_early_event_goes_to_an_instance_without_values(b: Backend) {
    let kept = vec![filter("t", &[("order", None)])];
    b.create(new("c")).await;
    b.ingest(&event("1", "t", &[("order", "1")]), &kept).await;
    b.ingest(&event("2", "t", &[("order", "2")]), &kept).await;
    b.waiting("a", kept.clone()).await;
    b.waiting("b", kept.clone()).await;
    assert_eq!(got(&b, "a").await, ["1"]);
    assert_eq!(got(&b, "b").await, ["2"]);
    let wait = Command::Subscribe(subscription(1, kept));
    b.act(&root("c"), change(vec![wait])).await;
    assert!(got(&b, "c").await.is_empty());
    // An instance that existed, and has learnt the value since, gets events that others had.
    b.act(
        &root("c"),
        change(vec![Command::Correlate(vec![(
            "order".into(),
            "2".to_owned(),
        )])]),
    )
    .await;
    assert_eq!(got(&b, "c").await, ["2"]);
}

pub async fn an_addressed_event(b: Backend) {
    b.waiting("a", vec![filter("t", &[])]).await;
    b.waiting("b", vec![filter("t", &[]), filter("t", &[])])
        .await;
    let ingested = b
        .ingest(&event("1", "t", &[("swirlinstanceid", "b")]), &[])
        .await;
    assert_eq!(ingested.woken, [root("b")]);
    assert!(got(&b, "a").await.is_empty());
    assert!(
        b.ingest(&event("2", "t", &[("swirlinstanceid", "x")]), &[])
            .await
            .woken
            .is_empty()
    );
    let to_b = event("3", "t", &[("swirlinstanceid", "b")]);
    let only = trigger(vec![filter("t", &[])], true);
    let ingested = b
        .events
        .ingest(&to_b, Listening::new(&[only], &[]), at(0))
        .await
        .unwrap();
    assert!(ingested.starts.is_empty());
}

pub async fn an_event_is_known_once_confirmed(b: Backend) {
    b.waiting("a", vec![filter("t", &[]), filter("t", &[])])
        .await;
    let event = event("1", "t", &[]);
    assert_eq!(b.ingest(&event, &[]).await.woken, [root("a")]);
    assert!(
        !b.ingest(&event, &[]).await.duplicate,
        "nobody said that it was done"
    );
    b.events.acknowledge(&event, at(0)).await.unwrap();
    let again = b.ingest(&event, &[]).await;
    assert!(again.duplicate && again.woken.is_empty() && again.starts.is_empty());
    let mut other = event.clone();
    other.source = "/other".to_owned();
    assert!(!b.ingest(&other, &[]).await.duplicate);
    assert_eq!(got(&b, "a").await, ["1", "1"]);
    b.events.expire(at(DAY_MS)).await.unwrap();
    assert!(b.ingest(&event, &[]).await.duplicate);
    b.events.expire(at(DAY_MS + 1)).await.unwrap();
    assert!(!b.ingest(&event, &[]).await.duplicate);
}

pub async fn an_unconfirmed_event_has_the_same_outcome(b: Backend) {
    let filters = vec![filter("t", &[]), filter("t", &[])];
    b.waiting("a", filters).await;
    let both = [trigger(vec![filter("t", &[]), filter("u", &[])], false)];
    let ingest = async |event| {
        b.events
            .ingest(&event, Listening::new(&both, &[]), at(0))
            .await
            .unwrap()
    };
    let first = ingest(event("1", "t", &[])).await;
    assert_eq!(ingest(event("1", "t", &[])).await, first);
    let second = ingest(event("2", "u", &[])).await;
    assert_eq!(start_ids(&second), [["1", "2"]]);
    assert_eq!(ingest(event("2", "u", &[])).await, second);
    assert_eq!(
        got(&b, "a").await,
        ["1"],
        "and the other slot is still empty"
    );
}

pub async fn unused_events_become_available_again(b: Backend) {
    let kept = vec![filter("t", &[("order", None)])];
    b.waiting("a", kept.clone()).await;
    let first = event("1", "t", &[("order", "1")]);
    b.ingest(&first, &kept).await;
    let items = b.inbox(&root("a")).await;
    let wait = Command::Subscribe(subscription(2, kept.clone()));
    let used = change(vec![wait]).consumed(&[&items[0].id]);
    b.act(&root("a"), used).await;
    assert!(got(&b, "a").await.is_empty(), "it had the event");

    // Another event arrives too late for its wait. With the same commit it goes to the next wait.
    let next = event("2", "t", &[("order", "1")]);
    b.ingest(&next, &kept).await;
    let items = b.inbox(&root("a")).await;
    let wait = Command::Subscribe(subscription(3, kept.clone()));
    let late = change(vec![wait]).consumed(&[&items[0].id]).refused(&next);
    b.act(&root("a"), late).await;
    assert_eq!(got(&b, "a").await, ["2"]);
    // It was delivered to one instance, and is not delivered to any other.
    let wait = Command::Subscribe(subscription(4, kept));
    b.act(&root("a"), change(vec![wait])).await;
    assert_eq!(got(&b, "a").await, ["2"]);
}

/// A refused commit leaves the event where it was.
pub async fn a_refused_commit_returns_no_events(b: Backend) {
    let kept = vec![filter("t", &[("order", None)])];
    b.waiting("a", kept.clone()).await;
    let event = event("1", "t", &[("order", "1")]);
    b.ingest(&event, &kept).await;
    let mut lost = b.hold(&root("a")).await;
    b.release(&lost).await;
    let held = b.hold(&root("a")).await;
    let id = held.inbox[0].id.clone();
    let wait = Command::Subscribe(subscription(2, kept));
    let late = || {
        let late = change(vec![wait.clone()]).consumed(&[&id]);
        late.refused(&event)
    };
    assert!(b.try_commit(&mut lost, late()).await.is_none());
    b.release(&held).await;
    assert_eq!(b.inbox(&root("a")).await[0].id, id);
    b.act(&root("a"), late()).await;
    assert_eq!(got(&b, "a").await, ["1"]);
    assert_ne!(b.inbox(&root("a")).await[0].id, id);
}

pub async fn an_event_of_a_closed_branch_is_free(b: Backend) {
    let kept = vec![filter("t", &[("order", None)])];
    b.create(new("a")).await;
    b.act(
        &root("a"),
        change(vec![fork("r", 1, 1, 1, 1)]).at(forked(1, 1)),
    )
    .await;
    let branch = scope("a", "r.1.0");
    let wait = change(vec![Command::Subscribe(subscription(1, kept.clone()))]);
    b.act(&branch, wait.at(blocked(Work::Events))).await;
    b.ingest(&event("1", "t", &[("order", "1")]), &kept).await;
    b.act(&root("a"), change(vec![Command::CloseFork(1)])).await;
    b.act(
        &branch,
        change(vec![Command::Drop])
            .at(Cursor::Ended)
            .consumed(&["cancel"]),
    )
    .await;
    b.act(
        &root("a"),
        change(vec![Command::Subscribe(subscription(2, kept))]),
    )
    .await;
    assert_eq!(got(&b, "a").await, ["1"]);
}

pub async fn events_expire(b: Backend) {
    let kept = vec![filter("t", &[("order", None)])];
    b.ingest(&event("1", "t", &[("order", "1")]), &kept).await;
    b.events
        .ingest(
            &event("2", "t", &[("order", "1")]),
            Listening::new(&[], &kept),
            at(10),
        )
        .await
        .unwrap();
    b.events.expire(at(DAY_MS + 10)).await.unwrap();
    b.waiting("a", vec![kept[0].clone(), kept[0].clone()]).await;
    assert_eq!(got(&b, "a").await, ["2"]);
}

/// The definition lists the event, wherever a wait for it is.
pub async fn an_event_is_searched_where_definitions_wait(b: Backend) {
    let mut by_source = filter("", &[]);
    (by_source.kind, by_source.source) = (None, Some("/test".to_owned()));
    let mut by_pattern = filter("", &[("order", None)]);
    (by_pattern.kind, by_pattern.source) = (None, Some("/+".to_owned()));
    let definitions = [
        filter("t", &[]),
        filter("t", &[("order", None), ("part", None)]),
        filter("t", &[("place", Some("x"))]),
        by_source.clone(),
        by_pattern.clone(),
        filter("other", &[]),
    ];
    let kept: Vec<EventMatch> = definitions[1..].to_vec();
    b.waiting("kind", vec![filter("t", &[])]).await;
    // The value comes from an expression or from the instance, or is unknown yet.
    let explicit = filter("t", &[("order", None), ("part", Some("2"))]);
    b.waiting("explicit", vec![explicit]).await;
    b.create(new("known")).await;
    let known = Command::Correlate(vec![("order".into(), "1".to_owned())]);
    let wait = Command::Subscribe(subscription(1, vec![definitions[1].clone()]));
    b.act(&root("known"), change(vec![known, wait])).await;
    b.waiting("unknown", vec![definitions[1].clone()]).await;
    b.waiting("constant", vec![definitions[2].clone()]).await;
    b.waiting("source", vec![by_source]).await;
    b.waiting("pattern", vec![by_pattern]).await;
    b.waiting("other", vec![filter("other", &[])]).await;
    let listeners = Listeners::new(definitions.iter().cloned());
    for (id, kept) in [("1", &kept[..]), ("2", &[])] {
        let event = event(id, "t", &[("order", "1"), ("part", "2"), ("place", "x")]);
        let listening = Listening {
            listeners: Some(&listeners),
            ..Listening::new(&[], kept)
        };
        let ingested = b.events.ingest(&event, listening, at(0)).await.unwrap();
        let all = [
            "kind", "explicit", "known", "unknown", "constant", "source", "pattern",
        ];
        assert_eq!(ingested.woken, all.map(root), "event {id}");
        for id in all {
            let wait = Command::Subscribe(subscription(2, vec![filter("t", &[])]));
            b.act(&root(id), change(vec![wait])).await;
        }
    }
    assert!(got(&b, "other").await.is_empty());
}

/// Whether the sweep has been there or not.
pub async fn an_event_is_known_for_a_limited_time(b: Backend) {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    let event = event("1", "t", &[]);
    let ingest = async |ms| {
        let ingested = b.events.ingest(&event, Listening::new(&[], &[]), at(ms));
        let duplicate = ingested.await.unwrap().duplicate;
        b.events.acknowledge(&event, at(ms)).await.unwrap();
        duplicate
    };
    let at = [0, DAY / 2, 32 * DAY, 32 * DAY + 1];
    let mut duplicates = Vec::new();
    for ms in at {
        duplicates.push(ingest(ms).await);
    }
    assert_eq!(duplicates, [false, true, false, true]);
}

/// Whether an instance that begins now gets the kept event with this id.
async fn is_kept(b: &Backend, id: u32, kind: &str) -> bool {
    let name = format!("{kind}{id}");
    let order = id.to_string();
    b.waiting(&name, vec![filter(kind, &[("order", Some(&order))])])
        .await;
    got(b, &name).await == [order]
}

pub async fn kept_events_have_limited_sizes(b: Backend) {
    let kinds = ["t", "u", "v"];
    let consumed = kinds.map(|kind| filter(kind, &[("order", None)]));
    let owners = ["one", "one", "two"].map(Arc::from);
    let keep = async |ids: std::ops::Range<u32>, kind: &str| {
        for id in ids {
            let listening = Listening {
                owners: &owners,
                ..Listening::new(&[], &consumed)
            };
            let at = at(i64::from(id));
            let ingested = b.events.ingest(&large(id, kind), listening, at).await;
            ingested.unwrap();
        }
        b.events.expire(at(1_000)).await.unwrap()
    };
    let is_of = |dropped: Vec<KeptDropped>, group: Option<KeptGroup>| {
        let events: u64 = dropped.iter().map(|one| one.events).sum();
        assert!(dropped.iter().all(|one| one.group == group), "{dropped:?}");
        assert!(events <= 4, "{dropped:?}");
    };
    // Ten events of a type, of which six fit.
    is_of(keep(1..11, "t").await, Some(KeptGroup::Kind("t".into())));
    // Four of another type of the same workflow, for which eight fit.
    let workflow = Some(KeptGroup::Workflow("one".into()));
    is_of(keep(11..15, "u").await, workflow);
    // Five of another workflow. Twelve fit together.
    is_of(keep(15..20, "v").await, None);
    for (id, kind, kept) in [
        (1, "t", false),
        (4, "t", false),
        (6, "t", false),
        (10, "t", true),
        (11, "u", true),
        (14, "u", true),
        (15, "v", true),
        (19, "v", true),
    ] {
        assert_eq!(is_kept(&b, id, kind).await, kept, "{id}");
    }
    assert_eq!(b.events.expire(at(1_000)).await.unwrap(), []);
}

pub async fn kept_events_go_with_their_definition(b: Backend) {
    let consumed = ["t", "u", "u"].map(|kind| filter(kind, &[("order", None)]));
    let owners = ["one", "one", "two"].map(Arc::from);
    for (id, kind) in [(1, "t"), (2, "t"), (3, "u")] {
        let listening = Listening {
            owners: &owners,
            ..Listening::new(&[], &consumed)
        };
        let event = large(id, kind);
        b.events.ingest(&event, listening, at(0)).await.unwrap();
    }
    let forget = async |workflow, consumed| {
        let listening = Listening::new(&[], consumed);
        let forgotten = b.events.forget_unconsumed(workflow, listening).await;
        forgotten.unwrap()
    };
    assert_eq!(forget("other", &[]).await, 0);
    assert_eq!(forget("one", &consumed[2..]).await, 2);
    assert!(!is_kept(&b, 1, "t").await);
    assert!(is_kept(&b, 3, "u").await);
}
