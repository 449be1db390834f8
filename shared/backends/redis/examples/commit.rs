//! Measures the cost of a commit in Redis, in processor time and by Redis' own count, so that other load on the machine
//! matters little. A record has some 600 bytes, an element of history some 300. Starts its own server.
//! `cargo run -p swirl-redis --example commit`: the program itself may be slow.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

mod cost;
#[path = "cost/time.rs"]
mod time;
#[path = "cost/turns.rs"]
mod turns;

use swirl_contract::kit;
use swirl_model::event::Command;
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Cursor, Scope, Work};
use swirl_model::{Data, data};
use swirl_ports::{ExecutionStore, Lease};
use swirl_redis::Redis;
use swirl_servers::RedisServer;

use crate::time::{cpu, function};
use crate::turns::{commit, read};

const AT_ONCE: usize = 32;
const ROUNDS: usize = 5;
/// The number of commits, or forks, of each instance in a round.
const EACH: u32 = 20;
const BRANCHES: u32 = 10;

#[derive(Clone, Copy)]
enum Workload {
    /// An answer and the next call. The lease is kept.
    Call,
    /// A turn without a lease.
    Turn,
    /// A call with a timeout: its timer is disarmed, and the next one is armed.
    Timer,
    /// A produced event. It is removed from the outbox outside the function's time.
    Effect,
    /// The end of a wait, and the next wait, including the index of waits.
    Wait,
    /// Forks of ten branches, which report with their first commit.
    Fork,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = RedisServer::start_with(cost::options())?;
    let redis = cost::connect(&server).await?;
    let server = &server;
    for (workload, name) in [
        (Workload::Call, "a call's answer and the next call"),
        (Workload::Turn, "a turn without a lease (read and commit)"),
        (Workload::Timer, "the same with a timeout"),
        (Workload::Effect, "a produced event"),
        (Workload::Wait, "a wait after another"),
        (
            Workload::Fork,
            "a fork of ten and its join (reads and commits)",
        ),
    ] {
        let mut costs = Costs::default();
        for round in 0..=ROUNDS {
            let (function, process) = cost_of(server, &redis, workload, round).await?;
            // Functions are loaded in the first round.
            if round > 0 {
                costs.functions.push(function);
                costs.processes.push(process);
            }
        }
        let (functions, processes) = (&mut costs.functions, &mut costs.processes);
        functions.sort_by(f64::total_cmp);
        processes.sort_by(f64::total_cmp);
        println!(
            "{name}: {:.1} µs of a function ({:.1} to {:.1}), {:.0} µs of Redis' process a commit",
            functions[ROUNDS / 2],
            functions[0],
            functions[ROUNDS - 1],
            processes[ROUNDS / 2],
        );
        server.cli(&["FLUSHALL"])?;
    }
    println!("{} scopes were read again", redis.second_reads());
    Ok(())
}

/// Times in microseconds.
#[derive(Default)]
struct Costs {
    functions: Vec<f64>,
    processes: Vec<f64>,
}

/// The time of a function, and of Redis' process per commit, in microseconds.
async fn cost_of(
    server: &RedisServer,
    redis: &Redis,
    workload: Workload,
    round: usize,
) -> anyhow::Result<(f64, f64)> {
    let tasks = (0..AT_ONCE).map(|n| {
        let redis = redis.clone();
        tokio::spawn(async move {
            let id = format!("{n}-{round}");
            redis.create(kit::new(&id)).await.unwrap();
            Worker { redis, id }
        })
    });
    let workers = futures::future::try_join_all(tasks).await?;
    let before = (function(server)?, cpu(server)?);
    let tasks = workers
        .into_iter()
        .map(|worker| tokio::spawn(worker.work(workload)));
    let done = futures::future::try_join_all(tasks).await?;
    let done: u32 = done.into_iter().sum();
    let after = (function(server)?, cpu(server)?);
    Ok((
        (after.0.1 - before.0.1) / (after.0.0 - before.0.0),
        (after.1 - before.1) * 1e6 / f64::from(done),
    ))
}

struct Worker {
    redis: Redis,
    id: String,
}

impl Worker {
    /// Works through one round. Returns the number of commits.
    async fn work(self, workload: Workload) -> u32 {
        let root = ScopeRef::root(InstanceId::new(self.id.as_str()));
        let text = Data::string("x".repeat(400));
        let mut held: Option<(Lease, Scope)> = None;
        let mut commits = 0;
        for number in 1..=EACH {
            let (mut lease, mut scope) = match held.take() {
                Some(held) => held,
                None => read(&self.redis, &root).await,
            };
            scope.data = text.clone();
            match workload {
                Workload::Call | Workload::Timer | Workload::Effect => {
                    scope.cursor = kit::calling(number);
                    let commands = match workload {
                        Workload::Timer => vec![
                            Command::Disarm(number - 1),
                            Command::Arm(kit::timer(number, 4_000_000_000_000)),
                        ],
                        Workload::Effect => vec![Command::Publish(kit::event("e", "told", &[]))],
                        _ => Vec::new(),
                    };
                    let token = commit(&self.redis, &lease, &scope, commands, &[], false).await;
                    lease.token = token.unwrap_or(lease.token);
                    scope.rev += 1;
                    held = Some((lease, scope));
                    commits += 1;
                }
                Workload::Turn => {
                    scope.cursor = kit::blocked(Work::Sleep);
                    commit(&self.redis, &lease, &scope, vec![], &[], true).await;
                    commits += 1;
                }
                Workload::Wait => {
                    scope.cursor = kit::blocked(Work::Events);
                    let slots = vec![kit::filter("paid", &[])];
                    let commands = vec![
                        Command::Unsubscribe(number - 1),
                        Command::Subscribe(kit::subscription(number, slots)),
                    ];
                    commit(&self.redis, &lease, &scope, commands, &[], true).await;
                    commits += 1;
                }
                Workload::Fork => {
                    scope.cursor = kit::forked(number, BRANCHES);
                    let fork = kit::fork("r", number, BRANCHES, BRANCHES, BRANCHES);
                    commit(&self.redis, &lease, &scope, vec![fork], &[], true).await;
                    for index in 0..BRANCHES {
                        let branch = ScopeRef {
                            instance: root.instance.clone(),
                            scope: ScopeId::new(format!("r.{number}.{index}")),
                        };
                        let (lease, mut scope) = read(&self.redis, &branch).await;
                        scope.cursor = Cursor::Ended;
                        let report = vec![Command::Report(kit::done())];
                        commit(&self.redis, &lease, &scope, report, &[], true).await;
                    }
                    let (lease, mut scope) = read(&self.redis, &root).await;
                    scope.cursor = kit::blocked(Work::Sleep);
                    let joined = format!("fork-{number}-1");
                    let close = vec![Command::CloseFork(number)];
                    commit(&self.redis, &lease, &scope, close, &[joined], true).await;
                    commits += BRANCHES + 2;
                }
            }
        }
        let (lease, mut scope) = match held {
            Some(held) => held,
            None => read(&self.redis, &root).await,
        };
        scope.cursor = Cursor::Ended;
        let end = Command::End {
            status: EndStatus::Completed,
            output: Some(data!({"done": true})),
            error: None,
        };
        commit(&self.redis, &lease, &scope, vec![end], &[], true).await;
        commits + 1
    }
}
