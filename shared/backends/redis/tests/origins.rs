//! What the branches of a fork have in common is read once, and never taken for that of another fork.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_model::data;
use swirl_model::event::Command;
use swirl_ports::store::Record;
use swirl_redis::{Options, Redis};
use swirl_servers::RedisServer;

async fn connect(server: &RedisServer) -> (Redis, Backend) {
    let store = Redis::connect(Options::single(server.url())).await.unwrap();
    let shared = Arc::new(store.clone());
    let backend = Backend {
        store: shared.clone(),
        events: shared.clone(),
        definitions: shared,
        guard: Box::new(()),
    };
    (store, backend)
}

/// As after a failover that lost what was last, or after an expiry: what a worker knows of a fork isn't
/// taken for that of another one with the same name.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_of_the_same_name_is_another_one() {
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    for round in 0..2 {
        let mut instance = new("a");
        instance.header.input = data!({"round": round});
        b.create(instance).await;
        let Command::Fork(mut common) = fork("r", 1, 2, 2, 2) else {
            panic!("no fork")
        };
        common.data = data!({"round": round});
        let begun = change(vec![Command::Fork(common)]).at(forked(1, 2));
        b.act(&root("a"), begun).await;
        for branch in ["r.1.0", "r.1.1"] {
            let held = b.hold_lazily(&scope("a", branch)).await;
            assert_eq!(held.header.input, data!({"round": round}));
            let Record::Branch { fork, .. } = held.record else {
                panic!("it has begun")
            };
            assert_eq!(fork.data, data!({"round": round}));
        }
        assert_eq!(store.known_origins(), round + 1, "the second branch's");
        let key = server.cli(&["--scan", "--pattern", "*}:i:a"]).unwrap();
        server.cli(&["DEL", key.trim()]).unwrap();
    }
}

/// One after another, as in a foreach in sequence: its scope commits before each.
#[tokio::test(flavor = "multi_thread")]
async fn what_branches_have_in_common_is_read_once() {
    const BRANCHES: u32 = 5;
    let server = RedisServer::start().unwrap();
    let (store, b) = connect(&server).await;
    b.create(new("a")).await;
    let Command::Fork(mut large) = fork("r", 1, BRANCHES, 1, 1) else {
        panic!("no fork")
    };
    large.data = data!({"text": "x".repeat(4 << 20)});
    let begun = change(vec![Command::Fork(large)]).at(forked(1, BRANCHES));
    b.act(&root("a"), begun).await;
    for branch in 0..BRANCHES {
        let held = b.hold_lazily(&scope("a", &format!("r.1.{branch}"))).await;
        let Record::Branch { fork, .. } = held.record else {
            panic!("it has begun")
        };
        assert_eq!((fork.open, fork.needed), (branch + 1, branch + 1));
        let more = Command::ExtendFork {
            fork: 1,
            open: branch + 2,
            needed: branch + 2,
        };
        let extended = change(vec![more]).at(forked(1, BRANCHES));
        b.act(&root("a"), extended).await;
    }
    assert_eq!(store.known_origins(), u64::from(BRANCHES) - 1);
}
