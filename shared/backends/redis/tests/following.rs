//! Histories are followed: every addition is recorded, in the same step.

use std::sync::Arc;

use swirl_contract::Backend;
use swirl_contract::first_turn::ended_at_once;
use swirl_contract::kit::*;
use swirl_model::event::{Command, Event, HistoryEntry};
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_model::instance::EndStatus;
use swirl_model::scope::Cursor;
use swirl_ports::{Filter, FollowedHistories, InstanceQueries, Operated, Removed, UnreadCount};
use swirl_redis::{Options, Redis};
use swirl_servers::RedisServer;

const UNREAD: &str = "{swirl:0}:unread";

async fn connect(server: &RedisServer) -> (Redis, Backend) {
    let options = Options {
        shards: 1,
        keep_ended_ms: 1_000,
        keep_ended_max: 2,
        keep_faulted_ms: 1_000,
        history_max: 50,
        ..Options::single(server.url())
    };
    let store = Redis::connect(options).await.unwrap();
    let backend = Backend::of(Arc::new(store.clone()), ());
    (store, backend)
}

fn entry(fork: u32) -> HistoryEntry {
    HistoryEntry {
        data: None,
        at: at(5),
        scope: ScopeId::root(),
        event: Event::Joined {
            fork,
            in_state: None,
        },
        data_until: None,
    }
}

fn end() -> Command {
    Command::End {
        status: EndStatus::Completed,
        output: None,
        error: None,
    }
}

/// The instances with unread entries, and the number of their known entries.
async fn unread(store: &Redis) -> Vec<(String, u64)> {
    let found = store.unread(100).await.unwrap().into_iter();
    let mut found: Vec<_> = found
        .map(|one| (one.instance.to_string(), one.known))
        .collect();
    found.sort();
    found
}

/// Adds to the history in every possible way.
async fn add_in_all_ways(b: &Backend) {
    b.create(ended_at_once("inline", 3)).await;
    b.create(ended_at_once("silent", 0)).await;
    for id in ["commits", "ends", "noted", "operated", "quiet"] {
        b.create(new(id)).await;
    }
    b.act(&root("commits"), change(vec![]).history(vec![entry(1)]))
        .await;
    let ends = change(vec![end()]).history(vec![entry(1), entry(2)]);
    b.act(&root("ends"), ends.at(Cursor::Ended)).await;
    b.act(&root("quiet"), change(vec![])).await;
    let id = InstanceId::new;
    assert!(b.store.note(&id("noted"), entry(1)).await.unwrap());
    let instance = id("operated");
    let operated = b.store.operate(&instance, "mark", entry(1), None).await;
    assert_eq!(operated.unwrap(), Operated::New);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_addition_to_a_history_is_recorded() {
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    assert!(!store.are_followed());
    assert!(store.set_following(true).await.unwrap());
    add_in_all_ways(&b).await;
    let all = ["commits", "ends", "inline", "noted", "operated"];
    let all: Vec<_> = all.map(|id| (id.to_owned(), 0)).into();
    assert_eq!(unread(&store).await, all);
    // The other process reads it from the notes of the namespace.
    let (other, _) = connect(&server).await;
    assert!(other.are_followed());
    assert!(!other.set_following(true).await.unwrap(), "as it was");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_recorded_unless_histories_are_followed() {
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    add_in_all_ways(&b).await;
    assert_eq!(server.cli(&["EXISTS", UNREAD]).unwrap(), "0");
    assert_eq!(store.count_unread().await.unwrap(), UnreadCount::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_position_of_the_reader_only_increases() {
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    store.set_following(true).await.unwrap();
    b.create(ended_at_once("a", 5)).await;
    let id = InstanceId::new("a");
    store.read_to(&id, 3, at(20)).await.unwrap();
    assert_eq!(unread(&store).await, [("a".to_owned(), 3)]);
    let count = store.count_unread().await.unwrap();
    assert_eq!((count.instances, count.since), (1, Some(at(20))));
    // A reader that was late.
    store.read_to(&id, 2, at(21)).await.unwrap();
    assert_eq!(unread(&store).await, [("a".to_owned(), 3)]);
    store.read_to(&id, 5, at(22)).await.unwrap();
    assert!(unread(&store).await.is_empty());
    assert!(b.store.note(&id, entry(1)).await.unwrap());
    assert_eq!(unread(&store).await, [("a".to_owned(), 5)]);
    // There are more entries than are kept, and the reader sees where the rest begins.
    for fork in 0..60 {
        assert!(b.store.note(&id, entry(fork)).await.unwrap());
    }
    let part = swirl_ports::HistoryPart::After { known: 5, limit: 1 };
    let page = store.history_page(&id, part).await.unwrap();
    assert_eq!((page.before, page.total), (16, 66));
    let gone = InstanceId::new("gone");
    store.read_to(&gone, 1, at(1)).await.unwrap();
    assert_eq!(server.cli(&["KEYS", "*gone*"]).unwrap(), "");
}

async fn ids(b: &Backend) -> Vec<String> {
    let all = Filter {
        limit: 100,
        ..Filter::default()
    };
    let found = b.store.list(&all).await.unwrap().into_iter();
    let mut found: Vec<_> = found.map(|one| one.header.id.to_string()).collect();
    found.sort();
    found
}

/// Retention waits for the reader, but not for ever.
#[tokio::test(flavor = "multi_thread")]
async fn unread_histories_are_kept_for_longer() {
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    store.set_following(true).await.unwrap();
    for id in ["a", "b", "c", "d"] {
        b.create(ended_at_once(id, 1)).await;
    }
    b.create(new("bad")).await;
    let fails = Command::End {
        status: EndStatus::Faulted,
        output: None,
        error: None,
    };
    let fails = change(vec![fails]).history(vec![entry(1)]);
    b.act(&root("bad"), fails.at(Cursor::Idle)).await;
    let id = InstanceId::new;
    assert_eq!(b.store.remove(&id("a")).await.unwrap(), Removed::Busy);
    // Two are too many, and all are too old, but they stay while they are unread.
    store.expire_instances(at(1_500)).await.unwrap();
    assert_eq!(ids(&b).await, ["a", "b", "bad", "c", "d"]);
    store.read_to(&id("a"), 1, at(1_500)).await.unwrap();
    store.expire_instances(at(1_500)).await.unwrap();
    assert_eq!(ids(&b).await, ["b", "bad", "c", "d"]);
    // Twice the number that is otherwise kept.
    for id in ["e", "f"] {
        b.create(ended_at_once(id, 1)).await;
    }
    store.expire_instances(at(1_500)).await.unwrap();
    assert_eq!(ids(&b).await, ["bad", "c", "d", "e", "f"]);
    assert_eq!(store.lost_histories(), 1);
    // Twice as long as otherwise.
    store.expire_instances(at(2_010)).await.unwrap();
    assert!(ids(&b).await.is_empty());
    assert_eq!(store.lost_histories(), 6);
    assert_eq!(crate::kept(&server), ["swirl:meta"]);
}

/// Once following is turned off, retention no longer waits, and nothing is left.
#[tokio::test(flavor = "multi_thread")]
async fn removing_an_instance_removes_its_unread_mark() {
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    store.set_following(true).await.unwrap();
    for id in ["a", "b"] {
        b.create(ended_at_once(id, 1)).await;
    }
    store.set_following(false).await.unwrap();
    let id = InstanceId::new("a");
    assert_eq!(b.store.remove(&id).await.unwrap(), Removed::Done);
    store.expire_instances(at(1_500)).await.unwrap();
    assert_eq!(crate::kept(&server), ["swirl:meta"]);
    assert_eq!(store.lost_histories(), 0);
}
