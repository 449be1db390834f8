//! The cost of a fork in Redis commands, from the commit that forks to the one that joins, with the driver's requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_model::event::Command;
use swirl_model::scope::Cursor;
use swirl_redis::{Options, Redis};
use swirl_servers::RedisServer;

/// How often each command ran. Functions run most of them.
fn counts(server: &RedisServer) -> BTreeMap<String, u64> {
    let text = server.cli(&["INFO", "commandstats"]).unwrap();
    let lines = text.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
    });
    let own = ["info", "config|resetstat"];
    lines
        .filter(|(name, _): &(String, u64)| !own.contains(&name.as_str()))
        .collect()
}

async fn cost(branches: u32) -> BTreeMap<String, u64> {
    let server = RedisServer::start().unwrap();
    let store = Redis::connect(Options::single(server.url())).await.unwrap();
    let b = Backend::of(Arc::new(store), ());
    let mut counted = BTreeMap::new();
    // The first round loads the functions.
    for id in ["a", "b"] {
        b.create(new(id)).await;
        server.cli(&["CONFIG", "RESETSTAT"]).unwrap();
        let released = |change: Change| Change {
            release: true,
            ..change
        };
        let forks = change(vec![fork("r", 1, branches, branches, branches)]);
        let mut held = b.hold_lazily(&root(id)).await;
        b.commit(&mut held, released(forks.at(forked(1, branches))))
            .await;
        for index in 0..branches {
            let mut held = b.hold_lazily(&scope(id, &format!("r.1.{index}"))).await;
            let report = change(vec![Command::Report(done())]).at(Cursor::Ended);
            b.commit(&mut held, released(report)).await;
        }
        let mut held = b.hold_lazily(&root(id)).await;
        if branches > 64 {
            let results = b.store.read_results(&root(id), 1).await.unwrap();
            assert_eq!(results.len(), branches as usize);
        }
        let join = change(vec![Command::CloseFork(1)]).consumed(&["fork-1-1"]);
        b.commit(&mut held, released(join)).await;
        counted = counts(&server);
    }
    counted
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_costs_no_more_than_its_branches() {
    for branches in [10, 100] {
        let counted = cost(branches).await;
        println!("{branches} branches: {counted:?}");
        // One forks, one joins, and each branch has one.
        assert_eq!(counted["fcall"], u64::from(branches) + 2);
        // Each function has one, but the process that forks reads nothing of the branches; results that are many have
        // pages of their own.
        let most = u64::from(branches) + 6;
        assert!(counted["hmget"] <= most, "{counted:?}");
    }
}
