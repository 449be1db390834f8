//! The processes that are remembered, and those that are forgotten.

use swirl_model::time::Timestamp;
use swirl_ports::{PROCESSES_MAX, ProcessInfo};
use swirl_redis::{Options, Redis};
use swirl_servers::{RedisServer, eventually};

const LONG_MS: u64 = 600_000;

fn process(id: &str, role: &str, since: i64) -> ProcessInfo {
    ProcessInfo {
        id: id.to_owned(),
        role: role.to_owned(),
        host: "h".to_owned(),
        version: "1".to_owned(),
        since: Timestamp(since),
        pid: Some(7),
        ..ProcessInfo::default()
    }
}

async fn ids(store: &Redis) -> Vec<String> {
    let all = store.processes().await.unwrap().into_iter();
    all.map(|one| one.process.id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_processes_are_forgotten() {
    let server = RedisServer::start().unwrap();
    let store = Redis::connect(Options::single(server.url())).await.unwrap();
    assert_eq!(ids(&store).await, [""; 0]);
    let worker = process("b", "worker", 7);
    store.note_process(&worker, LONG_MS).await.unwrap();
    let older = process("c", "worker", 5);
    store.note_process(&older, LONG_MS).await.unwrap();
    let coordinator = process("a", "coordinator", 9);
    store.note_process(&coordinator, LONG_MS).await.unwrap();
    assert_eq!(ids(&store).await, ["a", "c", "b"], "by role and age");
    let all = store.processes().await.unwrap();
    assert_eq!(all[2].process, worker);
    let now = store.now().await.unwrap();
    let ago = now.0 - all[2].seen.0;
    assert!((0..60_000).contains(&ago), "{ago}");

    store.forget_process("c", LONG_MS).await.unwrap();
    assert_eq!(ids(&store).await, ["a", "b"]);
    // Only the one that gives a sign of life is left once the others were silent for longer than that.
    eventually("the others are forgotten", async || {
        store.note_process(&worker, 50).await.unwrap();
        (ids(&store).await == ["b"]).then_some(())
    })
    .await;
    // All may stop at the same time.
    eventually("nothing is left", async || {
        ids(&store).await.is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn their_number_is_limited() {
    let server = RedisServer::start().unwrap();
    let store = Redis::connect(Options::single(server.url())).await.unwrap();
    for number in 0..PROCESSES_MAX + 3 {
        let one = process(&format!("p{number}"), "worker", 0);
        store.note_process(&one, LONG_MS).await.unwrap();
    }
    assert_eq!(ids(&store).await.len(), PROCESSES_MAX);
}
