//! The number of Redis functions and of sequential round trips that an event takes, with the turn that it causes.

use std::sync::Arc;

use swirl_contract::Backend;
use swirl_contract::first_turn::{ended_at_once, turn};
use swirl_contract::kit::*;
use swirl_model::CloudEvent;
use swirl_model::event::Command;
use swirl_model::instance::EndStatus;
use swirl_model::scope::Cursor;
use swirl_ports::matching::Listeners;
use swirl_ports::{Acquired, Created, Listening};
use swirl_redis::{Options, Redis};
use swirl_servers::RedisServer;

#[tokio::test]
async fn an_event_takes_few_functions() {
    let server = RedisServer::start().unwrap();
    let store = Redis::connect(Options::single(server.url())).await.unwrap();
    let b = Backend::of(Arc::new(store), ());
    let calls = || -> u64 {
        let info = server.cli(&["INFO", "commandstats"]).unwrap();
        let calls = |name: &str| -> u64 {
            let begin = format!("cmdstat_{name}:calls=");
            let mut lines = info.lines().filter_map(|line| line.strip_prefix(&begin));
            let count = lines.next().and_then(|rest| rest.split(',').next());
            count.map_or(0, |count| count.parse().unwrap())
        };
        ["fcall", "eval", "evalsha"].map(calls).iter().sum()
    };
    let trips = || -> u64 {
        let info = server.cli(&["INFO", "stats"]).unwrap();
        let mut lines = info.lines();
        let reads = lines.find_map(|line| line.strip_prefix("total_reads_processed:"));
        reads.unwrap().trim().parse().unwrap()
    };
    let kept = [filter("t", &[("order", None)])];
    let all = [filter("s", &[]), filter("t", &[("order", None)])];
    let listeners = Listeners::new(all.into_iter());
    let only = [trigger(vec![filter("s", &[])], true)];
    let ingest = async |event: &CloudEvent| {
        let listening = Listening {
            listeners: Some(&listeners),
            is_unawaited: event.kind == "s",
            continues: true,
            ..Listening::new(&only, &kept)
        };
        b.events.ingest(event, listening, at(0)).await.unwrap()
    };
    // At first the server has to load the functions.
    let (mut started, mut delivered, mut waiting) = ((0, 0), (0, 0), (0, 0));
    // The command that reads the counter is counted too.
    let counts = || (calls(), trips());
    let since = |before: (u64, u64)| {
        let idle = trips();
        let own = trips() - idle;
        let now = (calls(), idle);
        (now.0 - before.0, now.1 - before.1 - own)
    };
    for round in ["1", "2"] {
        let before = counts();
        let first = event(&format!("s{round}"), "s", &[]);
        assert_eq!(ingest(&first).await.starts.len(), 1);
        let mut started_here = ended_at_once(&format!("started{round}"), 3);
        let publish = Command::Publish(event("p", "p", &[]));
        turn(&mut started_here).commands.insert(0, publish);
        let Created::WithTurn { outbox, .. } = b.store.create(started_here).await.unwrap() else {
            panic!("its effects are missing")
        };
        b.store.flushed(&outbox).await.unwrap();
        b.events.acknowledge(&first, at(0)).await.unwrap();
        started = since(before);

        let id = format!("waiting{round}");
        b.create(new(&id)).await;
        let known = Command::Correlate(vec![("order".into(), round.to_owned())]);
        let wait = Command::Subscribe(subscription(1, kept.to_vec()));
        b.act(&root(&id), change(vec![known, wait])).await;
        let before = counts();
        let answer = event(&format!("t{round}"), "t", &[("order", round)]);
        let ingested = ingest(&answer).await;
        assert!(ingested.acknowledged && ingested.woken == [root(&id)]);
        let read = b.store.read_delivered(&root(&id), 1).await.unwrap();
        let Acquired::Held(mut held) = read else {
            panic!("{id} cannot be read")
        };
        delivered = since(before);
        let used: Vec<String> = held.inbox.iter().map(|item| item.id.clone()).collect();
        let end = Command::End {
            status: EndStatus::Completed,
            output: None,
            error: None,
        };
        let last = Change {
            release: true,
            ..change(vec![end]).at(Cursor::Ended).consumed(&[&used[0]])
        };
        assert!(b.commit(&mut held, last).await.released);
        waiting = since(before);
    }
    let functions = (started.0, delivered.0, waiting.0);
    assert_eq!(functions, (4, 4, 6), "functions");
    // Two requests that are sent at the same time may arrive together.
    assert!(
        started.1 <= 4 && delivered.1 <= 5,
        "{started:?} {delivered:?}"
    );
}
