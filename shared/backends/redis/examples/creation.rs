//! Measures the cost of creations in Redis, in processor time and by Redis' own count. Starts its own server.
//! `cargo run -p swirl-redis --example creation`: the program itself may be slow.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

mod cost;
#[path = "cost/time.rs"]
mod time;

use swirl_contract::first_turn::{ended_at_once, turn};
use swirl_contract::kit;
use swirl_model::event::Command;
use swirl_model::scope::Work;
use swirl_ports::{ExecutionStore, NewRecords};
use swirl_servers::RedisServer;

use crate::time::{cpu, function};

const AT_ONCE: usize = 32;
const EACH: usize = 60;
const ROUNDS: usize = 5;
/// As many lines as an instance of ten states.
const ENTRIES: u32 = 22;

type Make = fn(&str) -> NewRecords;

fn plain(id: &str) -> NewRecords {
    kit::new(id)
}

fn ended(id: &str) -> NewRecords {
    ended_at_once(id, ENTRIES)
}

fn waiting(id: &str) -> NewRecords {
    let mut new = ended_at_once(id, 3);
    let turn = turn(&mut new);
    turn.scope.cursor = kit::blocked(Work::Sleep);
    turn.scope.timers = vec![kit::timer(1, 4_000_000_000_000)];
    turn.commands = vec![Command::Arm(kit::timer(1, 4_000_000_000_000))];
    new
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = RedisServer::start_with(cost::options())?;
    let redis = cost::connect(&server).await?;
    let server = &server;
    let workloads: [(&str, Make); 3] = [
        ("a creation", plain),
        ("a creation with a first turn that ends", ended),
        ("a creation with a first turn that sleeps", waiting),
    ];
    for (name, new) in workloads {
        let (mut functions, mut processes) = (Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let before = (function(server)?, cpu(server)?);
            let tasks = (0..AT_ONCE).map(|n| {
                let redis = redis.clone();
                tokio::spawn(async move {
                    for number in 0..EACH {
                        let id = format!("{n}-{round}-{number}");
                        redis.create(new(&id)).await.unwrap();
                    }
                })
            });
            futures::future::try_join_all(tasks).await?;
            let after = (function(server)?, cpu(server)?);
            // Functions are loaded in the first round.
            if round > 0 {
                functions.push((after.0.1 - before.0.1) / (after.0.0 - before.0.0));
                processes.push((after.1 - before.1) * 1e6 / (AT_ONCE * EACH) as f64);
            }
        }
        functions.sort_by(f64::total_cmp);
        processes.sort_by(f64::total_cmp);
        println!(
            "{name}: {:.1} µs of a function ({:.1} to {:.1}), {:.0} µs of Redis' process",
            functions[ROUNDS / 2],
            functions[0],
            functions[ROUNDS - 1],
            processes[ROUNDS / 2],
        );
        let exists = redis.create(new("0-1-0")).await?;
        assert_eq!(exists, swirl_ports::Created::Exists { conflict: false });
        server.cli(&["FLUSHALL"])?;
    }
    Ok(())
}
