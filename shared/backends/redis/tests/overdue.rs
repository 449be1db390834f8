//! If one workflow has thousands of waiting scopes, scopes of others that lost their task are still found.

use std::collections::BTreeSet;
use std::sync::Arc;

use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_ports::ExecutionStore as _;
use swirl_redis::{Options, Redis};
use swirl_servers::RedisServer;

const FLOOD: usize = 300;
const FEW: usize = 8;
const HOUR_MS: u64 = 60 * 60 * 1_000;

/// Scopes that a search finds, at most `of_each` of each workflow.
async fn found_of_each(store: &Redis, limit: usize, of_each: usize) -> Vec<ScopeRef> {
    let found = store.runnable_of_each(limit, of_each).await.unwrap();
    assert!(found.iter().all(|late| late.workflow.is_some()));
    found.into_iter().map(|late| late.scope).collect()
}

/// Has its own server. Everything is overdue at once, and again after `repeat_ms`.
async fn backend(repeat_ms: u64) -> (Arc<Redis>, Backend) {
    let server = RedisServer::start().unwrap();
    let options = Options {
        grace_ms: 0,
        repeat_ms,
        ..Options::single(server.url())
    };
    let store = Arc::new(Redis::connect(options).await.unwrap());
    (store.clone(), Backend::of(store, server))
}

#[tokio::test(flavor = "multi_thread")]
async fn some_scopes_of_each_workflow_are_found() {
    // A scope that was examined isn't examined again.
    let (store, b) = backend(HOUR_MS).await;
    for n in 0..FLOOD {
        b.create(new(&format!("flood-{n}"))).await;
    }
    let others = ["one", "two"].map(|id| {
        let mut new = new(id);
        new.header.definition.workflow = "other".into();
        new
    });
    for other in others {
        b.create(other).await;
    }
    let mut found = Vec::new();
    let mut sweeps = 0;
    while found.len() < FEW + 2 {
        let more = found_of_each(&store, FLOOD + 2, FEW).await;
        found.extend(more);
        sweeps += 1;
        assert!(sweeps <= 3, "{found:?}");
    }
    assert!(found.contains(&root("one")) && found.contains(&root("two")));
    assert!(found.len() <= FEW * sweeps + 2, "{found:?}");
}

/// Beside a flood, a workflow with more lost tasks than one search returns gets all of them back within a few searches,
/// although a search postpones what it has looked at.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_search_leaves_out_is_first_in_the_next_one() {
    const LOST: usize = 5 * FEW;
    let (store, b) = backend(HOUR_MS).await;
    for n in 0..FLOOD {
        b.create(new(&format!("flood-{n}"))).await;
    }
    for n in 0..LOST {
        let mut new = new(&format!("lost-{n}"));
        new.header.definition.workflow = "other".into();
        b.create(new).await;
    }
    let mut found = BTreeSet::new();
    for _ in 0..20 {
        let some = found_of_each(&store, FLOOD + LOST, FEW).await;
        let lost = |scope: &&ScopeRef| scope.instance.as_str().starts_with("lost-");
        assert!(some.len() <= 2 * FEW, "{some:?}");
        assert!(some.iter().filter(lost).count() <= FEW, "{some:?}");
        found.extend(some.into_iter().filter(|scope| lost(&scope)));
    }
    assert_eq!(found.len(), LOST);
}

/// Scopes that were left out don't hide younger ones, in any shard.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_that_is_left_out_hides_no_other_scope() {
    const SHARDS: u16 = 2;
    // Twenty of each shard are looked at.
    const LOOKED_AT: usize = 40;
    const LOST: usize = 10;
    let server = RedisServer::start().unwrap();
    let options = Options {
        grace_ms: 0,
        repeat_ms: HOUR_MS,
        shards: SHARDS,
        ..Options::single(server.url())
    };
    let store = Arc::new(Redis::connect(options).await.unwrap());
    let b = Backend::of(store.clone(), server);
    for n in 0..FLOOD {
        b.create(new(&format!("flood-{n}"))).await;
    }
    // Time has to pass: they become overdue after all others.
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    for n in 0..LOST {
        let mut new = new(&format!("lost-{n}"));
        new.header.definition.workflow = "other".into();
        b.create(new).await;
    }
    let mut found = BTreeSet::new();
    for _ in 0..FLOOD / 10 {
        let some = found_of_each(&store, LOOKED_AT, FEW).await;
        let lost = some
            .into_iter()
            .filter(|scope| scope.instance.as_str().starts_with("lost-"));
        found.extend(lost);
    }
    assert_eq!(found.len(), LOST);
}

/// The other shards get their turn even if the first ones always fill the limit.
#[tokio::test(flavor = "multi_thread")]
async fn all_shards_get_their_turn() {
    // Scopes that were found stay overdue.
    let (store, b) = backend(0).await;
    let all: Vec<String> = (0..2_000).map(|n| format!("i-{n}")).collect();
    for id in &all {
        b.create(new(id)).await;
    }
    let mut found = BTreeSet::new();
    for _ in 0..64 {
        let some = store.runnable(32).await.unwrap();
        assert_eq!(some.len(), 32);
        found.extend(some);
    }
    // Sixteen from each of 64 shards, which is all that a shard returns while they stay overdue.
    assert!(found.len() >= 64 * 16 * 9 / 10, "{}", found.len());
}

/// A search for effects that finds more than wanted leaves the rest for the next one.
#[tokio::test(flavor = "multi_thread")]
async fn no_effect_is_postponed_without_being_returned() {
    const ALL: usize = 200;
    const AT_ONCE: usize = 10;
    let (store, b) = backend(HOUR_MS).await;
    for n in 0..ALL {
        let id = InstanceId::new(format!("i-{n}"));
        b.create(new(id.as_str())).await;
        store.suspend(&id, true, None).await.unwrap().unwrap();
    }
    let mut found = BTreeSet::new();
    for search in 0..ALL / AT_ONCE {
        let some = store.unflushed(AT_ONCE).await.unwrap();
        assert_eq!(some.len(), AT_ONCE, "search {search}");
        found.extend(some.into_iter().map(|entry| entry.instance));
    }
    assert_eq!(found.len(), ALL);
    // Now all effects are postponed.
    assert_eq!(store.unflushed(AT_ONCE).await.unwrap(), []);
}
