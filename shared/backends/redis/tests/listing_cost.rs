//! A listing reads little of instances whose records are large.

use std::sync::Arc;

use swirl_contract::Backend;
use swirl_contract::kit::*;
use swirl_model::error::Description;
use swirl_model::event::Command;
use swirl_model::instance::{EndStatus, Status};
use swirl_model::scope::{Cursor, Exit, Position, Work};
use swirl_model::workflow::StateId;
use swirl_model::{Data, WorkflowError};
use swirl_ports::Filter;
use swirl_redis::{Options, Redis};
use swirl_servers::RedisServer;

const COUNT: usize = 20;
const LARGE: usize = 1 << 20;

fn large() -> Data {
    let mut data = Data::object();
    data.set("text", Data::string("\"ä\\".repeat(LARGE / 4)));
    data
}

/// The bytes that the server has sent.
fn sent(server: &RedisServer) -> usize {
    let info = server.cli(&["INFO", "stats"]).unwrap();
    let mut lines = info.lines();
    let sent = lines.find_map(|line| line.strip_prefix("total_net_output_bytes:"));
    sent.unwrap().trim().parse().unwrap()
}

/// The server is blocked while it counts, so it counts only the newest instances of a shard.
#[tokio::test(flavor = "multi_thread")]
async fn counting_by_version_ends_and_says_so() {
    const COUNTED_MAX: u64 = 200;
    let server = RedisServer::start().unwrap();
    let options = Options {
        shards: 1,
        ..Options::single(server.url())
    };
    let store = Redis::connect(options).await.unwrap();
    let b = Backend::of(Arc::new(store), ());
    let counted = async || {
        let found = b.store.counts_by_version("flow").await.unwrap();
        let running = found.versions.values().map(|counts| counts.running);
        (running.sum::<u64>(), found.is_complete)
    };
    for number in 0..COUNTED_MAX {
        b.create(new(&format!("i{number}"))).await;
    }
    assert_eq!(counted().await, (COUNTED_MAX, true));
    b.create(new("one more")).await;
    assert_eq!(counted().await, (COUNTED_MAX, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_cost_little_however_large_their_records_are() {
    let server = RedisServer::start().unwrap();
    let store = Redis::connect(Options::single(server.url())).await.unwrap();
    let b = Backend::of(Arc::new(store), ());
    let error = WorkflowError {
        code: Some("E7".to_owned()),
        state: Some("Pay".to_owned()),
        problem: Some(Box::new(Description {
            kind: "https://example.com/broken".to_owned(),
            ..Description::default()
        })),
        ..WorkflowError::new("Broken", "it broke ".repeat(LARGE / 9))
    };
    for number in 0..COUNT {
        let mut new = new(&format!("i{number}"));
        new.header.input = large();
        new.header.instance_key = Some(format!("order {number}"));
        new.root.data = large();
        new.root.fault = (number == 3).then(|| WorkflowError::new("Broken", "it broke"));
        b.create(new).await;
    }
    let waits = blocked(Work::Events);
    let continues = blocked(Work::Continue {
        call: 1,
        way: Exit::Default(StateId(0)),
        input: large(),
    });
    let timed = change(Vec::new()).timers(vec![timer(7, 5_000)]);
    b.act(&root("i1"), timed.at(waits.clone())).await;
    let timed = change(Vec::new()).timers(vec![timer(7, 5_000)]);
    b.act(&root("i2"), timed.at(continues)).await;
    let end = Command::End {
        status: EndStatus::Faulted,
        output: None,
        error: Some(error.clone()),
    };
    b.act(&root("i3"), change(vec![end]).at(waits.clone()))
        .await;

    let before = sent(&server);
    let filter = Filter {
        limit: 1_000,
        ..Filter::default()
    };
    let rows = b.store.list(&filter).await.unwrap();
    let mut roots = Vec::new();
    for row in &rows {
        let root = b.store.root_outline(&row.header.id).await.unwrap();
        roots.push(root.unwrap());
    }
    let cost = sent(&server) - before;
    assert!(cost < 3 * COUNT * (16 << 10), "{cost} bytes");

    assert_eq!(rows.len(), COUNT);
    for (row, root) in rows.iter().zip(&roots) {
        let number = row.header.id.as_str().strip_prefix('i').unwrap();
        let key = row.header.instance_key.as_deref();
        assert_eq!(key, Some(format!("order {number}").as_str()));
        assert_eq!(row.header.definition, definition("flow"));
        assert!(root.id.is_root());
        let work = match &root.cursor {
            Cursor::At(Position { work, .. }) => Some(work),
            _ => None,
        };
        match number {
            "1" => assert_eq!((&root.cursor, root.timers.len()), (&waits, 1)),
            "2" => {
                assert!(matches!(work, Some(Work::Continue { .. })));
                assert_eq!(root.timers.len(), 1, "it comes before what is cut off");
            }
            "3" => {
                assert_eq!(
                    (root.cursor.clone(), row.status),
                    (waits.clone(), Status::Faulted)
                );
                let found = row.error.as_ref().unwrap();
                assert_eq!(*found, error.clone().shortened());
                assert_eq!(root.fault.as_ref().unwrap().name, "Broken");
            }
            _ => assert_eq!(root.cursor, Cursor::Fresh),
        }
        assert_eq!(row.error.is_some(), number == "3");
    }
    // Other reads get the whole record.
    let whole = b.store.root(&root("i2").instance).await.unwrap().unwrap();
    assert_eq!(whole.data, large());
}

/// A header with its input in the middle, as builds before this one wrote it.
#[tokio::test]
async fn records_whose_large_members_are_not_last_are_read_as_a_whole() {
    let server = RedisServer::start().unwrap();
    let store = Redis::connect(Options::single(server.url())).await.unwrap();
    let b = Backend::of(Arc::new(store), ());
    let mut records = new("a");
    records.header.input = large();
    records.root.data = large();
    let (header, root_record) = (records.header.clone(), records.root.clone());
    b.create(records).await;
    let keys = server.cli(&["KEYS", "*:i:a"]).unwrap();
    let key = keys.trim();
    let client = redis::Client::open(server.url()).unwrap();
    let mut link = client.get_multiplexed_async_connection().await.unwrap();
    for (field, first, record) in [
        ("h", "input", serde_json::to_value(&header).unwrap()),
        ("r:r", "data", serde_json::to_value(&root_record).unwrap()),
    ] {
        let serde_json::Value::Object(mut members) = record else {
            panic!("a record is an object");
        };
        let value = members.remove(first).unwrap();
        let members = std::iter::once((first.to_owned(), value)).chain(members);
        let text = serde_json::Value::Object(members.collect()).to_string();
        let mut set = redis::cmd("HSET");
        set.arg(key).arg(field).arg(text);
        set.exec_async(&mut link).await.unwrap();
    }
    let filter = Filter {
        limit: 10,
        ..Filter::default()
    };
    let rows = b.store.list(&filter).await.unwrap();
    assert_eq!(rows[0].header.version, "1.0.0");
    let outline = b.store.root_outline(&root("a").instance).await.unwrap();
    assert_eq!(outline.unwrap().cursor, Cursor::Fresh);
}
