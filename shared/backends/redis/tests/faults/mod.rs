//! Faults that only a real server can show: it goes away and comes back, forgets scripts, or a connection breaks.

mod budget;
mod connections;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{Either, join, select};
use futures::stream;
use swirl_contract::first_turn::{ended_at_once, turn};
use swirl_contract::kit::*;
use swirl_contract::{Backend, kit};
use swirl_model::data;
use swirl_model::event::{Command, Input};
use swirl_model::instance::EndStatus;
use swirl_model::scope::{Cursor, Work};
use swirl_ports::{Created, Error, ExecutionStore, Filter, InboxItem};
use swirl_redis::{ConnectError, Options, Redis, Severity};
use swirl_servers::{
    PATIENCE, Proxy, RedisOptions, RedisSentinels, RedisServer, eventually, until,
};
use tokio::time::{sleep, timeout};

fn quick(options: Options) -> Options {
    Options {
        grace_ms: 0,
        repeat_ms: 0,
        connect_timeout_ms: 10_000,
        response_timeout_ms: 10_000,
        retry_ms: 300,
        // Polling must not replace a lost message.
        poll_ms: 60 * 60 * 1_000,
        ..options
    }
}

fn with(store: Redis) -> Backend {
    let store = std::sync::Arc::new(store);
    Backend::of(store, ())
}

async fn connect(options: Options) -> Backend {
    with(Redis::connect(quick(options)).await.unwrap())
}

fn call(call: u32) -> InboxItem {
    InboxItem::new(Input::CallDone {
        call,
        result: Ok(data!(call)),
    })
}

/// Repeats an attempt until it succeeds. All errors must be retryable.
async fn until_done<T>(mut attempt: impl AsyncFnMut() -> Result<T, Error>) -> T {
    eventually("the server", async || match attempt().await {
        Ok(done) => Some(done),
        Err(error) => {
            assert!(error.is_retryable(), "{error}");
            None
        }
    })
    .await
}

/// Checks that a message wakes a waiting holder. The connection for messages may still be broken; the next message then
/// wakes it.
async fn is_woken(b: &Backend, held: &swirl_ports::Held) {
    let wait = timeout(PATIENCE, b.store.wait_input(&held.lease));
    let add = async {
        for number in 1.. {
            // Time has to pass: so that it has polled once and only listens.
            sleep(Duration::from_millis(100)).await;
            until_done(async || b.store.add_input(&held.lease.scope, call(number)).await).await;
        }
    };
    match select(Box::pin(wait), Box::pin(add)).await {
        Either::Left((woken, _)) => woken.unwrap(),
        Either::Right(((), _)) => unreachable!("inputs are added for ever"),
    }
    until_done(async || b.store.drain(&held.lease).await)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn work_continues_after_a_restart() {
    let mut server = RedisServer::durable().unwrap();
    let b = connect(Options::single(server.url())).await;
    b.create(new("a")).await;
    let mut held = b.hold(&root("a")).await;
    b.commit(&mut held, change(vec![]).at(blocked(Work::Events)))
        .await;
    server.kill().unwrap();
    let error = b.store.renew(&held.lease, LEASE_MS).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    server.restart().unwrap();
    assert!(until_done(async || b.store.renew(&held.lease, LEASE_MS).await).await);
    b.commit(&mut held, change(vec![])).await;
    let scopes = b.store.scopes(&root("a").instance).await.unwrap();
    assert_eq!(scopes[0].rev, 2, "the commit is stored");
    // Messages arrive again, too.
    is_woken(&b, &held).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forgotten_scripts_are_sent_again() {
    let server = RedisServer::start().unwrap();
    let b = connect(Options::single(server.url())).await;
    b.create(new("a")).await;
    let forget = || {
        server.cli(&["SCRIPT", "FLUSH"]).unwrap();
        server.cli(&["FUNCTION", "FLUSH"]).unwrap();
    };
    forget();
    let mut held = b.hold(&root("a")).await;
    forget();
    assert_eq!(b.store.runnable(10).await.unwrap(), []);
    b.commit(&mut held, change(vec![])).await;
    b.commit(&mut held, change(vec![])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_continues_after_cut_connections() {
    let server = RedisServer::start().unwrap();
    let proxy = Proxy::start(server.address()).unwrap();
    let b = connect(Options::single(format!("redis://{}", proxy.address()))).await;
    let ids: Vec<String> = (0..200).map(|n| format!("i{n}")).collect();
    let count = AtomicUsize::new(0);
    let work = stream::iter(&ids).for_each_concurrent(8, async |id| {
        until_done(async || b.store.create(new(id)).await).await;
        // Cut the connections in the middle of the work.
        if (count.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(30) {
            proxy.reset();
        }
    });
    work.await;
    let filter = Filter {
        limit: 1_000,
        ..Filter::default()
    };
    assert_eq!(
        until_done(async || b.store.list(&filter).await).await.len(),
        200
    );
    let held = b.hold(&root("i0")).await;
    is_woken(&b, &held).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_continues_with_another_master() {
    let mut set = RedisSentinels::start(1, 3).unwrap();
    let urls = set.urls().into_iter();
    let urls = urls.map(|url| url.replace("redis://", "redis-sentinel://"));
    let options = Options::sentinel(urls.collect(), RedisSentinels::NAME);
    let b = connect(options).await;
    b.create(new("a")).await;
    // Writes that aren't replicated yet would be lost.
    let size = |n: usize| set.servers()[n].cli(&["DBSIZE"]).unwrap();
    until("the replica's copy", || (size(0) == size(1)).then_some(()));
    set.server_mut(0).unwrap().kill().unwrap();
    let created = until_done(async || b.store.create(new("b")).await).await;
    assert_eq!(created, Created::New);
    assert!(
        b.store
            .instance(&root("a").instance)
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_removed_instances() {
    let server = RedisServer::start().unwrap();
    let options = Options {
        keep_ended_ms: 1_000,
        keep_faulted_ms: 1_000,
        history_max: 1,
        ..quick(Options::single(server.url()))
    };
    let redis = Redis::connect(options).await.unwrap();
    let b = with(redis.clone());
    let mut keyed = new("a");
    keyed.header.key = Some("key".to_owned());
    b.create(keyed).await;
    let commands = vec![
        Command::Arm(timer(1, 50)),
        Command::Publish(event("1", "t", &[])),
        fork("r", 1, 3, 3, 3),
    ];
    let outcome = b
        .act(
            &root("a"),
            change(commands).timers(vec![timer(1, 50)]).at(forked(1, 3)),
        )
        .await;
    let mut branch = b.hold(&scope("a", "r.1.0")).await;
    b.commit(&mut branch, change(vec![]).at(blocked(Work::Sleep)))
        .await;
    let report = change(vec![Command::Report(done())]).at(Cursor::Ended);
    b.act(&scope("a", "r.1.1"), report).await;
    b.store.add_input(&root("a"), call(7)).await.unwrap();
    let mut held = b.hold(&root("a")).await;
    let end = Command::End {
        status: EndStatus::Completed,
        output: Some(data!({})),
        error: None,
    };
    b.commit(&mut held, change(vec![end]).at(Cursor::Ended))
        .await;
    b.release(&held).await;
    let there = async || {
        b.store
            .instance(&root("a").instance)
            .await
            .unwrap()
            .is_some()
    };
    redis.expire_instances(at(1_000_000)).await.unwrap();
    assert!(
        there().await,
        "a branch is still being cancelled, and an effect is due"
    );
    let cancelled = change(vec![Command::Drop])
        .at(Cursor::Ended)
        .consumed(&["cancel"]);
    b.commit(&mut branch, cancelled).await;
    b.store.flushed(&outcome.outbox).await.unwrap();
    redis.expire_instances(at(1_000)).await.unwrap();
    assert!(there().await, "it isn't old enough");
    redis.expire_instances(at(1_001)).await.unwrap();
    assert!(!there().await);
    let all = Filter {
        limit: 10,
        ..Filter::default()
    };
    assert!(b.store.list(&all).await.unwrap().is_empty());
    assert_eq!(crate::kept(&server), ["swirl:meta"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_records_are_refused() {
    let server = RedisServer::start().unwrap();
    let b = connect(Options {
        record_max: 2_000,
        inbox_max: 2,
        ..Options::single(server.url())
    })
    .await;
    let mut large = new("large");
    large.header.input = data!({"text": ("x".repeat(3_000))});
    let error = b.store.create(large).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 2_000, .. }));
    // A worker repeats a first turn that is too large, and reports it.
    let mut large = ended_at_once("a", 1);
    turn(&mut large).scope.data = data!({"text": ("x".repeat(3_000))});
    assert_eq!(b.store.create(large).await.unwrap(), Created::New);
    assert!(b.store.add_input(&root("a"), call(1)).await.unwrap());
    assert!(b.store.add_input(&root("a"), call(2)).await.unwrap());
    let error = b.store.add_input(&root("a"), call(3)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        Error::TooLarge {
            what: "the inbox of a/r".to_owned(),
            size: 2,
            limit: 2
        }
        .to_string()
    );
    assert!(!b.store.add_input(&root("a"), call(1)).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_records_are_reported() {
    let server = RedisServer::start().unwrap();
    let options = Options {
        shards: 1,
        ..Options::single(server.url())
    };
    let b = connect(options).await;
    b.create(new("a")).await;
    let key = "{swirl:0}:i:a";
    server.cli(&["HSET", key, "r:r", "{"]).unwrap();
    let error = b.store.acquire(&root("a"), LEASE_MS).await.unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    server.cli(&["HSET", key, "m:r", "?"]).unwrap();
    let error = b.store.acquire(&root("a"), LEASE_MS).await.unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    server.cli(&["SET", "{swirl:0}:i:b", "text"]).unwrap();
    let error = b.store.create(new("b")).await.unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn held_scopes_are_left_alone() {
    let server = RedisServer::start().unwrap();
    let with_grace = async |grace_ms: u64| {
        let options = Options {
            grace_ms,
            repeat_ms: 60 * 60 * 1_000,
            ..quick(Options::single(server.url()))
        };
        with(Redis::connect(options).await.unwrap())
    };
    let (patient, b) = (with_grace(60 * 60 * 1_000).await, with_grace(300).await);
    b.create(new("a")).await;
    assert!(patient.store.runnable(10).await.unwrap().is_empty());
    let late = eventually("the end of its grace", async || {
        let late = b.store.runnable(10).await.unwrap();
        (!late.is_empty()).then_some(late)
    });
    assert_eq!(late.await, [root("a")]);
    assert!(
        b.store.runnable(10).await.unwrap().is_empty(),
        "it was reported before"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn shards_are_divided_fairly_and_taken_over() {
    let server = RedisServer::start().unwrap();
    let redis = Redis::connect(quick(Options::single(server.url())))
        .await
        .unwrap();
    let lease = async |process: &str| redis.lease_shards(process, LEASE_MS).await.unwrap();
    assert_eq!(lease("a").await.len(), 64);
    assert!(lease("b").await.is_empty(), "nothing is free yet");
    assert_eq!(lease("a").await.len(), 32);
    let second = lease("b").await;
    assert_eq!(second.len(), 32);
    assert!(lease("a").await.iter().all(|shard| !second.contains(shard)));
    // The other process is dead.
    redis.lease_shards("a", 1).await.unwrap();
    eventually("its shards", async || {
        (lease("b").await.len() == 64).then_some(())
    })
    .await;
    redis.release_shards("b").await.unwrap();
    assert_eq!(lease("c").await.len(), 64);
    redis.set_shards(vec![1, 2, 999]);
    assert_eq!(redis.shards(), [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn timers_of_other_shards_are_left_to_others() {
    let server = RedisServer::start().unwrap();
    let redis = Redis::connect(quick(Options::single(server.url())))
        .await
        .unwrap();
    let b = with(redis.clone());
    for n in 0..10 {
        let mut new = kit::new(&format!("i{n}"));
        new.root.timers = vec![timer(1, 10 + n)];
        b.create(new).await;
    }
    let due = async || redis.due_timers(at(100), 100).await.unwrap().len();
    assert_eq!(due().await, 10);
    redis.set_shards((0..32).collect());
    let mine = due().await;
    redis.set_shards((32..64).collect());
    assert!(mine < 10 && mine + due().await == 10);
    redis.set_shards(Vec::new());
    assert_eq!(redis.next_timer().await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_examined() {
    let codes = async |mut options: RedisOptions| -> Vec<&'static str> {
        let limit = ["--maxmemory", "1gb"].map(str::to_owned);
        options.args.extend(limit);
        let server = RedisServer::start_with(options).unwrap();
        let redis = Redis::connect(quick(Options::single(server.url())))
            .await
            .unwrap();
        let findings = redis.check().await;
        assert!(
            findings
                .iter()
                .all(|f| f.message.contains(&server.address()))
        );
        findings.iter().map(|finding| finding.code).collect()
    };
    let durable = RedisOptions {
        appendonly: true,
        ..RedisOptions::default()
    };
    assert!(codes(durable.clone()).await.is_empty());
    let everysec = RedisOptions {
        appendfsync: Some("everysec"),
        ..durable.clone()
    };
    assert_eq!(codes(everysec).await, ["fsync"]);
    assert_eq!(codes(RedisOptions::default()).await, ["persistence"]);
    let evicts = ["--maxmemory-policy", "allkeys-lru"].map(str::to_owned);
    let evicts = RedisOptions {
        args: evicts.to_vec(),
        ..durable
    };
    assert_eq!(codes(evicts).await, ["eviction"]);
    let mut server = RedisServer::start().unwrap();
    let redis = Redis::connect(quick(Options::single(server.url())))
        .await
        .unwrap();
    let findings = redis.check().await;
    let codes: Vec<&str> = findings.iter().map(|finding| finding.code).collect();
    assert_eq!(codes, ["persistence", "maxmemory"]);
    server.kill().unwrap();
    let findings = redis.check().await;
    assert_eq!(findings[0].code, "unreachable");
    assert_eq!(findings[0].severity, Severity::Error);
}

/// Examining must not fix the number of shards of a namespace.
#[tokio::test(flavor = "multi_thread")]
async fn examining_changes_nothing() {
    let server = RedisServer::durable().unwrap();
    let options = quick(Options::single(server.url()));
    let seen = Redis::examine(&options).await.unwrap();
    assert_eq!(seen.shards, None);
    assert!(seen.servers[0].1.starts_with(|c: char| c.is_ascii_digit()));
    let (clock, took) = seen.clock.unwrap();
    assert!(clock.0 > 1_700_000_000_000 && took < PATIENCE);
    assert_eq!(server.cli(&["DBSIZE"]).unwrap(), "0");
    let used = Redis::connect(options.clone()).await.unwrap();
    let seen = Redis::examine(&options).await.unwrap();
    assert_eq!(seen.shards, Some(used.options().shards));
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_options_are_refused_at_once() {
    let server = RedisServer::start().unwrap();
    drop(
        Redis::connect(quick(Options::single(server.url())))
            .await
            .unwrap(),
    );
    let other = Options {
        shards: 8,
        ..quick(Options::single(server.url()))
    };
    let error = Redis::connect(other).await.err().unwrap();
    assert!(matches!(error, ConnectError::Shards { wanted: 8, .. }));
    assert!(error.to_string().contains("64 shards, not 8"), "{error}");
    server.cli(&["HSET", "swirl:meta", "layout", "1"]).unwrap();
    let older = Redis::connect(quick(Options::single(server.url()))).await;
    let error = older.err().unwrap();
    assert!(matches!(error, ConnectError::Layout { .. }), "{error}");
    assert!(
        error.to_string().contains("use another namespace"),
        "{error}"
    );
    let named = Options {
        namespace: "a{b".to_owned(),
        ..Options::single(server.url())
    };
    let error = Redis::connect(named).await.err().unwrap();
    assert!(matches!(
        error,
        ConnectError::Option {
            name: "namespace",
            ..
        }
    ));
    let error = Redis::connect(Options::single("redis://:secret@%%"))
        .await
        .err()
        .unwrap();
    assert!(!error.to_string().contains("secret"), "{error}");
    let away = quick(Options::single("redis://127.0.0.1:1"));
    assert!(
        timeout(PATIENCE, Redis::connect(away))
            .await
            .unwrap()
            .is_err()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn users_need_the_right_acl() {
    let server = RedisServer::start().unwrap();
    let rules = [
        "ACL",
        "SETUSER",
        "swirl",
        "on",
        ">pass",
        "~swirl:*",
        "~{swirl:*",
        "&swirl:*",
        "+@all",
    ];
    server.cli(&rules).unwrap();
    server.cli(&["ACL", "SETUSER", "default", "off"]).unwrap();
    let url = format!("redis://swirl:pass@{}", server.address());
    let b = connect(Options::single(url)).await;
    b.create(new("a")).await;
    b.act(&root("a"), change(vec![])).await;
    let apart = Options {
        username: Some("swirl".to_owned()),
        password: Some("pass".to_owned()),
        ..Options::single(server.url())
    };
    let b = connect(apart).await;
    assert!(b.store.is_active(&root("a").instance).await.unwrap());
    let wrong = format!("redis://swirl:other@{}", server.address());
    assert!(Redis::connect(quick(Options::single(wrong))).await.is_err());
}

/// A process that watches an instance is notified of its end at once, whichever process ended it.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_watched_instance_is_notified() {
    let server = RedisServer::start().unwrap();
    let watching = connect(Options::single(server.url())).await;
    let working = connect(Options::single(server.url())).await;
    let mut watched = new("a");
    watched.watched = true;
    watching.create(watched).await;
    watching.create(new("b")).await;
    let mut later = new("c");
    later.watched = true;
    watching.create(later).await;
    let end = || Command::End {
        status: EndStatus::Completed,
        output: None,
        error: None,
    };
    let [a, b, c] = ["a", "b", "c"].map(|id| root(id).instance);
    let ends = async |id: &str| {
        let last = change(vec![end()]).at(Cursor::Ended);
        working.act(&root(id), last).await;
    };
    // It listens first.
    let notified = join(watching.store.wait_ended(&a), ends("a"));
    timeout(PATIENCE, notified).await.unwrap();

    // There is no notification for an instance that isn't watched, not even before that of another one that ends later.
    let act = async {
        ends("b").await;
        ends("c").await;
    };
    let later = join(watching.store.wait_ended(&c), act);
    let notified = select(watching.store.wait_ended(&b), Box::pin(later));
    let notified = timeout(PATIENCE, notified).await.unwrap();
    assert!(matches!(notified, Either::Right(_)));
}

/// A replica that takes over may lack the last writes. Two holders must still have different tokens.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_not_given_again_after_lost_writes() {
    let server = RedisServer::start().unwrap();
    let b = connect(Options::single(server.url())).await;
    b.create(new("a")).await;
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut ask = async |words: &[&[u8]]| {
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(*word);
        }
        let answer: redis::Value = command.query_async(&mut connection).await.unwrap();
        answer
    };
    let redis::Value::Array(keys) = ask(&[b"KEYS", b"*:i:a"]).await else {
        panic!("no keys");
    };
    let key: Vec<u8> = redis::from_redis_value(keys[0].clone()).unwrap();
    let redis::Value::BulkString(before) = ask(&[b"DUMP", &key]).await else {
        panic!("no dump");
    };
    let late = b.hold(&root("a")).await;
    // Time has to pass: tokens differ by milliseconds.
    sleep(Duration::from_millis(5)).await;
    ask(&[b"RESTORE", &key, b"0", &before, b"REPLACE"]).await;
    let held = b.hold(&root("a")).await;
    assert!(held.lease.token > late.lease.token);
    assert!(!b.store.renew(&late.lease, LEASE_MS).await.unwrap());
    assert!(b.store.renew(&held.lease, LEASE_MS).await.unwrap());
}
