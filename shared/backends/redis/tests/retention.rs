//! Ended instances are removed, most of them many at a time.

use std::sync::Arc;

use swirl_contract::Backend;
use swirl_contract::first_turn::{ended_as, ended_at_once, turn};
use swirl_contract::kit::*;
use swirl_model::attribute::Attribute;
use swirl_model::event::Command;
use swirl_model::instance::{EndStatus, Retention};
use swirl_model::scope::Cursor;
use swirl_ports::{Filter, InstanceKey, KeyHolder, Removed};
use swirl_redis::{Options, Redis};
use swirl_servers::RedisServer;

const STATUSES: [EndStatus; 4] = [
    EndStatus::Completed,
    EndStatus::Cancelled,
    EndStatus::Terminated,
    EndStatus::Faulted,
];

async fn connect(server: &RedisServer) -> (Redis, Backend) {
    let options = Options {
        shards: 1,
        keep_ended_ms: 1_000,
        keep_faulted_ms: 1_000,
        grace_ms: 0,
        ..Options::single(server.url())
    };
    let store = Redis::connect(options).await.unwrap();
    let shared = Arc::new(store.clone());
    let backend = Backend::of(shared, ());
    (store, backend)
}

/// The ids of all instances, in order.
async fn ids(b: &Backend) -> Vec<String> {
    let all = Filter {
        limit: 1_000,
        ..Filter::default()
    };
    let found = b.store.list(&all).await.unwrap();
    let mut ids: Vec<_> = found.iter().map(|it| it.header.id.to_string()).collect();
    ids.sort();
    ids
}

/// The number of functions that were called.
fn calls(server: &RedisServer) -> u64 {
    let stats = server.cli(&["INFO", "commandstats"]).unwrap();
    let line = stats
        .lines()
        .find_map(|line| line.strip_prefix("cmdstat_fcall:calls="));
    let count = line.and_then(|line| line.split(',').next());
    count.map_or(0, |count| count.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_instances_are_removed_together() {
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    // From now on the server knows the function.
    b.create(ended_at_once("first", 1)).await;
    store.expire_instances(at(1_008)).await.unwrap();
    // Some end with their creation, others later.
    for number in 0..120_u32 {
        let id = format!("i{number}");
        let status = STATUSES[number as usize % STATUSES.len()];
        let key = (number % 3 == 0).then(|| format!("key-{number}"));
        if number % 2 == 0 && status != EndStatus::Faulted {
            let mut new = ended_as(&id, 5, status);
            new.header.key = key;
            if number % 4 == 0 {
                let turn = turn(&mut new);
                turn.scope.attributes = [("n".into(), Attribute::Number(f64::from(number)))].into();
                turn.commands.insert(0, Command::Index);
            }
            b.create(new).await;
        } else {
            let mut new = new(&id);
            new.header.key = key;
            b.create(new).await;
            let end = Command::End {
                status,
                output: None,
                error: None,
            };
            let to = match status {
                EndStatus::Faulted => Cursor::Idle,
                _ => Cursor::Ended,
            };
            b.act(&root(&id), change(vec![end]).at(to)).await;
        }
    }
    let all = Filter {
        limit: 1_000,
        ..Filter::default()
    };
    assert_eq!(b.store.list(&all).await.unwrap().len(), 120);
    let before = calls(&server);
    store.expire_instances(at(1_000)).await.unwrap();
    assert_eq!(b.store.list(&all).await.unwrap().len(), 120, "too early");
    assert_eq!(calls(&server), before, "there is nothing to be done");
    store.expire_instances(at(1_008)).await.unwrap();
    assert!(b.store.list(&all).await.unwrap().is_empty());
    assert_eq!(calls(&server) - before, 3, "fifty at a time");
    assert_eq!(crate::kept(&server), ["swirl:meta"]);
}

/// An instance with leftovers is examined separately, and stays if it must.
#[tokio::test(flavor = "multi_thread")]
async fn instances_that_are_not_over_stay() {
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    let ended = ended_at_once("ended", 1);
    b.create(ended).await;
    b.create(new("busy")).await;
    let outcome = b
        .act(
            &root("busy"),
            change(vec![
                Command::Publish(event("1", "t", &[])),
                Command::End {
                    status: EndStatus::Completed,
                    output: None,
                    error: None,
                },
            ])
            .at(Cursor::Ended),
        )
        .await;
    assert_eq!(outcome.outbox.len(), 1);
    b.create(new("runs")).await;
    let there = async |id: &str| {
        b.store
            .instance(&root(id).instance)
            .await
            .unwrap()
            .is_some()
    };
    store.expire_instances(at(1_000_000)).await.unwrap();
    assert!(!there("ended").await);
    assert!(there("busy").await, "an effect is due");
    assert!(there("runs").await);
    b.store.flushed(&outcome.outbox).await.unwrap();
    store.expire_instances(at(1_000_000)).await.unwrap();
    assert!(!there("busy").await);
    assert!(there("runs").await);
}

/// An instance that is removed separately is also removed from the index of attributes.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_removed_separately_leaves_the_index() {
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    b.create(new("a")).await;
    let end = Command::End {
        status: EndStatus::Faulted,
        output: None,
        error: None,
    };
    // It has waited for an instance, so it isn't removed together with others.
    let waits = Command::Subscribe(subscription(1, vec![filter("t", &[])]));
    let found_by = [
        ("x".into(), Attribute::Boolean(true)),
        ("y".into(), Attribute::Text("a b".into())),
    ];
    let last = change(vec![waits, Command::Index, end]).attributes(found_by.into());
    b.act(&root("a"), last).await;
    let index = ["ZCARD", "{swirl:0}:sa"];
    assert_eq!(server.cli(&index).unwrap(), "2");
    store.expire_instances(at(1_000_000)).await.unwrap();
    let gone = b.store.instance(&root("a").instance).await.unwrap();
    assert!(gone.is_none());
    assert_eq!(server.cli(&index).unwrap(), "0");
}

/// An instance that has changed since it was found is left alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_instance_stays() {
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    b.create(ended_at_once("again", 1)).await;
    b.create(ended_at_once("marked", 1)).await;
    // It was opened again, and has ended later.
    server
        .cli(&["HSET", "{swirl:0}:i:again", "end", "999999"])
        .unwrap();
    // Its waits are not indexed yet.
    server
        .cli(&["ZADD", "{swirl:0}:dirty", "1", "marked"])
        .unwrap();
    let there = async |id: &str| {
        b.store
            .instance(&root(id).instance)
            .await
            .unwrap()
            .is_some()
    };
    store.expire_instances(at(100_000)).await.unwrap();
    assert!(there("again").await && there("marked").await);
    server
        .cli(&["HSET", "{swirl:0}:i:again", "end", "7"])
        .unwrap();
    server.cli(&["ZREM", "{swirl:0}:dirty", "marked"]).unwrap();
    store.expire_instances(at(100_000)).await.unwrap();
    assert!(!there("again").await && !there("marked").await);
}

/// A faulted instance may be retried, so it stays in the index of its values until it is removed.
#[tokio::test(flavor = "multi_thread")]
async fn removing_a_faulted_instance_leaves_no_values_behind() {
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    b.create(new("a")).await;
    let known = Command::Correlate(vec![("order".into(), "1".to_owned())]);
    let fails = Command::End {
        status: EndStatus::Faulted,
        output: None,
        error: Some(fault()),
    };
    b.act(&root("a"), change(vec![known, fails])).await;
    b.store.runnable(10).await.unwrap();
    // The instance itself, its correlation values, and the index of its value.
    let found = server.cli(&["KEYS", "*:a"]).unwrap();
    assert_eq!(found.lines().count(), 3, "{found}");
    store.expire_instances(at(100_000)).await.unwrap();
    assert!(
        b.store
            .instance(&root("a").instance)
            .await
            .unwrap()
            .is_none()
    );
    b.store.runnable(10).await.unwrap();
    assert_eq!(crate::kept(&server), ["swirl:meta"]);
}

/// An instance that cannot be read doesn't delay others.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_instance_delays_no_others() {
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    for number in 0..120 {
        b.create(ended_at_once(&format!("i{number:03}"), 1)).await;
    }
    server
        .cli(&["HSET", "{swirl:0}:i:i000", "l:r", "damaged"])
        .unwrap();
    store.expire_instances(at(100_000)).await.unwrap_err();
    assert_eq!(ids(&b).await, ["i000"]);
}

/// However many instances complete, faulted ones stay until they expire.
#[tokio::test(flavor = "multi_thread")]
async fn completed_instances_do_not_evict_faulted_ones() {
    let server = RedisServer::start().unwrap();
    let options = Options {
        shards: 1,
        keep_ended_ms: 1_000,
        keep_ended_max: 3,
        keep_faulted_ms: 5_000,
        ..Options::single(server.url())
    };
    let store = Redis::connect(options).await.unwrap();
    let b = Backend::of(Arc::new(store.clone()), ());
    for id in ["bad", "worse"] {
        b.create(new(id)).await;
        let end = Command::End {
            status: EndStatus::Faulted,
            output: None,
            error: None,
        };
        b.act(&root(id), change(vec![end]).at(Cursor::Idle)).await;
    }
    for number in 0..20 {
        let ended = ended_at_once(&format!("i{number}"), 1);
        b.create(ended).await;
    }
    let left = async |now| {
        store.expire_instances(at(now)).await.unwrap();
        ids(&b).await
    };
    assert_eq!(left(2).await.len(), 5);
    assert_eq!(left(1_010).await, ["bad", "worse"]);
    assert_eq!(left(4_990).await, ["bad", "worse"]);
    assert!(left(5_010).await.is_empty());
}

/// Removing an instance removes its key, unless another instance has taken the key.
#[tokio::test(flavor = "multi_thread")]
async fn removing_an_instance_removes_its_key() {
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    for (id, key) in [("a", "left"), ("b", "taken")] {
        let mut new = new(id);
        new.header.instance_key = Some(key.to_owned());
        let key = InstanceKey::of(&new.header).unwrap();
        let holder = |id: &str| KeyHolder {
            instance: root(id).instance,
            since: at(0),
        };
        let (mine, next) = (holder(id), holder("next"));
        assert!(b.store.take_key(&key, &mine, None).await.unwrap());
        if id == "b" {
            assert!(b.store.take_key(&key, &next, Some(&mine)).await.unwrap());
        }
        b.create(new).await;
        let end = Command::End {
            status: EndStatus::Completed,
            output: None,
            error: None,
        };
        b.act(&root(id), change(vec![end]).at(Cursor::Ended)).await;
    }
    assert_eq!(
        server.cli(&["KEYS", "*:named:*"]).unwrap().lines().count(),
        2
    );
    store.expire_instances(at(1_000_000)).await.unwrap();
    let all = Filter {
        limit: 10,
        ..Filter::default()
    };
    assert!(b.store.list(&all).await.unwrap().is_empty());
    let left = server.cli(&["KEYS", "*"]).unwrap();
    assert_eq!(
        left.lines().count(),
        3,
        "the meta data, the counts of starts and ends, and the key of 'next': {left}"
    );
    assert!(left.contains(":named:"), "{left}");
}

/// The retention in a definition overrides the settings, and doesn't make instances of other definitions expire
/// earlier.
#[tokio::test(flavor = "multi_thread")]
async fn a_definition_may_set_the_retention_of_its_instances() {
    let server = RedisServer::start().unwrap();
    let options = Options {
        shards: 1,
        keep_ended_ms: 1_000,
        keep_ended_max: 6,
        keep_faulted_ms: 1_000,
        grace_ms: 0,
        ..Options::single(server.url())
    };
    let store = Redis::connect(options).await.unwrap();
    let b = Backend::of(Arc::new(store.clone()), ());
    let long = Retention {
        completed: Some(50_000),
        faulted: Some(60_000),
        ..Retention::default()
    };
    let brief = Retention {
        completed: Some(100),
        faulted: Some(200),
        ..Retention::default()
    };
    for (name, retention) in [("long", long), ("brief", brief)] {
        let mut run = ended_at_once(&format!("{name}-at-once"), 1);
        run.header.retention = retention;
        b.create(run).await;
        for status in STATUSES {
            let mut new = new(&format!("{name}-{}", status.as_str()));
            new.header.retention = retention;
            let id = root(new.header.id.as_str());
            b.create(new).await;
            let end = Command::End {
                status,
                output: None,
                error: None,
            };
            let to = match status {
                EndStatus::Faulted => Cursor::Idle,
                _ => Cursor::Ended,
            };
            b.act(&id, change(vec![end]).at(to)).await;
        }
    }
    let left = async |now| {
        store.expire_instances(at(now)).await.unwrap();
        ids(&b).await
    };
    // Of the eight that did not fail, six may stay. Those without a retention of their own are removed first.
    let others = ["brief-terminated", "long-cancelled", "long-terminated"];
    let first = left(50).await;
    assert_eq!(first.len(), 8, "{first:?}");
    assert!(first.iter().any(|id| others.contains(&id.as_str())));
    let found = left(150).await;
    assert!(
        !found
            .iter()
            .any(|id| id == "brief-completed" || id == "brief-at-once")
    );
    assert!(found.contains(&"brief-faulted".to_owned()), "{found:?}");
    assert!(!left(250).await.contains(&"brief-faulted".to_owned()));
    let expected = ["long-at-once", "long-completed", "long-faulted"];
    assert_eq!(left(10_000).await, expected);
    // An operator can remove it at any time.
    let id = &root("long-at-once").instance;
    assert_eq!(b.store.remove(id).await.unwrap(), Removed::Done);
    assert_eq!(left(49_999).await, ["long-completed", "long-faulted"]);
    assert_eq!(left(50_010).await, ["long-faulted"]);
    assert!(left(60_010).await.is_empty());
    let keys = server.cli(&["KEYS", "*"]).unwrap();
    // The counts of starts and ends expire by themselves.
    let others: Vec<_> = keys
        .lines()
        .filter(|key| !key.ends_with(":trend"))
        .collect();
    assert_eq!(others, ["swirl:meta"]);
}
