//! Events that start instances.

use swirl_model::CloudEvent;
use swirl_model::event::{Command, EventMatch, Input};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Cursor, StartEvent};
use swirl_model::workflow::Wait;
use swirl_ports::{Ingested, ListEnds, Listening, Trigger};

use crate::Backend;
use crate::kit::*;

fn by_order(kind: &str) -> EventMatch {
    filter(kind, &[("order", None)])
}

async fn ingest(b: &Backend, event: &CloudEvent, trigger: &Trigger, now: i64) -> Ingested {
    let triggers = std::slice::from_ref(trigger);
    b.events
        .ingest(event, Listening::new(triggers, &trigger.events), at(now))
        .await
        .unwrap()
}

async fn create(b: &Backend, id: &str, event: &CloudEvent) {
    let mut new = new(id);
    new.root.start_events.push(StartEvent {
        def: 0,
        event: event.clone(),
    });
    b.create(new).await;
}

pub async fn each_event_starts_one(b: Backend) {
    let any = trigger(vec![filter("t", &[]), filter("u", &[])], true);
    for (id, kind) in [("1", "t"), ("2", "t"), ("3", "u")] {
        let ingested = ingest(&b, &event(id, kind, &[]), &any, 0).await;
        assert_eq!(start_ids(&ingested), [[id]]);
        assert_eq!(ingested.starts[0].events[0].def, u32::from(kind == "u"));
    }
    assert!(
        ingest(&b, &event("4", "x", &[]), &any, 0)
            .await
            .starts
            .is_empty()
    );
    let mut other = trigger(vec![by_order("t")], true);
    other.definition = definition("other");
    let triggers = [any, other];
    let ingested = b
        .events
        .ingest(
            &event("5", "t", &[("order", "1")]),
            Listening::new(&triggers, &[]),
            at(0),
        )
        .await;
    let starts: Vec<usize> = ingested
        .unwrap()
        .starts
        .iter()
        .map(|start| start.trigger)
        .collect();
    assert_eq!(starts, [0, 1]);
    let constant = trigger(vec![filter("t", &[("order", Some("7"))])], true);
    assert!(
        ingest(&b, &event("6", "t", &[("order", "8")]), &constant, 0)
            .await
            .starts
            .is_empty()
    );
    assert!(
        ingest(&b, &event("7", "t", &[("other", "7")]), &constant, 0)
            .await
            .starts
            .is_empty()
    );
    assert_eq!(
        ingest(&b, &event("8", "t", &[("order", "7")]), &constant, 0)
            .await
            .starts
            .len(),
        1
    );
}

pub async fn a_correlated_event_continues(b: Backend) {
    let only = trigger(vec![by_order("t")], true);
    let first = event("1", "t", &[("order", "1")]);
    assert_eq!(start_ids(&ingest(&b, &first, &only, 0).await), [["1"]]);
    create(&b, "a", &first).await;
    b.events.acknowledge(&first, at(0)).await.unwrap();
    // It has committed nothing yet, but its value is known from the event that started it.
    let second = event("2", "t", &[("order", "1")]);
    assert!(ingest(&b, &second, &only, 0).await.starts.is_empty());
    assert_eq!(
        start_ids(&ingest(&b, &event("3", "t", &[("order", "2")]), &only, 0).await),
        [["3"]]
    );
    let wait = Command::Subscribe(subscription(1, vec![by_order("t")]));
    b.act(&root("a"), change(vec![wait])).await;
    assert_eq!(
        event_ids(&b.inbox(&root("a")).await),
        ["2"],
        "it was kept for the instance"
    );
    let end = Command::End {
        status: EndStatus::Completed,
        output: None,
        error: None,
    };
    b.act(&root("a"), change(vec![end]).at(Cursor::Ended)).await;
    assert_eq!(
        start_ids(&ingest(&b, &event("4", "t", &[("order", "1")]), &only, 0).await),
        [["4"]]
    );
}

pub async fn an_event_during_a_start(b: Backend) {
    let only = trigger(vec![by_order("t")], true);
    let first = event("1", "t", &[("order", "1")]);
    assert_eq!(ingest(&b, &first, &only, 0).await.starts.len(), 1);
    assert!(
        ingest(&b, &event("2", "t", &[("order", "1")]), &only, 0)
            .await
            .starts
            .is_empty()
    );
    // It had no effect, so the next one may start an instance.
    b.events.acknowledge(&first, at(0)).await.unwrap();
    assert_eq!(
        ingest(&b, &event("3", "t", &[("order", "1")]), &only, 0)
            .await
            .starts
            .len(),
        1
    );
}

pub async fn a_start_counts_as_consumed(b: Backend) {
    let only = trigger(vec![by_order("t")], true);
    let first = event("1", "t", &[("order", "1")]);
    ingest(&b, &first, &only, 0).await;
    create(&b, "a", &first).await;
    b.events.acknowledge(&first, at(0)).await.unwrap();
    let wait = Command::Subscribe(subscription(1, vec![by_order("t")]));
    b.act(&root("a"), change(vec![wait])).await;
    assert!(b.inbox(&root("a")).await.is_empty());
    b.waiting("b", vec![by_order("t")]).await;
    assert!(b.inbox(&root("b")).await.is_empty(), "another had it");
}

/// An instance begins when its event arrives, whatever the time of its creation.
pub async fn a_starting_instance_counts_as_existing(b: Backend) {
    let only = trigger(vec![by_order("t")], true);
    let first = event("1", "t", &[("order", "1")]);
    ingest(&b, &first, &only, 0).await;
    b.waiting("b", vec![by_order("u")]).await;
    let between = event("2", "u", &[("order", "1")]);
    b.ingest(&between, &[by_order("u")]).await;
    create(&b, "a", &first).await;
    b.waiting("c", vec![by_order("u")]).await;
    let wait = Command::Subscribe(subscription(1, vec![by_order("u"), by_order("t")]));
    b.act(&root("a"), change(vec![wait])).await;
    let got = async |id| event_ids(&b.inbox(&root(id)).await);
    assert_eq!(got("a").await, ["2"]);
    assert_eq!(got("b").await, ["2"]);
    assert!(got("c").await.is_empty());
}

/// An event that started an instance isn't kept for instances that begin later.
pub async fn a_starting_event_is_not_early(b: Backend) {
    let only = trigger(vec![by_order("t")], true);
    for (id, instance) in [("1", "a"), ("2", "b")] {
        let event = event(id, "t", &[("order", "1")]);
        assert_eq!(ingest(&b, &event, &only, 0).await.starts.len(), 1);
        create(&b, instance, &event).await;
        b.events.acknowledge(&event, at(0)).await.unwrap();
        let wait = Command::Subscribe(subscription(1, vec![by_order("t")]));
        b.act(&root(instance), change(vec![wait])).await;
        assert!(b.inbox(&root(instance)).await.is_empty(), "{instance}");
        let end = Command::End {
            status: EndStatus::Completed,
            output: None,
            error: None,
        };
        b.act(&root(instance), change(vec![end]).at(Cursor::Ended))
            .await;
    }
}

pub async fn a_set_of_events_starts_one(b: Backend) {
    let all = trigger(vec![filter("t", &[]), filter("u", &[])], false);
    let give = async |id: &str, kind| {
        let ingested = ingest(&b, &event(id, kind, &[]), &all, 0).await;
        start_ids(&ingested).concat().join(" ")
    };
    // Further events for one definition wait for the next set.
    assert_eq!(give("1", "u").await, "");
    assert_eq!(give("2", "u").await, "");
    assert_eq!(give("3", "t").await, "3 1");
    assert_eq!(give("4", "t").await, "4 2");
    assert_eq!(give("5", "t").await, "");
}

/// Events for the first `listed` of these are collected. `ends`: those of the others that end the list.
fn collecting(events: Vec<EventMatch>, listed: u16, ends: Wait) -> Trigger {
    let apart = |event| EventMatch {
        apart: true,
        ..event
    };
    Trigger {
        wait: ends,
        listed: Some(listed),
        ..trigger(events.into_iter().map(apart).collect(), false)
    }
}

async fn collect(b: &Backend, event: &CloudEvent, trigger: &Trigger, count: usize) -> Ingested {
    let triggers = std::slice::from_ref(trigger);
    let listening = Listening {
        list_ends: ListEnds(&|_, events| events.len() == count),
        ..Listening::new(triggers, &[])
    };
    let ingested = b.events.ingest(event, listening, at(0)).await.unwrap();
    // As often as it likes.
    let again = b.events.ingest(event, listening, at(0)).await.unwrap();
    assert_eq!(again.starts, ingested.starts);
    b.events.acknowledge(event, at(0)).await.unwrap();
    ingested
}

/// The condition over the list says when it is over.
pub async fn a_list_of_events_starts_one(b: Backend) {
    let any = collecting(vec![filter("t", &[]), filter("u", &[])], 2, Wait::any(0));
    let give = async |id: &str, kind| {
        let ingested = collect(&b, &event(id, kind, &[]), &any, 3).await;
        start_ids(&ingested).concat().join(" ")
    };
    assert_eq!(give("1", "u").await, "");
    assert_eq!(give("2", "x").await, "");
    assert_eq!(give("3", "t").await, "");
    assert_eq!(give("4", "t").await, "1 3 4");
    assert_eq!(give("5", "u").await, "");
    let ingested = collect(&b, &event("6", "u", &[]), &any, 2).await;
    assert_eq!(start_ids(&ingested), [["5", "6"]]);
    let defs = ingested.starts[0].events.iter().map(|start| start.def);
    assert_eq!(Vec::from_iter(defs), [1, 1]);
}

/// Those aren't in the list. Without a list they do nothing.
pub async fn events_end_a_list(b: Backend) {
    let both = Wait::All(vec![Wait::Event(1), Wait::Event(2)]);
    let until = collecting(
        ["t", "u", "v"].map(|kind| filter(kind, &[])).into(),
        1,
        both,
    );
    let give = async |id: &str, kind| {
        let ingested = collect(&b, &event(id, kind, &[]), &until, 0).await;
        start_ids(&ingested).concat().join(" ")
    };
    for (id, kind) in [("1", "u"), ("2", "v"), ("3", "t"), ("4", "u"), ("5", "u")] {
        assert_eq!(give(id, kind).await, "", "{id}");
    }
    assert_eq!(give("6", "t").await, "");
    assert_eq!(give("7", "v").await, "3 6");
    assert_eq!(give("8", "v").await, "");
    assert_eq!(give("9", "t").await, "");
    assert_eq!(give("10", "v").await, "", "the other one is missing");
}

/// Each event is in one list, and each list has as many as it should.
pub async fn lists_of_concurrent_events(b: Backend) {
    let any = collecting(vec![filter("t", &[])], 1, Wait::any(0));
    let events: Vec<_> = (0..12).map(|id| event(&id.to_string(), "t", &[])).collect();
    let all = events.iter().map(|event| collect(&b, event, &any, 4));
    let mut lists: Vec<Vec<String>> = Vec::new();
    for ingested in futures::future::join_all(all).await {
        let ids = start_ids(&ingested).into_iter();
        lists.extend(ids.map(|ids| ids.into_iter().map(str::to_owned).collect()));
    }
    assert_eq!(lists.len(), 3);
    assert!(lists.iter().all(|list| list.len() == 4), "{lists:?}");
    let mut ids: Vec<u32> = lists
        .concat()
        .iter()
        .map(|id| id.parse().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, Vec::from_iter(0..12));
}

/// What a newer definition still collects stays in the list.
pub async fn a_list_follows_a_newer_definition(b: Backend) {
    let old = collecting(vec![filter("t", &[]), filter("u", &[])], 2, Wait::any(0));
    let mut new = collecting(vec![filter("u", &[]), filter("v", &[])], 2, Wait::any(0));
    new.definition.version = "2".into();
    for (id, kind) in [("1", "t"), ("2", "u")] {
        let ingested = collect(&b, &event(id, kind, &[]), &old, 3).await;
        assert!(ingested.starts.is_empty());
    }
    let ingested = collect(&b, &event("3", "v", &[]), &new, 2).await;
    assert_eq!(start_ids(&ingested), [["2", "3"]]);
    let defs = ingested.starts[0].events.iter().map(|start| start.def);
    assert_eq!(Vec::from_iter(defs), [0, 1]);
}

pub async fn sets_keep_correlations_apart(b: Backend) {
    let all = trigger(vec![by_order("t"), by_order("u")], false);
    let give = async |id: &str, kind, order| {
        let ingested = ingest(&b, &event(id, kind, &[("order", order)]), &all, 0).await;
        start_ids(&ingested).concat().join(" ")
    };
    assert_eq!(give("1", "t", "1").await, "");
    assert_eq!(give("2", "u", "2").await, "");
    assert_eq!(give("3", "u", "1").await, "1 3");
    assert_eq!(give("4", "t", "2").await, "4 2");
    assert_eq!(give("5", "t", "2").await, "", "that one is being started");
    assert_eq!(give("6", "u", "2").await, "");
}

/// Events whose definitions have different rules are combined by their common attributes.
pub async fn sets_of_unlike_rules(b: Backend) {
    let give = async |id: &str, kind: &str, attributes: &[(&str, &str)], trigger: &Trigger| {
        let ingested = ingest(&b, &event(id, kind, attributes), trigger, 0).await;
        start_ids(&ingested).concat().join(" ")
    };
    let both = [("order", None), ("line", None)];
    let more = trigger(vec![filter("t", &both), by_order("u")], false);
    assert_eq!(
        give("1", "t", &[("order", "1"), ("line", "1")], &more).await,
        ""
    );
    assert_eq!(
        give("2", "t", &[("order", "2"), ("line", "1")], &more).await,
        ""
    );
    assert_eq!(give("3", "u", &[("order", "2")], &more).await, "2 3");
    assert_eq!(
        give("4", "u", &[("order", "1"), ("line", "2")], &more).await,
        "1 4"
    );

    let mut chain = trigger(
        vec![
            filter("v", &both),
            filter("w", &[("line", None)]),
            by_order("x"),
        ],
        false,
    );
    chain.definition = definition("chain");
    assert_eq!(
        give("5", "v", &[("order", "5"), ("line", "7")], &chain).await,
        ""
    );
    assert_eq!(
        give("6", "w", &[("line", "8")], &chain).await,
        "",
        "another line"
    );
    assert_eq!(give("7", "x", &[("order", "5")], &chain).await, "");
    assert_eq!(give("8", "w", &[("line", "7")], &chain).await, "5 8 7");

    // An event that fits into several sets goes to the one that it completes.
    let three = vec![by_order("a"), by_order("b"), filter("c", &[])];
    let mut three = trigger(three, false);
    three.definition = definition("three");
    assert_eq!(give("11", "a", &[("order", "1")], &three).await, "");
    assert_eq!(give("12", "a", &[("order", "2")], &three).await, "");
    assert_eq!(give("13", "b", &[("order", "2")], &three).await, "");
    assert_eq!(give("14", "c", &[], &three).await, "12 13 14");
    // One that is in an incomplete set goes to another set that it completes.
    assert_eq!(give("15", "c", &[], &three).await, "");
    assert_eq!(give("16", "a", &[("order", "3")], &three).await, "");
    assert_eq!(give("17", "b", &[("order", "3")], &three).await, "16 17 15");
    assert_eq!(give("18", "b", &[("order", "1")], &three).await, "");
    assert_eq!(give("19", "c", &[], &three).await, "11 18 19");

    chain.definition = definition("other chain");
    assert_eq!(give("20", "w", &[("line", "8")], &chain).await, "");
    assert_eq!(give("21", "x", &[("order", "5")], &chain).await, "");
    assert_eq!(
        give("22", "v", &[("order", "5"), ("line", "7")], &chain).await,
        ""
    );
    assert_eq!(give("23", "w", &[("line", "7")], &chain).await, "22 23 21");
    assert_eq!(
        give("24", "v", &[("order", "6"), ("line", "8")], &chain).await,
        ""
    );
    assert_eq!(give("25", "x", &[("order", "6")], &chain).await, "24 20 25");

    let mut one = trigger(vec![by_order("y"), filter("z", &[])], false);
    one.definition = definition("one");
    assert_eq!(give("9", "z", &[], &one).await, "");
    assert_eq!(give("10", "y", &[("order", "1")], &one).await, "10 9");
}

/// A rule with a constant is only a filter: it doesn't determine the instance of an event.
pub async fn a_constant_binds_nothing(b: Backend) {
    let constant = |kind, value| filter(kind, &[("unit", Some(value))]);
    let only = trigger(vec![constant("t", "a")], true);
    let first = event("1", "t", &[("unit", "a")]);
    assert_eq!(start_ids(&ingest(&b, &first, &only, 0).await), [["1"]]);
    create(&b, "a", &first).await;
    b.events.acknowledge(&first, at(0)).await.unwrap();
    let second = event("2", "t", &[("unit", "a")]);
    assert_eq!(start_ids(&ingest(&b, &second, &only, 0).await), [["2"]]);

    let mut pair = trigger(vec![constant("u", "a"), constant("v", "b")], false);
    pair.definition = definition("pair");
    let unit = |id, kind, unit| event(id, kind, &[("unit", unit)]);
    assert!(
        ingest(&b, &unit("3", "u", "a"), &pair, 0)
            .await
            .starts
            .is_empty()
    );
    assert!(
        ingest(&b, &unit("4", "v", "a"), &pair, 0)
            .await
            .starts
            .is_empty()
    );
    let ingested = ingest(&b, &unit("5", "v", "b"), &pair, 0).await;
    assert_eq!(start_ids(&ingested), [["3", "5"]]);
}

/// A faulted instance accepts no starts until it is retried.
pub async fn a_faulted_instance_is_over(b: Backend) {
    let only = trigger(vec![by_order("t")], true);
    let order = |id: &str| event(id, "t", &[("order", "1")]);
    let first = order("1");
    ingest(&b, &first, &only, 0).await;
    create(&b, "a", &first).await;
    b.events.acknowledge(&first, at(0)).await.unwrap();
    let fails = Command::End {
        status: EndStatus::Faulted,
        output: None,
        error: Some(fault()),
    };
    b.act(&root("a"), change(vec![fails])).await;
    let second = order("2");
    assert_eq!(start_ids(&ingest(&b, &second, &only, 0).await), [["2"]]);
    b.events.acknowledge(&second, at(0)).await.unwrap();
    b.add(&root("a"), Input::Retry).await;
    let reopen = change(vec![Command::Reopen]).consumed(&["retry"]);
    b.act(&root("a"), reopen).await;
    assert!(ingest(&b, &order("3"), &only, 0).await.starts.is_empty());
}

pub async fn a_set_is_dropped_when_late(b: Backend) {
    let mut all = trigger(
        vec![filter("t", &[]), filter("u", &[]), filter("v", &[])],
        false,
    );
    all.timeout_ms = Some(10);
    let give = async |id: &str, kind, now, trigger: &Trigger| {
        let ingested = ingest(&b, &event(id, kind, &[]), trigger, now).await;
        start_ids(&ingested).concat().join(" ")
    };
    assert_eq!(give("1", "t", 0, &all).await, "");
    assert_eq!(give("2", "u", 5, &all).await, "");
    assert_eq!(give("3", "v", 10, &all).await, "1 2 3", "just in time");
    assert_eq!(give("4", "t", 20, &all).await, "");
    assert_eq!(give("5", "u", 25, &all).await, "");
    assert_eq!(give("6", "v", 31, &all).await, "", "too late: a new set");
    assert_eq!(give("7", "t", 32, &all).await, "");
    assert_eq!(give("8", "u", 33, &all).await, "7 8 6");
    all.timeout_restarts = true;
    assert_eq!(give("9", "t", 40, &all).await, "");
    assert_eq!(give("10", "u", 50, &all).await, "");
    assert_eq!(give("11", "v", 60, &all).await, "9 10 11");
}

/// `(t and u) or (v and not t)`
pub async fn an_expression_decides_when_a_set_is_complete(b: Backend) {
    let kinds = vec![filter("t", &[]), filter("u", &[]), filter("v", &[])];
    let mut some = trigger(kinds, false);
    let (t, u, v) = (Wait::Event(0), Wait::Event(1), Wait::Event(2));
    let without = Wait::All(vec![v, Wait::Not(Box::new(t.clone()))]);
    some.wait = Wait::Any(vec![Wait::All(vec![t, u]), without]);
    let give = async |id: &str, kind| {
        let ingested = ingest(&b, &event(id, kind, &[]), &some, 0).await;
        start_ids(&ingested).concat().join(" ")
    };
    assert_eq!(give("1", "v").await, "1", "one is enough");
    assert_eq!(give("2", "t").await, "");
    assert_eq!(give("3", "v").await, "", "not together with the other");
    assert_eq!(
        give("4", "u").await,
        "2 4 3",
        "all that is there goes along"
    );
    assert_eq!(give("5", "u").await, "");
    assert_eq!(give("6", "t").await, "6 5");
}

/// After a crash, the event is offered again. Meanwhile another version was deployed that combines it with other
/// events, and another workflow that it would start.
pub async fn a_start_by_one_event_is_not_changed(b: Backend) {
    let one = trigger(vec![filter("t", &[])], true);
    let mut both = trigger(vec![filter("t", &[]), filter("u", &[])], false);
    both.definition.version = "2.0.0".into();
    let mut later = trigger(vec![filter("t", &[])], true);
    later.definition = definition("later");
    let first = event("1", "t", &[]);
    let ingested = ingest(&b, &first, &one, 0).await;
    assert_eq!(start_ids(&ingested), [["1"]]);
    let now = [later, both];
    let offer = async |event: &CloudEvent| {
        let listening = Listening::new(&now, &[]);
        b.events.ingest(event, listening, at(0)).await.unwrap()
    };
    for _ in 0..2 {
        let again = offer(&first).await;
        assert!(!again.duplicate);
        assert_eq!(start_ids(&again), [["1"]]);
        // The newer version takes over the start.
        assert_eq!(again.starts[0].trigger, 1);
    }
    b.events.acknowledge(&first, at(0)).await.unwrap();
    assert!(offer(&first).await.duplicate);
    // The event isn't part of a set as well.
    let second = offer(&event("2", "u", &[])).await;
    assert!(second.starts.is_empty(), "{second:?}");
    let third = offer(&event("3", "t", &[])).await;
    assert_eq!(start_ids(&third), [vec!["3"], vec!["3", "2"]]);
}

/// It waits for more such events when the event that started it is offered again.
pub async fn an_instance_does_not_get_its_starting_event_again(b: Backend) {
    let one = trigger(vec![filter("t", &[])], true);
    let first = event("1", "t", &[]);
    assert_eq!(start_ids(&ingest(&b, &first, &one, 0).await), [["1"]]);
    create(&b, "a", &first).await;
    let wait = Command::Subscribe(subscription(1, vec![filter("t", &[])]));
    b.act(&root("a"), change(vec![wait])).await;
    assert_eq!(start_ids(&ingest(&b, &first, &one, 0).await), [["1"]]);
    assert!(b.inbox(&root("a")).await.is_empty());
    b.events.acknowledge(&first, at(0)).await.unwrap();
    ingest(&b, &event("2", "t", &[]), &one, 0).await;
    assert_eq!(event_ids(&b.inbox(&root("a")).await), ["2"]);
}
