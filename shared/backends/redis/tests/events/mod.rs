//! Events with several processes at once, and with processes that die halfway.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_model::event::{Command, EventMatch};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Cursor, StartEvent};
use swirl_model::{CloudEvent, Data};
use swirl_ports::{Definitions, Ingested, Listening, Trigger};
use swirl_redis::{Options, Redis};
use swirl_servers::RedisServer;

mod claims;
mod deaths;
mod noted;

/// A server with several handles, each of which acts as a separate process.
struct Rig {
    server: RedisServer,
}

impl Rig {
    fn new() -> Rig {
        Rig {
            server: RedisServer::start().unwrap(),
        }
    }

    async fn process(&self, namespace: &str) -> Redis {
        let options = Options {
            namespace: namespace.to_owned(),
            grace_ms: 0,
            repeat_ms: 0,
            ..Options::single(self.server.url())
        };
        Redis::connect(options).await.unwrap()
    }

    async fn backend(&self, namespace: &str) -> Backend {
        let store = Arc::new(self.process(namespace).await);
        Backend::of(store, ())
    }
}

fn by_order(kind: &str) -> EventMatch {
    filter(kind, &[("order", None)])
}

fn known(order: &str) -> Command {
    Command::Correlate(vec![("order".into(), order.to_owned())])
}

async fn got(b: &Backend, id: &str) -> Vec<String> {
    let mut ids = event_ids(&b.inbox(&root(id)).await);
    ids.sort();
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_event_reaches_each_instance_once() {
    let rig = Rig::new();
    for round in 0..12 {
        let namespace = format!("once{round}");
        let (one, two) = (rig.backend(&namespace).await, rig.backend(&namespace).await);
        let kept = [by_order("t")];
        let events: Vec<CloudEvent> = (0..12)
            .map(|n| event(&format!("{n:02}"), "t", &[("order", &format!("{}", n % 3))]))
            .collect();
        let publish = async |b: &Backend| {
            for event in &events {
                b.ingest(event, &kept).await;
                // Time has to pass: so that a different amount of the others' work comes in between in each round.
                tokio::time::sleep(Duration::from_micros(700 * (round % 4))).await;
            }
        };
        // Instances that exist when the events arrive.
        for n in 0..8 {
            one.create(new(&format!("i{n}"))).await;
        }
        let subscribe = async |b: &Backend, first: usize| {
            for n in (first..8).step_by(2) {
                let id = format!("i{n}");
                let slots = vec![by_order("t"); 6];
                let wait = Command::Subscribe(subscription(1, slots));
                let order = known(&(n % 3).to_string());
                // Values are known before the wait, together with it, or after it.
                match n % 4 {
                    0 => {
                        b.act(&root(&id), change(vec![order, wait])).await;
                    }
                    _ => {
                        b.act(&root(&id), change(vec![order])).await;
                        b.act(&root(&id), change(vec![wait])).await;
                    }
                }
            }
        };
        tokio::join!(
            publish(&one),
            publish(&two),
            subscribe(&one, 0),
            subscribe(&two, 1)
        );
        for n in 0..8 {
            let mine = events.iter().enumerate().filter(|(at, _)| at % 3 == n % 3);
            let mine: Vec<String> = mine.map(|(_, event)| event.id.clone()).collect();
            assert_eq!(
                got(&one, &format!("i{n}")).await,
                mine,
                "i{n}, round {round}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_without_correlation_reach_each_wait_once() {
    let rig = Rig::new();
    let (one, two) = (rig.backend("all").await, rig.backend("all").await);
    let count = 700;
    let ids: Vec<String> = (0..count).map(|n| format!("i{n}")).collect();
    for chunk in ids.chunks(50) {
        join_all(
            chunk
                .iter()
                .map(|id| one.waiting(id, vec![filter("t", &[]), filter("t", &[])])),
        )
        .await;
    }
    let first = event("1", "t", &[]);
    let (a, b) = tokio::join!(one.ingest(&first, &[]), two.ingest(&first, &[]));
    let woken: BTreeSet<_> = a.woken.iter().chain(&b.woken).collect();
    assert_eq!(woken.len(), count);
    one.ingest(&event("2", "t", &[]), &[]).await;
    for chunk in ids.chunks(50) {
        for found in join_all(chunk.iter().map(|id| got(&one, id))).await {
            assert_eq!(found, ["1", "2"]);
        }
    }
    let third = two.ingest(&event("3", "t", &[]), &[]).await;
    assert!(third.woken.is_empty(), "no slot is left");
}

/// A wait that begins again while an event arrives. The kept event arrived earlier, and is delivered first.
#[tokio::test]
async fn kept_events_come_before_new_ones() {
    let rig = Rig::new();
    let mut polls = 0;
    let mut reached = 0;
    loop {
        polls += 1;
        let namespace = format!("kept{polls}");
        let (one, two) = (rig.backend(&namespace).await, rig.backend(&namespace).await);
        let kept = [by_order("t")];
        one.create(new("a")).await;
        let mut held = one.hold(&root("a")).await;
        one.commit(&mut held, change(vec![known("1")])).await;
        two.ingest(&event("1", "t", &[("order", "1")]), &kept).await;
        let wait = Command::Subscribe(subscription(1, vec![by_order("t")]));
        let done = {
            let commit = one.try_commit(&mut held, change(vec![wait]));
            let mut commit = deaths::dying(polls, commit);
            let done = std::future::poll_fn(|context| Pin::new(&mut commit).poll(context)).await;
            // The process stops at this point, but hasn't died.
            two.ingest(&event("2", "t", &[("order", "1")]), &kept).await;
            done.is_some()
        };
        let (inbox, _) = one.store.drain(&held.lease).await.unwrap().unwrap();
        let got = event_ids(&inbox);
        if !got.is_empty() {
            reached += 1;
            assert_eq!(got, ["1"], "after {polls} polls");
        }
        if done {
            assert!(reached > 1, "it never stopped");
            return;
        }
    }
}

async fn ingest(b: &Backend, event: &CloudEvent, trigger: &Trigger) -> Ingested {
    let triggers = std::slice::from_ref(trigger);
    b.events
        .ingest(event, Listening::new(triggers, &trigger.events), at(0))
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_instance_starts_for_a_value() {
    let rig = Rig::new();
    let (one, two) = (rig.backend("start").await, rig.backend("start").await);
    let only = trigger(vec![by_order("t")], true);
    for round in 0..25 {
        let order = round.to_string();
        let event = |id: &str| event(&format!("{round}-{id}"), "t", &[("order", &order)]);
        let take = async |b: &Backend, id: &str| {
            let event = event(id);
            let ingested = ingest(b, &event, &only).await;
            for start in &ingested.starts {
                let mut new = new(&format!("i{round}-{id}"));
                new.root.start_events.push(StartEvent {
                    def: 0,
                    event: start.events[0].event.clone(),
                });
                b.create(new).await;
            }
            b.events.acknowledge(&event, at(0)).await.unwrap();
            ingested.starts.len()
        };
        let started = tokio::join!(take(&one, "a"), take(&two, "b"), take(&one, "c"));
        assert_eq!(started.0 + started.1 + started.2, 1, "round {round}");
        assert_eq!(take(&two, "d").await, 0);
        // All others are kept for the one instance.
        let id = ["a", "b", "c"][[started.0, started.1, started.2]
            .iter()
            .position(|count| *count == 1)
            .unwrap()];
        let id = format!("i{round}-{id}");
        let wait = Command::Subscribe(subscription(1, vec![by_order("t"); 4]));
        two.act(&root(&id), change(vec![wait])).await;
        assert_eq!(got(&two, &id).await.len(), 3, "round {round}");
        let end = Command::End {
            status: EndStatus::Completed,
            output: None,
            error: None,
        };
        two.act(&root(&id), change(vec![end]).at(Cursor::Ended))
            .await;
        assert_eq!(take(&one, "e").await, 1, "it has ended");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_are_filled_once() {
    let rig = Rig::new();
    let (one, two) = (rig.backend("sets").await, rig.backend("sets").await);
    let all = trigger(vec![filter("t", &[]), filter("u", &[])], false);
    let events: Vec<CloudEvent> = (0..40)
        .map(|n| event(&n.to_string(), if n % 2 == 0 { "t" } else { "u" }, &[]))
        .collect();
    let publish = async |b: &Backend, offset: usize| {
        let mut starts = BTreeMap::new();
        for at in 0..events.len() {
            let event = &events[(at + offset) % events.len()];
            let ingested = ingest(b, event, &all).await;
            for ids in start_ids(&ingested) {
                starts.insert(ids.join(" "), ());
            }
        }
        starts
    };
    let (a, b) = tokio::join!(publish(&one, 0), publish(&two, 13));
    let starts: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    assert_eq!(starts.len(), 20, "{starts:?}");
    let used: BTreeSet<&str> = starts.iter().flat_map(|ids| ids.split(' ')).collect();
    assert_eq!(used.len(), 40);
}

#[tokio::test]
async fn the_cost_of_an_event_is_independent_of_other_waits() {
    let rig = Rig::new();
    let b = rig.backend("cost").await;
    let calls = || -> u64 {
        let info = rig.server.cli(&["INFO", "stats"]).unwrap();
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix("total_commands_processed:"));
        line.unwrap().trim().parse().unwrap()
    };
    let kept = [by_order("t")];
    let mut costs = Vec::new();
    for (from, to) in [(0, 10), (10, 300)] {
        for n in from..to {
            let id = format!("i{n}");
            b.create(new(&id)).await;
            let wait = Command::Subscribe(subscription(1, kept.to_vec()));
            b.act(&root(&id), change(vec![known(&n.to_string()), wait]))
                .await;
        }
        let event = event(&format!("e{to}"), "t", &[("order", &from.to_string())]);
        let before = calls();
        let ingested = b.ingest(&event, &kept).await;
        assert_eq!(ingested.woken, [root(&format!("i{from}"))]);
        costs.push(calls() - before);
    }
    assert!(costs[1] < 150 && costs[1] <= costs[0] + 20, "{costs:?}");
}

/// Neither instances nor events leave anything behind.
#[tokio::test]
async fn nothing_remains_of_expired_events() {
    let rig = Rig::new();
    let b = rig.backend("gone").await;
    let kept = [by_order("t")];
    let only = trigger(vec![by_order("s")], true);
    let first = event("0", "s", &[("order", "1")]);
    assert_eq!(ingest(&b, &first, &only).await.starts.len(), 1);
    let mut started = new("a");
    started.root.start_events.push(StartEvent {
        def: 0,
        event: first.clone(),
    });
    b.create(started).await;
    b.events.acknowledge(&first, at(0)).await.unwrap();
    let wait =
        |number| Command::Subscribe(subscription(number, vec![by_order("t"), by_order("u")]));
    b.act(&root("a"), change(vec![wait(1), wait(2)])).await;
    for id in ["1", "2", "3"] {
        let event = event(id, "t", &[("order", "1")]);
        b.ingest(&event, &kept).await;
        b.events.acknowledge(&event, at(0)).await.unwrap();
    }
    b.waiting("b", vec![filter("t", &[])]).await;
    b.act(&root("b"), change(vec![Command::Unsubscribe(1)]))
        .await;
    let end = || Command::End {
        status: EndStatus::Completed,
        output: None,
        error: None,
    };
    for id in ["a", "b"] {
        b.act(&root(id), change(vec![end()]).at(Cursor::Ended))
            .await;
    }
    b.events.expire(at(30 * 24 * 60 * 60 * 1000)).await.unwrap();
    let keys = rig.server.cli(&["KEYS", "*"]).unwrap();
    let ttl = |key: &&str| rig.server.cli(&["TTL", key]).unwrap() == "-1";
    let stay: Vec<&str> = keys.lines().filter(ttl).collect();
    assert_eq!(stay, ["gone:meta"]);
}

#[tokio::test]
async fn every_process_sees_a_deployment() {
    let rig = Rig::new();
    let (one, two) = (rig.process("defs").await, rig.process("defs").await);
    let record = |workflow: &str| swirl_ports::DefinitionRecord {
        deleted: None,
        activated: None,
        interests: swirl_ports::Interests::default(),
        id: definition(workflow),
        digest: "d".to_owned(),
        name: "n".to_owned(),
        document: "x".repeat(1000),
        resources: Vec::new(),
        deployed_at: at(0),
    };
    let before = two.changes(0).await.unwrap();
    assert_eq!(before.heads, []);
    assert_eq!(one.put(record("a")).await.unwrap(), None);
    let after = two.changes(before.revision).await.unwrap();
    assert_eq!(after.heads, [record("a").head()]);
    assert_eq!(two.put(record("a")).await.unwrap(), Some(record("a")));
    assert_eq!(one.changes(after.revision).await.unwrap().heads, []);
    for n in 0..420 {
        one.put(record(&format!("w{n}"))).await.unwrap();
    }
    let all = two.changes(0).await.unwrap().heads;
    let names: Vec<&str> = all.iter().map(|head| &*head.id.workflow).collect();
    assert_eq!((names.len(), names[0], names[1]), (421, "a", "w0"));
    two.set_mark("m", at(7)).await.unwrap();
    assert_eq!(one.mark("m").await.unwrap(), Some(at(7)));
}

/// A slow process delivers an event that others have delivered and acknowledged meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_are_filled_once_while_others_acknowledge() {
    let rig = Rig::new();
    for round in 0..6 {
        let namespace = format!("slow{round}");
        let (one, two) = (rig.backend(&namespace).await, rig.backend(&namespace).await);
        let all = trigger(vec![filter("t", &[]), filter("u", &[])], false);
        let events: Vec<CloudEvent> = (0..30)
            .map(|n| event(&n.to_string(), if n % 2 == 0 { "t" } else { "u" }, &[]))
            .collect();
        let publish = async |b: &Backend, pause: u64| {
            let mut starts = BTreeSet::new();
            for event in &events {
                let ingested = ingest(b, event, &all).await;
                starts.extend(start_ids(&ingested).iter().map(|ids| ids.join(" ")));
                // Time has to pass: so that the others acknowledge meanwhile.
                tokio::time::sleep(Duration::from_micros(pause)).await;
                b.events.acknowledge(event, at(0)).await.unwrap();
            }
            starts
        };
        let (a, b) = tokio::join!(publish(&one, 0), publish(&two, 300));
        let starts: BTreeSet<&String> = a.union(&b).collect();
        let used: BTreeSet<&str> = starts.iter().flat_map(|ids| ids.split(' ')).collect();
        assert_eq!((starts.len(), used.len()), (15, 30), "{starts:?}");
    }
}

/// Each change of a record with sets reads and writes all of it.
#[tokio::test(flavor = "multi_thread")]
async fn changes_of_large_sets_do_not_repeat_each_others_work() {
    const COUNT: usize = 16;
    const LARGE: usize = 300_000;
    let rig = Rig::new();
    let b = rig.backend("sets").await;
    let sent = || -> usize {
        let info = rig.server.cli(&["INFO", "stats"]).unwrap();
        let mut lines = info.lines();
        let sent = lines.find_map(|line| line.strip_prefix("total_net_output_bytes:"));
        sent.unwrap().trim().parse().unwrap()
    };
    let triggers = [trigger(vec![by_order("t"), by_order("u")], false)];
    let large = |number: usize| CloudEvent {
        data: Some(Data::string("x".repeat(LARGE))),
        ..event(&number.to_string(), "t", &[("order", "1")])
    };
    let events: Vec<CloudEvent> = (0..COUNT).map(large).collect();
    let before = sent();
    let ingested = join_all(events.iter().map(|event| b.ingest(event, &[]))).await;
    assert!(ingested.iter().all(|one| one.starts.is_empty()));
    let idle = sent() - before;
    let listening = || Listening::new(&triggers, &[]);
    let before = sent();
    let collected = join_all(events.iter().map(|event| {
        let event = CloudEvent {
            id: format!("c{}", event.id),
            ..event.clone()
        };
        let b = &b;
        async move { b.events.ingest(&event, listening(), at(0)).await.unwrap() }
    }))
    .await;
    assert!(collected.iter().all(|one| one.starts.is_empty()));
    let cost = sent() - before - idle;
    // Each finds those before it.
    let needed = COUNT * (COUNT - 1) / 2 * LARGE;
    assert!(
        cost < needed * 3 / 2,
        "{cost} bytes, of which {needed} are needed"
    );
    let last = event("u", "u", &[("order", "1")]);
    let ingested = b.events.ingest(&last, listening(), at(1)).await.unwrap();
    assert_eq!(ingested.starts.len(), 1);
}
