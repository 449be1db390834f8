//! Connections that go silent, masters that are replaced, and clusters whose nodes fail and move.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::future::{join, join_all};
use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_model::data;
use swirl_ports::{Created, DefinitionRecord};
use swirl_redis::{Options, Redis};
use swirl_servers::{PATIENCE, Proxy, RedisCluster, RedisServer, until};
use tokio::time::{sleep, timeout};

use super::{is_woken, quick, until_done, with};

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_network_is_an_error_within_the_limit() {
    let server = RedisServer::start().unwrap();
    let proxy = Proxy::start(server.address()).unwrap();
    let url = format!("redis://{}", proxy.address());
    let options = Options {
        response_timeout_ms: 3_000,
        ..quick(Options::single(url))
    };
    let b = with(Redis::connect(options).await.unwrap());
    b.create(new("a")).await;
    proxy.hold();
    let refused = timeout(PATIENCE, b.store.create(new("b"))).await;
    let error = refused.expect("each call has a limit").unwrap_err();
    assert!(error.is_retryable(), "{error}");
    proxy.heal();
    let created = until_done(async || b.store.create(new("b")).await).await;
    assert!(matches!(
        created,
        Created::New | Created::Exists { conflict: false }
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_goes_silent_is_given_up() {
    let server = RedisServer::start().unwrap();
    let proxy = Proxy::start(server.address()).unwrap();
    let url = format!("redis://{}", proxy.address());
    let options = Options {
        // Far more than the silence takes to be noticed.
        response_timeout_ms: 120_000,
        ..quick(Options::single(url))
    };
    let b = with(Redis::connect(options).await.unwrap());
    b.create(new("a")).await;
    proxy.silence();
    let begun = Instant::now();
    let created = async {
        loop {
            let attempt = timeout(Duration::from_secs(1), b.store.create(new("b")));
            if let Ok(Ok(_)) = attempt.await {
                return;
            }
        }
    };
    timeout(PATIENCE, created).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_to_a_master_that_became_a_replica_is_given_up() {
    let (old, new_master) = (RedisServer::start().unwrap(), RedisServer::start().unwrap());
    let proxy = Proxy::start(old.address()).unwrap();
    let options = quick(Options::single(format!("redis://{}", proxy.address())));
    let redis = Redis::connect(options).await.unwrap();
    let b = with(redis.clone());
    b.create(new("a")).await;
    let follow = |server: &RedisServer, master: &RedisServer| {
        let port = master.port().to_string();
        server.cli(&["REPLICAOF", "127.0.0.1", &port]).unwrap();
    };
    follow(&new_master, &old);
    let size = |server: &RedisServer| server.cli(&["DBSIZE"]).unwrap();
    until("the replica's copy", || {
        (size(&old) == size(&new_master)).then_some(())
    });
    new_master.cli(&["REPLICAOF", "NO", "ONE"]).unwrap();
    follow(&old, &new_master);
    assert!(
        redis.accepts_writes().await.is_err(),
        "it leads to a replica"
    );
    // The address moves, and the connections that exist stay where they are.
    proxy.set_target(new_master.address());
    until_done(async || b.store.create(new("b")).await).await;
    until_done(async || redis.accepts_writes().await).await;
    let held = b.hold(&root("b")).await;
    is_woken(&b, &held).await;
    assert_eq!(redis.beyond_recovery(), None);
}

/// Answers come in the order of their commands, and those of other commands don't wait for a large one.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_answer_delays_no_other() {
    const LARGE: usize = 8 << 20;
    let server = RedisServer::start().unwrap();
    let proxy = Proxy::start(server.address()).unwrap();
    let near = with(
        Redis::connect(quick(Options::single(server.url())))
            .await
            .unwrap(),
    );
    let options = Options {
        // Enough for one of them, and not for all one after another.
        response_timeout_ms: 5_000,
        ..quick(Options::single(format!("redis://{}", proxy.address())))
    };
    let b = Arc::new(with(Redis::connect(options).await.unwrap()));
    let mut records = new("large");
    records.root.data = data!({"text": ("x".repeat(LARGE))});
    near.create(records).await;
    let record = DefinitionRecord {
        id: definition("large"),
        digest: "1".to_owned(),
        name: "file".to_owned(),
        document: "document".to_owned(),
        resources: vec![("uri".to_owned(), "x".repeat(LARGE))],
        deployed_at: at(1),
        deleted: None,
        activated: None,
        interests: swirl_ports::Interests::default(),
    };
    near.definitions.put(record.clone()).await.unwrap();
    // Each takes about a second.
    proxy.slow(LARGE as u64);
    let reads = (0..6).map(|_| {
        let b = b.clone();
        tokio::spawn(async move { b.definitions.get(&definition("large")).await })
    });
    let reads: Vec<_> = reads.collect();
    let viewed = b.clone();
    let view = tokio::spawn(async move { viewed.store.view(&root("large").instance).await });
    // Time has to pass: so that large answers are under way.
    sleep(Duration::from_millis(300)).await;
    for number in 0..5 {
        b.create(new(&format!("small{number}"))).await;
    }
    // They are read one at a time.
    assert!(reads.iter().any(|read| !read.is_finished()));
    for read in join_all(reads).await {
        assert_eq!(read.unwrap().unwrap(), Some(record.clone()));
    }
    let (_, scopes) = view.await.unwrap().unwrap().unwrap();
    assert_eq!(scopes.len(), 1);
}

/// Creates instances with many callers at once until `over`; returns how many were created.
async fn create_many(b: &Backend, prefix: &str, over: &AtomicBool) -> usize {
    let count = AtomicUsize::new(0);
    let callers = (0..300).map(async |caller| {
        for number in 0.. {
            if over.load(Ordering::Relaxed) {
                break;
            }
            let id = format!("{prefix}-{caller}-{number}");
            match timeout(Duration::from_secs(20), b.store.create(new(&id))).await {
                Ok(Ok(_)) => {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Err(error)) => assert!(error.is_retryable(), "{error}"),
                Err(_) => panic!("a call hangs"),
            }
            // Time has to pass: so many callers make enough load.
            sleep(Duration::from_millis(500)).await;
        }
    });
    join_all(callers).await;
    count.into_inner()
}

/// Creates an instance in each of many shards.
async fn all_shards_work(b: &Backend, redis: &Redis, fault: &str) {
    let created = async {
        let each = (0..100).map(async |number| {
            let id = format!("{fault}-all-{number}");
            until_done(async || b.store.create(new(&id)).await).await;
        });
        join_all(each).await;
        until_done(async || redis.accepts_writes().await).await;
    };
    timeout(PATIENCE, created).await.unwrap();
}

/// Redis needs two to four seconds until a replica takes over.
const TAKEN_OVER: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn work_continues_in_a_cluster_whose_nodes_fail_and_move() {
    let mut cluster = RedisCluster::with_replicas(3).unwrap();
    // One address is enough, although its node is the first to die.
    let options = Options {
        response_timeout_ms: 5_000,
        retry_ms: 5_000,
        ..quick(Options::cluster(vec![cluster.urls()[0].clone()]))
    };
    let redis = Redis::connect(options).await.unwrap();
    let b = with(redis.clone());
    all_shards_work(&b, &redis, "nothing").await;
    let over = AtomicBool::new(false);
    let faults = async {
        let mut seen = Vec::new();
        cluster.node_mut(0).unwrap().kill().unwrap();
        let begun = Instant::now();
        all_shards_work(&b, &redis, "kill").await;
        seen.push(("kill", begun.elapsed()));
        cluster.node_mut(0).unwrap().restart().unwrap();

        let begun = Instant::now();
        cluster.fail_over(4).unwrap();
        all_shards_work(&b, &redis, "failover").await;
        seen.push(("failover", begun.elapsed()));

        cluster.nodes()[2].pause().unwrap();
        let begun = Instant::now();
        all_shards_work(&b, &redis, "freeze").await;
        seen.push(("freeze", begun.elapsed()));
        cluster.nodes()[2].resume().unwrap();
        until("the frozen node to follow", || {
            (!cluster.is_master(2) && !cluster.is_master(1)).then_some(())
        });

        let cluster = &cluster;
        std::thread::scope(|scope| {
            scope.spawn(|| cluster.move_slots(5, 4, 300).unwrap());
        });
        all_shards_work(&b, &redis, "resharding").await;
        over.store(true, Ordering::Relaxed);
        seen
    };
    let (created, seen) = join(create_many(&b, "many", &over), faults).await;
    for (fault, took) in seen {
        assert!(took < TAKEN_OVER, "{fault}: {took:?}");
    }
    assert!(created > 1_000, "only {created} were created");
    assert_eq!(redis.beyond_recovery(), None);
}
