//! Measures instances and transitions per second, and the memory of a waiting instance.
//! Starts its own server. `cargo run --release -p swirl-redis --example throughput [always]`
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use swirl_contract::kit;
use swirl_model::data;
use swirl_model::event::{Command, Event, HistoryEntry};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Cursor, Scope, Work};
use swirl_ports::execution::Record;
use swirl_ports::{Acquired, Commit, Committed, ExecutionStore, Held, Lease};
use swirl_redis::{Options, Redis};
use swirl_servers::{RedisOptions, RedisServer};

const TIME: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, PartialEq)]
enum Workload {
    /// Create, acquire, commit the end, release.
    Instance,
    /// Acquire, commit, release.
    Transition,
    /// Commit only. The scope stays held.
    Commit,
}

fn main() -> anyhow::Result<()> {
    let always = std::env::args().any(|arg| arg == "always");
    let server = RedisServer::start_with(RedisOptions {
        appendonly: true,
        appendfsync: Some(if always { "always" } else { "everysec" }),
        ..RedisOptions::default()
    })?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(measure(&server))
}

async fn measure(server: &RedisServer) -> anyhow::Result<()> {
    let redis = Redis::connect(Options::single(server.url())).await?;
    for (workload, name) in [
        (
            Workload::Instance,
            "instances (create, acquire, commit, release)",
        ),
        (
            Workload::Transition,
            "transitions (acquire, commit, release)",
        ),
        (Workload::Commit, "transitions (commit, scope held)"),
    ] {
        for in_flight in [1, 64, 256] {
            server.cli(&["FLUSHALL"])?;
            let (count, before) = (Arc::new(AtomicUsize::new(0)), cpu(server)?);
            let begun = Instant::now();
            let tasks = (0..in_flight).map(|n| {
                tokio::spawn(work(
                    redis.clone(),
                    workload,
                    n,
                    count.clone(),
                    begun + TIME,
                ))
            });
            futures::future::try_join_all(tasks.collect::<Vec<_>>()).await?;
            let (done, time) = (count.load(Ordering::Relaxed), begun.elapsed());
            let used = (cpu(server)? - before) / done as f64 * 1e6;
            println!(
                "{name}: {in_flight} in flight: {:.0}/s, {:.2} ms each, {used:.0} µs of Redis",
                done as f64 / time.as_secs_f64(),
                time.as_secs_f64() * 1e3 * f64::from(in_flight) / done as f64,
            );
        }
    }
    server.cli(&["FLUSHALL"])?;
    memory(server, &redis).await
}

/// The processor time that the server has used, in seconds.
fn cpu(server: &RedisServer) -> anyhow::Result<f64> {
    let info = server.cli(&["INFO", "cpu"])?;
    let of = |name: &str| -> f64 {
        let line = info.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse().ok())
            .unwrap_or_default()
    };
    Ok(of("used_cpu_sys:") + of("used_cpu_user:"))
}

async fn work(
    redis: Redis,
    workload: Workload,
    worker: u32,
    count: Arc<AtomicUsize>,
    until: Instant,
) {
    let mut number = 0;
    let own = format!("own{worker}");
    redis.create(kit::new(&own)).await.unwrap();
    let mut kept: Option<(Lease, Scope)> = None;
    while Instant::now() < until {
        number += 1;
        match workload {
            Workload::Instance => {
                let id = format!("{worker}-{number}");
                redis.create(kit::new(&id)).await.unwrap();
                let held = hold(&redis, &id).await;
                let (lease, scope) = parts(held);
                let end = Command::End {
                    status: EndStatus::Completed,
                    output: Some(data!({"done": true})),
                    error: None,
                };
                commit(&redis, &lease, &scope, Cursor::Ended, vec![end]).await;
                redis.release(&lease).await.unwrap();
            }
            Workload::Transition => {
                let (lease, scope) = parts(hold(&redis, &own).await);
                commit(&redis, &lease, &scope, kit::blocked(Work::Sleep), vec![]).await;
                redis.release(&lease).await.unwrap();
            }
            Workload::Commit => {
                let (lease, mut scope) = match kept.take() {
                    Some(kept) => kept,
                    None => parts(hold(&redis, &own).await),
                };
                commit(&redis, &lease, &scope, kit::blocked(Work::Sleep), vec![]).await;
                scope.rev += 1;
                kept = Some((lease, scope));
            }
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
}

async fn hold(redis: &Redis, id: &str) -> Held {
    let scope = ScopeRef::root(InstanceId::new(id));
    match redis.acquire(&scope, 30_000).await.unwrap() {
        Acquired::Held(held) => *held,
        other => panic!("{other:?}"),
    }
}

fn parts(held: Held) -> (Lease, Scope) {
    match held.record {
        Record::Scope(scope) => (held.lease, scope),
        other => panic!("{other:?}"),
    }
}

async fn commit(
    redis: &Redis,
    lease: &Lease,
    scope: &Scope,
    cursor: Cursor,
    commands: Vec<Command>,
) {
    let entry = HistoryEntry {
        data: None,
        at: kit::at(0),
        scope: scope.id.clone(),
        event: Event::Joined {
            fork: 1,
            in_state: None,
        },
        data_until: None,
    };
    let scope = Scope {
        cursor,
        ..scope.clone()
    };
    let commit = Commit {
        lease: lease.clone(),
        scope,
        consumed: vec![],
        refused: Vec::new(),
        history: vec![entry],
        commands,
        at: kit::at(0),
        require_unchanged_inbox: false,
        fits: false,
        release: false,
        lease_ms: 30_000,
    };
    let committed = redis.commit(commit).await.unwrap();
    assert!(matches!(committed, Committed::Done { .. }));
}

/// Instances that sleep until a timer fires.
async fn memory(server: &RedisServer, redis: &Redis) -> anyhow::Result<()> {
    const COUNT: usize = 20_000;
    let used = || -> anyhow::Result<i64> {
        let info = server.cli(&["INFO", "memory"])?;
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix("used_memory:"));
        Ok(line.unwrap_or_default().trim().parse()?)
    };
    let before = used()?;
    let mut data = 0;
    for n in 0..COUNT {
        let id = format!("{:032x}", n * 7_919);
        let new = kit::new(&id);
        data += serde_json::to_vec(&new.header)?.len();
        redis.create(new).await?;
        let (lease, mut scope) = parts(hold(redis, &id).await);
        let timer = kit::timer(1, 2_000_000_000_000 + n as i64);
        scope.timers = vec![timer];
        let sleeps = kit::blocked(Work::Sleep);
        let arm = vec![Command::Arm(timer)];
        commit(redis, &lease, &scope, sleeps.clone(), arm).await;
        scope.cursor = sleeps;
        data += serde_json::to_vec(&scope)?.len();
        redis.release(&lease).await?;
    }
    let each = (used()? - before) / COUNT as i64;
    println!(
        "a sleeping instance: {each} bytes of Redis, {} of them are its data",
        data / COUNT
    );
    Ok(())
}
