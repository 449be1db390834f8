//! Builds with different record formats in one namespace.

use std::time::Duration;

use swirl_contract::kit::*;
use swirl_ports::*;
use swirl_redis::{ConnectError, FORMAT, Options, Redis};
use swirl_servers::RedisServer;
use tokio::time::timeout;

#[tokio::test]
async fn an_older_build_stops_and_is_refused() {
    let server = RedisServer::start().unwrap();
    let build = |format| {
        Redis::connect(Options {
            format,
            takeover_ms: 1,
            ..Options::single(server.url())
        })
    };
    let own = build(FORMAT).await.unwrap();
    let other = build(FORMAT).await.unwrap();
    own.create(new("a")).await.unwrap();
    let seen = other.instance(&root("a").instance).await.unwrap();
    assert!(seen.is_some(), "builds of one format work side by side");

    let newer = build(FORMAT + 1).await.unwrap();
    assert!(newer.instance(&root("a").instance).await.unwrap().is_some());
    let long = Duration::from_secs(120);
    assert_eq!(timeout(long, own.outdated()).await.unwrap(), FORMAT + 1);
    let Err(refused) = build(FORMAT).await else {
        panic!("an older build may write again");
    };
    assert!(
        matches!(refused, ConnectError::Newer { found, own, .. } if (found, own) == (FORMAT + 1, FORMAT)),
        "{refused}"
    );
    let notified = refused.to_string();
    assert!(
        notified.contains("written by a newer build") && notified.contains("at least as new"),
        "{notified}"
    );
    // Builds with the same or a newer format connect and disconnect.
    build(FORMAT + 1).await.unwrap();
    build(FORMAT + 2).await.unwrap();
    assert!(build(FORMAT + 1).await.is_err());
}

/// A namespace without a format has the first one.
#[tokio::test]
async fn records_without_a_format_are_read() {
    let server = RedisServer::start().unwrap();
    let options = Options::single(server.url());
    let store = Redis::connect(options.clone()).await.unwrap();
    store.create(new("a")).await.unwrap();
    let notes = format!("{}:meta", options.namespace);
    assert_eq!(server.cli(&["HDEL", &notes, "format"]).unwrap().trim(), "1");
    let store = Redis::connect(options).await.unwrap();
    assert!(store.instance(&root("a").instance).await.unwrap().is_some());
}
