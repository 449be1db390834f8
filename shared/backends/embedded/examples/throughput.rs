//! Measures the commits per second of the durable store: `cargo run --release -p swirl-embedded --example throughput
//! commits [FOLDER]`. With `waiting`, it measures the memory of a hundred thousand waiting instances.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use futures::future::join_all;
use swirl_contract::kit;
use swirl_embedded::{Embedded, Options};
use swirl_model::Data;
use swirl_model::event::{Command, Event, HistoryEntry};
use swirl_model::ids::ScopeId;
use swirl_model::scope::Work;
use swirl_ports::execution::Record;
use swirl_ports::{Acquired, Commit, Committed, EventLog, ExecutionStore, Listening};

const SPAN: Duration = Duration::from_secs(3);

/// Commits to one instance until the time is up. Returns the duration of each commit.
async fn committer(store: Arc<Embedded>, id: String, until: Instant) -> Vec<Duration> {
    store.create(kit::new(&id)).await.unwrap();
    let root = kit::root(&id);
    let Acquired::Held(held) = store.acquire(&root, 1).await.unwrap() else {
        panic!("busy")
    };
    let Record::Scope(mut scope) = held.record else {
        panic!("no record")
    };
    scope.data.set("text", Data::string("x".repeat(500)));
    scope.cursor = kit::blocked(Work::Begin);
    let mut waits = Vec::new();
    while Instant::now() < until {
        let history = HistoryEntry {
            data: None,
            at: kit::at(0),
            scope: ScopeId::root(),
            event: Event::Joined {
                fork: 1,
                in_state: None,
            },
            data_until: None,
        };
        let commit = Commit {
            lease: held.lease.clone(),
            scope: scope.clone(),
            consumed: vec![],
            refused: Vec::new(),
            history: vec![history],
            commands: vec![],
            at: kit::at(0),
            require_unchanged_inbox: false,
            fits: false,
            release: false,
            lease_ms: 1,
        };
        let before = Instant::now();
        let Committed::Done { .. } = store.commit(commit).await.unwrap() else {
            panic!("refused")
        };
        waits.push(before.elapsed());
        scope.rev += 1;
    }
    waits
}

fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|kb| kb.parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}

fn main() {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_else(|| "commits".to_owned());
    let folder: PathBuf = args
        .next()
        .unwrap_or_else(|| "target/throughput".to_owned())
        .into();
    match what.as_str() {
        "commits" => commits(&folder),
        "waiting" => waiting(&folder, true),
        "waiting-in-memory" => waiting(&folder, false),
        other => println!("'{other}' is none of commits, waiting, waiting-in-memory"),
    }
    let _ = std::fs::remove_dir_all(&folder);
}

fn commits(folder: &PathBuf) {
    for durable in [false, true] {
        for count in [1, 16, 256] {
            let _ = std::fs::remove_dir_all(folder);
            let store = Arc::new(match durable {
                true => Embedded::open(folder, Options::default()).unwrap(),
                false => Embedded::memory(),
            });
            let begin = Instant::now();
            let until = begin + SPAN;
            // Everything runs on one thread, since only the store is measured.
            let all = (0..count).map(|n| committer(store.clone(), format!("i{n}"), until));
            let mut waits: Vec<Duration> = block_on(join_all(all)).into_iter().flatten().collect();
            waits.sort_unstable();
            let rate = waits.len() as f64 / begin.elapsed().as_secs_f64();
            let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
            println!(
                "{} {count:>3} committers: {rate:>9.0} commits/s, median {:?}, 99% {:?}",
                if durable { "durable" } else { "memory " },
                at(0.5),
                at(0.99),
            );
        }
    }
}

/// Instances that each wait for one correlated event.
fn waiting(folder: &PathBuf, durable: bool) {
    const COUNT: usize = 100_000;
    let _ = std::fs::remove_dir_all(folder);
    let before = resident_mb();
    let store = Arc::new(match durable {
        true => Embedded::open(folder, Options::default()).unwrap(),
        false => Embedded::memory(),
    });
    let begin = Instant::now();
    let one = async |n: usize| {
        let id = format!("instance-{n:08}");
        store.create(kit::new(&id)).await.unwrap();
        let Acquired::Held(held) = store.acquire(&kit::root(&id), 1).await.unwrap() else {
            panic!("busy")
        };
        let Record::Scope(mut scope) = held.record else {
            panic!("no record")
        };
        let wait = kit::subscription(1, vec![kit::filter("t", &[("order", None)])]);
        scope.wait = Some(wait.clone());
        scope.cursor = kit::blocked(Work::Events);
        let commit = Commit {
            lease: held.lease.clone(),
            scope,
            consumed: vec![],
            refused: Vec::new(),
            history: vec![],
            commands: vec![
                Command::Correlate(vec![("order".into(), n.to_string())]),
                Command::Subscribe(wait),
            ],
            at: kit::at(0),
            require_unchanged_inbox: false,
            fits: false,
            release: false,
            lease_ms: 1,
        };
        store.commit(commit).await.unwrap();
        store.release(&held.lease).await.unwrap();
    };
    for chunk in 0..COUNT / 1000 {
        block_on(join_all((0..1000).map(|n| one(chunk * 1000 + n))));
    }
    println!(
        "{COUNT} waiting: {:?} to make, {} MB more",
        begin.elapsed(),
        resident_mb() - before
    );
    let begin = Instant::now();
    for n in 0..1000 {
        let order = (n * 97).to_string();
        let event = kit::event(&n.to_string(), "t", &[("order", &order)]);
        let ingested =
            block_on(store.ingest(&event, Listening::new(&[], &[]), kit::at(0))).unwrap();
        assert_eq!(ingested.woken.len(), 1);
    }
    println!("one event to one of them: {:?}", begin.elapsed() / 1000);
    drop(store);
    if durable {
        let before = resident_mb();
        let begin = Instant::now();
        let store = Embedded::open(folder, Options::default()).unwrap();
        println!(
            "opened again in {:?}, {} MB (was {before})",
            begin.elapsed(),
            resident_mb()
        );
        drop(store);
    }
}
