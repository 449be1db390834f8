//! History keeps the newest lines, however they were added, and packs many lines into few elements.

use std::sync::Arc;

use swirl_contract::Backend;
use swirl_contract::first_turn::{ended_at_once, history};
use swirl_contract::history::append;
use swirl_contract::kit::*;
use swirl_model::event::{Event, HistoryEntry};
use swirl_model::ids::{InstanceId, ScopeId};
use swirl_ports::{HistoryPage, HistoryPart};
use swirl_redis::{Options, Redis};
use swirl_servers::RedisServer;

async fn connect(server: &RedisServer, history_max: u64) -> Backend {
    let options = Options {
        history_max,
        ..Options::single(server.url())
    };
    let store = Redis::connect(options).await.unwrap();
    Backend::of(Arc::new(store), ())
}

/// Commits one line per number.
async fn add(b: &Backend, forks: std::ops::Range<u32>) {
    let entry = |fork| HistoryEntry {
        data: None,
        at: at(0),
        scope: ScopeId::root(),
        event: Event::Joined {
            fork,
            in_state: None,
        },
        data_until: None,
    };
    append(b, forks.map(entry).collect()).await;
}

/// The kept lines, of this total number.
async fn found(b: &Backend, all: u64) -> Vec<u32> {
    let kept = b.store.kept_history(&InstanceId::new("a")).await.unwrap();
    let history = kept.entries;
    assert_eq!(kept.gone + history.len() as u64, all);
    let forks = history.into_iter().map(|entry| match entry.event {
        Event::Joined { fork, .. } => fork,
        _ => panic!("{entry:?}"),
    });
    forks.collect()
}

fn elements(server: &RedisServer) -> usize {
    let key = server
        .cli(&["--scan", "--pattern", "{swirl:*}:h:a"])
        .unwrap();
    let length = server.cli(&["LLEN", key.trim()]).unwrap();
    length.trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_history_is_dropped() {
    let server = RedisServer::start().unwrap();
    let b = connect(&server, 3).await;
    b.create(new("a")).await;
    let mut all = Vec::new();
    // The last commits have more lines than may be kept, one of them in several elements.
    for forks in [0..2, 2..2, 2..4, 4..6, 6..7, 7..11, 11..12, 12..262] {
        let lines = u64::from(forks.end);
        add(&b, forks).await;
        all.push((found(&b, lines).await, elements(&server)));
    }
    let wanted = [
        (vec![0, 1], 1),
        (vec![0, 1], 1),
        (vec![1, 2, 3], 2),
        (vec![3, 4, 5], 2),
        (vec![4, 5, 6], 2),
        (vec![8, 9, 10], 1),
        (vec![9, 10, 11], 2),
        (vec![259, 260, 261], 1),
    ];
    assert_eq!(all, wanted);
}

/// A commit with many lines needs few elements, and so does the rest of a thousand lines.
#[tokio::test(flavor = "multi_thread")]
async fn many_lines_need_few_elements() {
    let server = RedisServer::start().unwrap();
    let b = connect(&server, 100_000).await;
    b.create(new("a")).await;
    add(&b, 0..450).await;
    add(&b, 450..1_000).await;
    assert_eq!(found(&b, 1_000).await, (0..1_000).collect::<Vec<_>>());
    assert_eq!(elements(&server), 5 + 6);
}

/// An instance that runs inline keeps no more history than one that runs step by step.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_turn_keeps_as_much_history() {
    let server = RedisServer::start().unwrap();
    let b = connect(&server, 250).await;
    b.create(ended_at_once("a", 1_200)).await;
    let found = b.store.history(&InstanceId::new("a")).await.unwrap();
    assert_eq!(found, history(1_200)[950..]);
    assert_eq!(elements(&server), 3);
}

/// If the limit is lowered, the rest is dropped gradually.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_history_is_shortened_in_steps() {
    let server = RedisServer::start().unwrap();
    let b = connect(&server, 100_000).await;
    b.create(new("a")).await;
    for line in 0..1_500 {
        add(&b, line..line + 1).await;
    }
    let b = connect(&server, 10).await;
    let mut left = Vec::new();
    for line in 1_500..1_502 {
        add(&b, line..line + 1).await;
        assert_eq!(
            found(&b, u64::from(line) + 1).await,
            (line - 9..=line).collect::<Vec<_>>()
        );
        left.push(elements(&server));
    }
    assert_eq!(left, [501, 10]);
}

/// A page has only kept lines, even if the list has more.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_only_kept_lines() {
    let server = RedisServer::start().unwrap();
    let b = connect(&server, 100_000).await;
    b.create(new("a")).await;
    for first in (0..120).step_by(4) {
        add(&b, first..first + 4).await;
    }
    let b = connect(&server, 10).await;
    let id = InstanceId::new("a");
    let forks = |page: &HistoryPage| -> Vec<u32> {
        let entries = page.entries.iter();
        entries
            .map(|entry| match entry.event {
                Event::Joined { fork, .. } => fork,
                _ => panic!("{entry:?}"),
            })
            .collect()
    };
    let part = HistoryPart::After { known: 3, limit: 4 };
    let page = b.store.history_page(&id, part).await.unwrap();
    assert_eq!((page.before, page.total), (110, 120));
    assert_eq!(forks(&page), [110, 111, 112, 113]);
    let page = b.store.history_page(&id, HistoryPart::Last(50)).await;
    let page = page.unwrap();
    assert_eq!((page.before, forks(&page).len()), (110, 10));
}
