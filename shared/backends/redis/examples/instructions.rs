//! Counts the instructions of a Redis server for a commit: of the whole server, with parsing, the append-only file and
//! the answer. Records what the store sends to one server, and replays it on another, which runs under callgrind. Other
//! load doesn't change the figures.
//! `cargo run -p swirl-redis --example instructions -- FOLDER` also keeps the last profile of each row in the folder,
//! for `callgrind_annotate`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example")]

mod cost;
#[path = "cost/replay.rs"]
mod replay;
#[path = "cost/turns.rs"]
mod turns;

use std::collections::BTreeMap;
use std::path::PathBuf;

use swirl_contract::kit;
use swirl_model::event::Command;
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Cursor, Scope, Work};
use swirl_model::{Data, data};
use swirl_ports::{ExecutionStore, Lease};
use swirl_redis::Redis;
use swirl_servers::RedisServer;

use crate::replay::{Player, Recorded, Recorder, is};
use crate::turns::{commit, read};

/// The number of commits of each kind, or of forks, of an instance.
const EACH: u32 = 6;
const INSTANCES: u32 = 3;
const BRANCHES: u32 = 10;

/// The word before the commit that is counted.
const MARK: &str = "ECHO";
/// Commands of a connection, which the replay doesn't need.
const OF_CONNECTIONS: [&str; 8] = [
    "HELLO",
    "CLIENT",
    "PING",
    "INFO",
    "CONFIG",
    "SUBSCRIBE",
    "COMMAND",
    "ROLE",
];
/// Commands that change something each time.
const ONCE: [&str; 3] = ["RPUSH", "LPOP", "HINCRBY"];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let commands = recorded().await?;
    let mut options = cost::options();
    options.counts = true;
    let debug = ["--enable-debug-command", "yes"];
    options.args.extend(debug.map(str::to_owned));
    let server = RedisServer::start_with(options)?;
    // It does nothing of its own accord.
    server.cli(&["DEBUG", "PAUSE-CRON", "1"])?;
    let mut player = Player::new(&server)?;
    let mut counted: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut name = None;
    for command in commands {
        if command.is(&[MARK]) {
            name = Some(String::from_utf8_lossy(&command.words[1]).into_owned());
        } else if command.inner.is_empty() {
            if !command.is(&OF_CONNECTIONS) {
                // Functions are unknown the first time.
                drop(player.run(&command.words));
            }
        } else if let Some(name) = name.take_if(|_| command.is(&["FCALL"])) {
            server.instructions()?;
            player.run(&command.words)?;
            let counts = counted.entry(name.clone()).or_default();
            counts.push(server.instructions()?);
            if let Some(folder) = std::env::args().nth(1) {
                let file = PathBuf::from(folder).join(name.replace([' ', ','], "-"));
                std::fs::copy(server.profile()?, file)?;
            }
            // What depends on the time becomes as it was recorded.
            for words in command.inner.iter().filter(|words| !is(words, &ONCE)) {
                player.run(words)?;
            }
        } else {
            // Not the function, which would compute other numbers from another time.
            for words in &command.inner {
                player.run(words)?;
            }
        }
    }
    println!(
        "{:<40}{:>9}{:>9}{:>7}",
        "instructions", "least", "median", "count"
    );
    for (name, mut counts) in counted {
        counts.sort_unstable();
        let (least, median) = (counts[0], counts[counts.len() / 2]);
        println!("{name:<40}{least:>9}{median:>9}{:>7}", counts.len());
    }
    Ok(())
}

/// The commands of some instances.
async fn recorded() -> anyhow::Result<Vec<Recorded>> {
    let server = RedisServer::start_with(cost::options())?;
    // Some functions are loaded at the beginning.
    let recorder = Recorder::start(&server)?;
    let redis = cost::connect(&server).await?;
    let driver = Driver { server, redis };
    for number in 0..INSTANCES {
        driver.calls(&format!("calls-{number}")).await?;
        driver.turns(&format!("turns-{number}")).await?;
        driver.forks(&format!("forks-{number}")).await?;
        driver.nested(&format!("nested-{number}")).await?;
    }
    driver.server.cli(&["DBSIZE"])?;
    recorder.until("DBSIZE")
}

struct Driver {
    server: RedisServer,
    redis: Redis,
}

impl Driver {
    /// Answers of calls, each with the next call. The lease is kept.
    async fn calls(&self, id: &str) -> anyhow::Result<()> {
        let root = self.created(id).await;
        let mut turn = self.turn(&root).await;
        for call in 1..=EACH {
            turn.1.cursor = kit::calling(call);
            let name = match call {
                1 => "first call, with its lease",
                _ => "answer and next call",
            };
            let token = self.commit(name, &turn, vec![], &[], false).await?;
            turn.0.token = token.unwrap_or(turn.0.token);
            turn.1.rev += 1;
        }
        self.end(&turn).await
    }

    /// Turns that take no lease.
    async fn turns(&self, id: &str) -> anyhow::Result<()> {
        let root = self.created(id).await;
        for number in 1..=EACH {
            let mut turn = self.turn(&root).await;
            turn.1.cursor = kit::blocked(Work::Sleep);
            let disarm = (number > 1).then(|| Command::Disarm(number - 1));
            let arm = Command::Arm(kit::timer(number, 4_000_000_000_000));
            let commands = disarm.into_iter().chain([arm]).collect();
            self.commit("turn with a timer", &turn, commands, &[], true)
                .await?;
            let mut turn = self.turn(&root).await;
            turn.1.cursor = kit::blocked(Work::Sleep);
            self.commit("turn without a lease", &turn, vec![], &[], true)
                .await?;
        }
        let turn = self.turn(&root).await;
        self.end(&turn).await
    }

    /// Forks, each after another, of branches that report with their first commit.
    async fn forks(&self, id: &str) -> anyhow::Result<()> {
        let root = self.created(id).await;
        let fork = |number| kit::fork("r", number, BRANCHES, BRANCHES, BRANCHES);
        for number in 1..=EACH {
            let mut turn = self.turn(&root).await;
            turn.1.cursor = kit::forked(number, BRANCHES);
            let joined = format!("fork-{}-1", number - 1);
            let (name, commands, consumed) = match number {
                1 => ("fork", vec![fork(1)], &[][..]),
                _ => {
                    let commands = vec![Command::CloseFork(number - 1), fork(number)];
                    ("join and next fork", commands, &[joined][..])
                }
            };
            self.commit(name, &turn, commands, consumed, true).await?;
            for index in 0..BRANCHES {
                let branch = scope(&root, &format!("r.{number}.{index}"));
                let name = match index + 1 < BRANCHES {
                    true => "end of a branch",
                    false => "end of the last branch",
                };
                self.report(name, &branch).await?;
            }
        }
        let turn = self.turn(&root).await;
        self.end(&turn).await
    }

    /// Branches that commit before their end, in forks that close early.
    async fn nested(&self, id: &str) -> anyhow::Result<()> {
        let root = self.created(id).await;
        let mut turn = self.turn(&root).await;
        turn.1.cursor = kit::forked(1, 3);
        let fork = vec![kit::fork("r", 1, 3, 3, 1)];
        self.commit("fork", &turn, fork, &[], true).await?;
        for index in 0..2 {
            let branch = scope(&root, &format!("r.1.{index}"));
            let mut turn = self.turn(&branch).await;
            turn.1.cursor = kit::blocked(Work::Sleep);
            self.commit("first commit of a branch", &turn, vec![], &[], true)
                .await?;
            let mut turn = self.turn(&branch).await;
            turn.1.cursor = kit::blocked(Work::Sleep);
            self.commit("next commit of a branch", &turn, vec![], &[], true)
                .await?;
        }
        self.report("end of a branch that had a record", &scope(&root, "r.1.0"))
            .await?;
        let mut turn = self.turn(&root).await;
        turn.1.cursor = kit::blocked(Work::Sleep);
        let close = vec![Command::CloseFork(1)];
        let consumed = ["fork-1-1".to_owned()];
        self.commit("join with branches left", &turn, close, &consumed, true)
            .await?;
        Ok(())
    }

    async fn created(&self, id: &str) -> ScopeRef {
        self.redis.create(kit::new(id)).await.unwrap();
        ScopeRef::root(InstanceId::new(id))
    }

    async fn turn(&self, scope: &ScopeRef) -> (Lease, Scope) {
        let (lease, mut scope) = read(&self.redis, scope).await;
        if scope.id.is_root() {
            scope.data = Data::string("x".repeat(400));
        }
        (lease, scope)
    }

    async fn report(&self, name: &'static str, branch: &ScopeRef) -> anyhow::Result<()> {
        let mut turn = self.turn(branch).await;
        turn.1.cursor = Cursor::Ended;
        let report = vec![Command::Report(kit::done())];
        self.commit(name, &turn, report, &[], true).await?;
        Ok(())
    }

    async fn end(&self, turn: &(Lease, Scope)) -> anyhow::Result<()> {
        let mut turn = turn.clone();
        turn.1.cursor = Cursor::Ended;
        let end = Command::End {
            status: EndStatus::Completed,
            output: Some(data!({"done": true})),
            error: None,
        };
        self.commit("end", &turn, vec![end], &[], true).await?;
        Ok(())
    }

    /// Counts the instructions of a commit.
    async fn commit(
        &self,
        name: &'static str,
        (lease, scope): &(Lease, Scope),
        commands: Vec<Command>,
        consumed: &[String],
        release: bool,
    ) -> anyhow::Result<Option<u64>> {
        self.server.cli(&[MARK, name])?;
        let token = commit(&self.redis, lease, scope, commands, consumed, release).await;
        Ok(token)
    }
}

fn scope(root: &ScopeRef, name: &str) -> ScopeRef {
    ScopeRef {
        instance: root.instance.clone(),
        scope: ScopeId::new(name),
    }
}
