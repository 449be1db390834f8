//! A server without memory: operations that free memory still work.

use std::sync::Arc;

use swirl_contract::Backend;
use swirl_contract::audit::entry;
use swirl_contract::first_turn::ended_at_once;
use swirl_contract::kit::*;
use swirl_model::event::{Command, Input};
use swirl_model::instance::{EndStatus, Status};
use swirl_model::scope::Cursor;
use swirl_model::{Data, data};
use swirl_ports::{Error, InboxItem};
use swirl_redis::{Options, Redis};
use swirl_servers::{RedisOptions, RedisServer};

const LIMIT: &str = "24mb";

fn options(server: &RedisServer) -> Options {
    Options {
        shards: 4,
        keep_ended_ms: 1_000,
        keep_faulted_ms: 1_000,
        grace_ms: 0,
        repeat_ms: 0,
        ..Options::single(server.url())
    }
}

async fn connect(server: &RedisServer) -> (Redis, Backend) {
    let store = Redis::connect(options(server)).await.unwrap();
    let backend = Backend::of(Arc::new(store.clone()), ());
    (store, backend)
}

fn small() -> RedisServer {
    let args = ["--maxmemory", LIMIT, "--maxmemory-policy", "noeviction"];
    RedisServer::start_with(RedisOptions {
        args: args.map(str::to_owned).to_vec(),
        ..RedisOptions::default()
    })
    .unwrap()
}

fn large() -> Data {
    data!({"text": ("x".repeat(100_000))})
}

/// Creates instances until there is no room.
async fn fill(b: &Backend, kind: &str, running: bool) -> Vec<String> {
    let mut ids = Vec::new();
    loop {
        let id = format!("{kind}{}", ids.len());
        let mut new = if running {
            new(&id)
        } else {
            ended_at_once(&id, 1)
        };
        new.header.input = large();
        match b.store.create(new).await {
            Ok(_) => ids.push(id),
            Err(Error::Unavailable(reason)) => {
                assert!(reason.contains("no memory left"), "{reason}");
                assert!(ids.len() > 20, "{} are too few", ids.len());
                return ids;
            }
            Err(error) => panic!("{error}"),
        }
        assert!(ids.len() < 10_000, "it never is full");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_instances_are_removed() {
    let server = small();
    let (store, b) = connect(&server).await;
    assert_eq!(store.full().await, [""; 0]);
    let ended = fill(&b, "ended", false).await;
    assert_eq!(store.full().await, [server.address()]);
    // Coordinators continue, and can be restarted.
    assert!(!store.lease_shards("one", 5_000).await.unwrap().is_empty());
    let (_, again) = connect(&server).await;
    assert!(
        again
            .store
            .instance(&root(&ended[0]).instance)
            .await
            .unwrap()
            .is_some()
    );

    store.expire_instances(at(10_000)).await.unwrap();
    for id in &ended {
        assert!(
            b.store
                .instance(&root(id).instance)
                .await
                .unwrap()
                .is_none(),
            "{id}"
        );
    }
    assert_eq!(store.full().await, [""; 0]);
    b.create(ended_at_once("new", 1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_events_are_recognized() {
    let server = small();
    let (_, b) = connect(&server).await;
    let (done, open) = (event("1", "t", &[]), event("2", "t", &[]));
    for known in [&done, &open] {
        b.ingest(known, &[]).await;
    }
    b.events.acknowledge(&done, at(0)).await.unwrap();
    fill(&b, "ended", false).await;
    assert!(b.ingest(&done, &[]).await.duplicate);
    assert!(!b.ingest(&open, &[]).await.duplicate);
    b.events.acknowledge(&open, at(0)).await.unwrap();
    assert!(b.ingest(&open, &[]).await.duplicate);
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_can_be_cancelled() {
    let server = small();
    let (store, b) = connect(&server).await;
    let running = fill(&b, "running", true).await;
    let cancel = Input::Cancel {
        status: EndStatus::Cancelled,
    };
    for id in &running {
        let root = root(id);
        b.store
            .add_input(&root, InboxItem::new(cancel.clone()))
            .await
            .unwrap();
        assert_eq!(b.store.attempt(&root).await.unwrap(), 1);
        let end = Command::End {
            status: EndStatus::Cancelled,
            output: None,
            error: None,
        };
        b.act(&root, change(vec![end]).at(Cursor::Ended)).await;
        b.store.clear_attempts(&root, true).await.unwrap();
        let found = b.store.instance(&root.instance).await.unwrap().unwrap();
        assert_eq!(found.state.status, Status::Cancelled);
    }
    // The audit log has it.
    b.audit.add_audit(&entry(1), 10).await.unwrap();
    assert_eq!(b.audit.audit(None, 10).await.unwrap(), [entry(1)]);
    assert!(b.store.runnable(100).await.is_ok());
    store.expire_instances(at(10_000)).await.unwrap();
    for id in &running {
        assert!(
            b.store
                .instance(&root(id).instance)
                .await
                .unwrap()
                .is_none(),
            "{id}"
        );
    }
    b.create(new("new")).await;
}

/// Other operations that need memory are refused with the reason.
#[tokio::test(flavor = "multi_thread")]
async fn operations_that_need_memory_are_refused() {
    let server = small();
    let (_, b) = connect(&server).await;
    let running = fill(&b, "running", true).await;
    let input = Input::CallDone {
        call: 1,
        result: Ok(large()),
    };
    let refused = b
        .store
        .add_input(&root(&running[0]), InboxItem::new(input))
        .await;
    let reason = refused.unwrap_err().to_string();
    assert!(reason.contains("no memory left"), "{reason}");
}
