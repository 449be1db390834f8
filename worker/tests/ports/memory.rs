//! A definition of a few hundred bytes that creates much more data, on a Redis with little memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use swirl_assembly::System;
use swirl_embedded::{MemoryQueue, SystemClock};
use swirl_model::ids::ScopeRef;
use swirl_model::instance::Status;
use swirl_ports::{Filter, InstanceQueries, InstanceRecords, Queue};
use swirl_redis::{Options, Redis};
use swirl_runtime::{Registry, Settings, Shares};
use swirl_servers::{RedisOptions, RedisServer};
use swirl_worker::pool;

use crate::rig::{deploy, nobody, start};

const LONG: Duration = Duration::from_secs(900);
const MAXMEMORY: u64 = 256 << 20;

/// Each iteration returns 8 MB, or holds 3 MB while it sleeps.
const DOCUMENTS: [(&str, &str); 2] = [
    (
        "gives",
        r#"{"id": "gives", "version": "1", "specVersion": "0.8",
        "functions": [{"name": "f", "type": "expression", "operation": "\"x\" * 8000000"}], "states": [
        {"name": "Items", "type": "inject", "data": {"items": []}, "transition": "Each",
            "stateDataFilter": {"output": "${ {items: [range(150)]} }"}},
        {"name": "Each", "type": "foreach", "inputCollection": "${ .items }", "outputCollection": "${ .all }",
            "actions": [{"functionRef": "f"}], "end": true}]}"#,
    ),
    (
        "holds",
        r#"{"id": "holds", "version": "1", "specVersion": "0.8",
        "functions": [{"name": "f", "type": "expression", "operation": "\"x\" * 3000000"}], "states": [
        {"name": "Items", "type": "inject", "data": {"items": []}, "transition": "Each",
            "stateDataFilter": {"output": "${ {items: [range(60)]} }"}},
        {"name": "Each", "type": "foreach", "inputCollection": "${ .items }", "outputCollection": "${ .all }",
            "actions": [{"functionRef": "f", "sleep": {"after": "PT24H"}}], "end": true}]}"#,
    ),
];

/// A figure of `INFO memory`.
fn memory(server: &RedisServer, name: &str) -> u64 {
    let info = server.cli(&["INFO", "memory"]).unwrap();
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap().trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn redis_does_not_fill_up_and_keeps_responding() {
    let server = RedisServer::start_with(RedisOptions {
        args: [
            "--maxmemory",
            &MAXMEMORY.to_string(),
            "--maxmemory-policy",
            "noeviction",
        ]
        .map(str::to_owned)
        .to_vec(),
        ..RedisOptions::default()
    })
    .unwrap();
    let options = Options {
        response_timeout_ms: 60_000,
        ..Options::single(server.url())
    };
    let store = Arc::new(Redis::connect(options).await.unwrap());
    let queue = Arc::new(MemoryQueue::default());
    let lower = Box::new(|_: &_| Err("all definitions are compiled".to_owned()));
    let registry = Arc::new(Registry::new(store.clone(), lower));
    let clock = Arc::new(SystemClock);
    let system = System::new(store.clone(), store.clone(), queue.clone(), clock, registry)
        .running_inline(false);
    let service = system.service();
    let mut ids = Vec::new();
    for (workflow, document) in DOCUMENTS {
        deploy(&service, document).await;
        let id = start(&service, workflow, 0).await;
        queue.push(vec![ScopeRef::root(id.clone())]).await;
        ids.push(id);
    }
    let mut driver = system.driver(nobody(), Arc::new(service.clone()), Settings::default());
    driver.shares = Some(Shares::new(2));

    let (over, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let looking = async {
        let all = Filter {
            limit: 10,
            ..Filter::default()
        };
        // Queries are answered meanwhile.
        while !over.load(Ordering::Relaxed) {
            assert_eq!(store.list(&all).await.unwrap().len(), 2);
            for id in &ids {
                assert!(store.instance(id).await.unwrap().is_some());
            }
            looks.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    };
    let ended = async {
        for id in &ids {
            let ends = async {
                loop {
                    let state = store.instance(id).await.unwrap().unwrap().state;
                    if state.status != Status::Running {
                        return state;
                    }
                    tokio::task::yield_now().await;
                }
            };
            let state = tokio::time::timeout(LONG, ends).await.unwrap();
            let error = state.error.unwrap();
            assert_eq!(
                (state.status, error.name.as_str()),
                (Status::Faulted, "LimitExceeded")
            );
        }
        over.store(true, Ordering::Relaxed);
    };
    let running = pool::run(Arc::new(driver), queue, pool::Settings::default(), ended);
    tokio::join!(running, looking);
    assert!(looks.load(Ordering::Relaxed) > 1);
    let peak = memory(&server, "used_memory_peak");
    assert!(peak < MAXMEMORY, "{peak} bytes");
}
