//! Ten thousand branches that end at the same time, and their join.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::iter;
use redis::Value;
use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_model::Data;
use swirl_model::event::Command;
use swirl_model::scope::{BranchResult, Cursor};
use swirl_ports::*;
use swirl_redis::{Options, Redis};
use swirl_servers::RedisServer;

const BRANCHES: u32 = 10_000;
/// The number of concurrent requests.
const AT_ONCE: usize = 500;

fn result(index: u32) -> BranchResult {
    BranchResult::Done {
        merges: Vec::new(),
        result: Some(Data::string(format!("{index:0>200}"))),
        ended: None,
        context: None,
    }
}

/// The longest command since the last call: microseconds, and its name.
fn longest(server: &RedisServer) -> (i64, String) {
    let client = redis::Client::open(server.url()).unwrap();
    let mut link = client.get_connection().unwrap();
    let mut ask = |what: &str, count: Option<usize>| -> Value {
        let mut ask = redis::cmd("SLOWLOG");
        ask.arg(what).arg(count);
        ask.query(&mut link).unwrap()
    };
    let entries: Vec<Vec<Value>> = redis::from_redis_value(ask("GET", Some(128))).unwrap();
    ask("RESET", None);
    let took = entries.into_iter().map(|mut entry| {
        let words: Vec<Vec<u8>> = redis::from_redis_value(entry.swap_remove(3)).unwrap();
        let micros: i64 = redis::from_redis_value(entry.swap_remove(2)).unwrap();
        (micros, String::from_utf8_lossy(&words[0]).into_owned())
    });
    took.max().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_branches_end_together() {
    let server = RedisServer::start().unwrap();
    let set = ["CONFIG", "SET", "slowlog-log-slower-than", "500"];
    server.cli(&set).unwrap();
    let options = Options {
        response_timeout_ms: 60_000,
        ..Options::single(server.url())
    };
    let store = Arc::new(Redis::connect(options).await.unwrap());
    let b = Backend::of(store.clone(), ());
    b.create(new("a")).await;
    let Command::Fork(mut wide) = fork("r", 1, BRANCHES, BRANCHES, BRANCHES) else {
        unreachable!()
    };
    wide.results_max = 0;
    let begun = change(vec![Command::Fork(wide)]).at(forked(1, BRANCHES));
    b.act(&root("a"), begun).await;
    println!("fork: the longest command takes {:?}", longest(&server));

    let branches = (0..BRANCHES).map(|index| scope("a", &format!("r.1.{index}")));
    let held: Vec<Held> = iter(branches.map(|branch| {
        let b = &b;
        async move { b.hold_lazily(&branch).await }
    }))
    .buffered(AT_ONCE)
    .collect()
    .await;
    longest(&server);
    let before = store.second_reads();
    let commits = held.iter().zip(0..).map(|(held, index)| {
        let report = change(vec![Command::Report(result(index))]).at(Cursor::Ended);
        let last = Change {
            release: true,
            ..report
        };
        b.commit_of(held, last)
    });
    let committed: Vec<Committed> = iter(commits).buffer_unordered(AT_ONCE).collect().await;
    println!("branches: the longest command takes {:?}", longest(&server));
    let refused = committed
        .iter()
        .filter(|committed| !matches!(committed, Committed::Done { .. }));
    assert_eq!(refused.count(), 0);
    assert_eq!(store.second_reads(), before, "none is read again");
    let complete = committed.iter().filter(
        |committed| matches!(committed, Committed::Done { joins, .. } if *joins == [root("a")]),
    );
    assert_eq!(complete.count(), 1);
    let woken = committed
        .iter()
        .filter(|committed| matches!(committed, Committed::Done { wake, .. } if !wake.is_empty()));
    assert_eq!(woken.count(), 0);

    let mut held = b.hold_lazily(&root("a")).await;
    assert_eq!(held.large_joins, [1]);
    let results = store.read_results(&root("a"), 1).await.unwrap();
    assert_eq!(results.len(), BRANCHES as usize);
    assert!(
        (0..)
            .zip(&results)
            .all(|(at, (index, found))| at == *index && *found == result(at))
    );
    println!("read: the longest command takes {:?}", longest(&server));
    let before = store.second_reads();
    let join = Change {
        release: true,
        ..change(vec![Command::CloseFork(1)]).consumed(&["fork-1-1"])
    };
    b.commit(&mut held, join).await;
    println!("join: the longest command takes {:?}", longest(&server));
    assert_eq!(store.second_reads(), before);
    let left = server.cli(&["--scan"]).unwrap();
    let instance = left.lines().find(|key| key.ends_with(":i:a")).unwrap();
    let fields: usize = server
        .cli(&["HLEN", instance])
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(fields < 20, "no result is left: {fields} fields");
}
