//! The lifecycle events of a cluster match its histories, even while coordinators are killed and the stream is full.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy, Stream};
use async_nats::jetstream::{self, Context};
use serde_json::{Value, json};
use swirl_chaos::{AnyCoordinator, Cluster, Role};
use swirl_servers::eventually;

const BINARY: &str = env!("CARGO_BIN_EXE_swirl");
const STREAM: &str = "SWIRL_default_LIFECYCLE";
const ROUNDS: usize = 6;
/// The number of seconds after which all processes have noticed that the events are switched on.
const LEARNING: usize = 6;

/// Runs where it is started.
const PURE: &str = r#"
id: pure
version: "1"
specVersion: "0.8"
states:
  - {name: One, type: inject, data: {a: 1}, transition: Two}
  - {name: Two, type: inject, data: {b: 2}, end: true}
"#;
/// Has branches, and time to be suspended or cancelled.
const TREE: &str = r#"
id: tree
version: "1"
specVersion: "0.8"
functions: [{name: double, type: expression, operation: ".n * 2"}]
states:
  - name: Both
    type: parallel
    branches:
      - {name: A, actions: [{functionRef: double}]}
      - {name: B, actions: [{functionRef: double}]}
    transition: Rest
  - {name: Rest, type: sleep, duration: PT2S, transition: Last}
  - {name: Last, type: inject, data: {}, end: true}
"#;
/// No condition ever holds.
const CHOOSE: &str = r#"
id: choose
version: "1"
specVersion: "0.8"
states:
  - {name: Choose, type: switch, dataConditions: [{condition: "${ .n < 0 }", end: true}]}
"#;

/// Number, type without the common prefix, time and state of an event.
type Seen = (u64, String, String, Option<String>);

/// The events that a history requires.
fn wanted(history: &Value) -> Vec<Seen> {
    assert_eq!(
        (&history["before"], &history["more"]),
        (&json!(0), &json!(false))
    );
    let entries = history["entries"].as_array().unwrap().iter();
    let seen = entries.zip(1..).filter_map(|(entry, number)| {
        let word = |name: &str| entry[name].as_str().unwrap_or_default();
        let kind = match (word("event"), word("action"), word("status")) {
            ("instance_started", ..) => "workflow.started",
            ("ended", _, "completed") => "workflow.completed",
            ("ended", _, "faulted") => "workflow.faulted",
            ("ended", _, "cancelled" | "terminated") => "workflow.cancelled",
            ("operated", "suspend", _) => "workflow.suspended",
            ("operated", "resume" | "retry", _) => "workflow.resumed",
            ("state_entered", ..) => "task.started",
            ("state_left", ..) if entry["failed"] == true => "task.faulted",
            ("state_left", ..) => "task.completed",
            _ => return None,
        };
        let task = kind.starts_with("task").then(|| word("name").to_owned());
        Some((number, kind.to_owned(), word("at").to_owned(), task))
    });
    seen.collect()
}

/// The events of each instance in stream order, without duplicates.
async fn published(stream: &mut Stream) -> BTreeMap<String, Vec<Seen>> {
    let state = stream.info().await.unwrap().state.clone();
    let mut ids = BTreeSet::new();
    let mut all: BTreeMap<String, Vec<Seen>> = BTreeMap::new();
    for sequence in state.first_sequence..=state.last_sequence {
        let message = stream.get_raw_message(sequence).await.unwrap();
        let event: Value = serde_json::from_slice(&message.payload).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        assert!(ids.insert(text(&event["id"])), "twice: {event:#}");
        let kind = text(&event["type"]);
        assert!(message.subject.ends_with(&kind), "{}", message.subject);
        let kind = kind.strip_prefix("io.serverlessworkflow.").unwrap();
        let kind = kind.strip_suffix(".v1").unwrap().to_owned();
        let number = text(&event["sequence"]).parse().unwrap();
        assert!(text(&event["id"]).ends_with(&format!("-{number}")));
        let task = event["data"]["task"].as_str().map(str::to_owned);
        let seen = (number, kind, text(&event["time"]), task);
        all.entry(text(&event["subject"])).or_default().push(seen);
    }
    all
}

/// All coordinators restart with lifecycle events switched on.
fn turn_on(cluster: &mut Cluster) {
    for coordinator in cluster.of(Role::Coordinator) {
        let process = &mut cluster.processes[coordinator];
        process.stop(Duration::from_secs(10)).unwrap();
        process.flags = vec!["--lifecycle-events".to_owned()];
        process.start().unwrap();
        process.wait().unwrap();
    }
}

async fn jetstream(cluster: &Cluster) -> Context {
    jetstream::new(async_nats::connect(cluster.nats.url()).await.unwrap())
}

/// Compares the histories of these instances with the stream, once it has as many events.
async fn compare(
    client: &AnyCoordinator,
    stream: &mut Stream,
    instances: &[String],
    others: &BTreeSet<String>,
) {
    let mut all = BTreeMap::new();
    for id in instances {
        let history = client.get(&format!("instances/{id}/history")).await;
        all.insert(id.clone(), wanted(&history));
    }
    let count = |all: &BTreeMap<String, Vec<Seen>>| all.values().map(Vec::len).sum::<usize>();
    let found = eventually("all lifecycle events", async || {
        let mut found = published(stream).await;
        found.retain(|id, _| !others.contains(id));
        (count(&found) >= count(&all)).then_some(found)
    })
    .await;
    for (id, wanted) in &all {
        assert_eq!(found.get(id), Some(wanted), "of {id}");
    }
    assert_eq!(found.len(), all.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn they_match_the_histories_despite_killed_coordinators() {
    let lease = Duration::from_secs(3);
    let mut cluster = Cluster::start(Path::new(BINARY), 2, 2, lease, false).unwrap();
    let client = AnyCoordinator::new(cluster.apis());
    for (workflow, definition) in [("pure", PURE), ("tree", TREE), ("choose", CHOOSE)] {
        client.deploy(workflow, definition).await;
    }
    let before = client.start("pure", 1_000).await;
    turn_on(&mut cluster);
    // Workers notice the change within a few seconds. The first instances give them that time.
    let context = jetstream(&cluster).await;
    let mut early = BTreeSet::from([client.start("pure", 2_000).await]);
    for n in 0..LEARNING {
        early.insert(client.start("choose", 2_000 + n).await);
        // Time has to pass: workers read the setting every few seconds, and nothing shows that they have.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let mut stream = context.get_stream(STREAM).await.unwrap();
    let (mut instances, mut retried) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let had = stream.info().await.unwrap().state.messages;
        let mut round_of = Vec::new();
        for place in 0..10 {
            for workflow in ["pure", "tree", "choose"] {
                let id = client.start(workflow, 10 * round + place).await;
                round_of.push((workflow, id));
            }
        }
        for (place, (workflow, id)) in round_of.iter().enumerate() {
            match (*workflow, place % 4) {
                ("tree", 0) => {
                    client.act(id, "suspend").await;
                    client.act(id, "resume").await;
                }
                ("tree", 1) => client.act(id, "cancel").await,
                ("choose", 2) => {
                    let path = format!("instances/{id}");
                    let failed = |found: &Value| found["status"] == "faulted";
                    client.until(&path, "its failure", failed).await;
                    client.act(id, "retry").await;
                    retried.push(id.clone());
                }
                _ => {}
            }
        }
        instances.extend(round_of.into_iter().map(|(_, id)| id));
        // While events are being published.
        eventually("new events", async || {
            let messages = stream.info().await.ok()?.state.messages;
            (messages > had).then_some(())
        })
        .await;
        let coordinators = cluster.of(Role::Coordinator);
        let process = &mut cluster.processes[coordinators[round % 2]];
        process.kill().unwrap();
        process.start().unwrap();
        process.wait().unwrap();
    }
    let over = |found: &Value| found["counts"]["running"] == 0;
    client.until("counts", "their end", over).await;
    for id in &retried {
        let ends = |history: &Value| {
            let entries = history["entries"].as_array().unwrap().iter();
            entries.filter(|entry| entry["event"] == "ended").count() == 2
        };
        let path = format!("instances/{id}/history");
        client.until(&path, "its second failure", ends).await;
    }
    compare(&client, &mut stream, &instances, &early).await;
    eventually("that nothing is left", async || {
        let unread = client.metric("swirl_lifecycle_unread").await?;
        (unread == 0.0).then_some(())
    })
    .await;
    assert_eq!(client.metric("swirl_lifecycle_lost").await, Some(0.0));
    let found = published(&mut stream).await;
    assert!(!found.contains_key(&before), "it had ended before");
    let all = client.instances().await;
    assert_eq!(all.len(), instances.len() + early.len() + 1);
    exported(&client, &all, &before).await;
}

/// `swirl export` writes the same histories, even if it continues in the middle.
async fn exported(client: &AnyCoordinator, instances: &[String], before: &str) {
    let folder = tempfile::tempdir().unwrap();
    let cursor = folder.path().join("cursor");
    let run = |extra: &[&str]| {
        let output = Command::new(BINARY)
            .arg("export")
            .args(extra)
            .args(["--server", &client.servers.join(",")])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        (output.status.success(), lines.collect::<Vec<Value>>(), text)
    };
    let (done, lines, error) = run(&["--cursor", cursor.to_str().unwrap()]);
    assert!(done, "{error}");
    let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for mut line in lines {
        let line = line.as_object_mut().unwrap();
        let id = line.remove("instance").unwrap();
        assert!(["pure", "tree", "choose"].contains(&line["workflow"].as_str().unwrap()));
        for name in ["workflow", "version", "startedAt"] {
            assert!(line.remove(name).unwrap().is_string());
        }
        let entries = all.entry(id.as_str().unwrap().to_owned()).or_default();
        assert_eq!(line.remove("number").unwrap(), entries.len() + 1);
        entries.push(Value::Object(line.clone()));
    }
    assert_eq!(all.len(), instances.len());
    for (id, entries) in &all {
        let history = client.get(&format!("instances/{id}/history")).await;
        assert_eq!(history["entries"], json!(entries), "of {id}");
    }
    let (done, lines, error) = run(&["--cursor", cursor.to_str().unwrap()]);
    assert!(
        !done && lines.is_empty() && error.contains("is complete"),
        "{error}"
    );

    // As if it had ended before the last entries of the second instance.
    let list = client.get("instances?limit=2&workflow=tree").await;
    let id = |place: usize| list["instances"][place]["id"].as_str().unwrap().to_owned();
    let begun = json!({"selection": [["workflow", "tree"]], "after": null, "done": [id(0)],
        "under_way": [id(1), 3], "is_complete": false});
    std::fs::write(&cursor, begun.to_string()).unwrap();
    let file = cursor.to_str().unwrap();
    let (done, lines, error) = run(&["--workflow", "tree", "--cursor", file]);
    assert!(done, "{error}");
    let of = |id: &str| lines.iter().filter(|line| line["instance"] == id).count();
    assert_eq!((of(&id(0)), of(&id(1))), (0, all[&id(1)].len() - 3));

    let (done, lines, _) = run(&[before]);
    assert!(done && lines.len() == all[before].len());
    let (done, lines, error) = run(&["nothing-like-it"]);
    assert!(
        !done && lines.is_empty() && error.contains("unknown-instance"),
        "{error}"
    );
}

/// A full stream delays nothing else, and all events are in it after it accepts them again.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_stream_only_delays_them() {
    let lease = Duration::from_secs(3);
    let mut cluster = Cluster::start(Path::new(BINARY), 1, 1, lease, false).unwrap();
    let client = AnyCoordinator::new(cluster.apis());
    let context = jetstream(&cluster).await;
    let mut config = Config {
        name: STREAM.to_owned(),
        subjects: vec!["swirl-lifecycle.default.>".to_owned()],
        discard: DiscardPolicy::New,
        max_messages: 5,
        ..Config::default()
    };
    let mut stream = context.create_stream(config.clone()).await.unwrap();
    turn_on(&mut cluster);
    client.deploy("pure", PURE).await;
    let mut instances = Vec::new();
    for n in 0..30 {
        instances.push(client.start("pure", n).await);
    }
    let all = |found: &Value| found["counts"]["completed"] == 30;
    client.until("counts", "that all complete", all).await;
    eventually("that they are late", async || {
        let late = client.metric("swirl_lifecycle_lag_seconds").await?;
        let unread = client.metric("swirl_lifecycle_unread").await?;
        (late > 1.0 && unread > 20.0).then_some(())
    })
    .await;
    assert_eq!(stream.info().await.unwrap().state.messages, 5);
    config.max_messages = -1;
    context.update_stream(config).await.unwrap();
    compare(&client, &mut stream, &instances, &BTreeSet::new()).await;
}

/// An attempt that fails, a race that both branches surely enter, and a wait to be suspended and cancelled in.
const TASKS: &str = r#"
document: {dsl: 1.0.3, namespace: shop, name: tasks, version: 1.0.0}
do:
  - t:
      try: [{a: {raise: {error: {type: 'https://example.com/no', status: 500}}}}]
      catch: {retry: {delay: {milliseconds: 1}, limit: {attempt: {count: 1}}}, do: [{h: {set: {x: 1}}}]}
  - f: {fork: {compete: true, branches: [{fast: {wait: PT5S}}, {slow: {wait: PT1H}}]}}
  - w: {wait: PT1H}
"#;

/// Also those that have no entry of their own in the history.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_retried_suspended_resumed_and_cancelled() {
    let lease = Duration::from_secs(3);
    let mut cluster = Cluster::start(Path::new(BINARY), 1, 1, lease, false).unwrap();
    let client = AnyCoordinator::new(cluster.apis());
    client.deploy("shop.tasks", TASKS).await;
    turn_on(&mut cluster);
    // Time has to pass: workers read the setting every few seconds, and nothing shows that they have.
    tokio::time::sleep(Duration::from_secs(LEARNING as u64)).await;
    let id = client.start("shop.tasks", 1).await;
    let waits = |history: &Value| {
        let mut entries = history["entries"].as_array().unwrap().iter();
        entries.any(|entry| entry["event"] == "state_entered" && entry["name"] == "w")
    };
    let path = format!("instances/{id}/history");
    client.until(&path, "that it waits", waits).await;
    for word in ["suspend", "resume", "cancel"] {
        client.act(&id, word).await;
    }
    let context = jetstream(&cluster).await;
    let found = eventually("its end", async || {
        let mut stream = context.get_stream(STREAM).await.ok()?;
        let state = stream.info().await.unwrap().state.clone();
        let (mut found, mut ids) = (Vec::new(), BTreeSet::new());
        for sequence in state.first_sequence..=state.last_sequence {
            let message = stream.get_raw_message(sequence).await.unwrap();
            let event: Value = serde_json::from_slice(&message.payload).unwrap();
            assert!(ids.insert(event["id"].to_string()), "twice: {event:#}");
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let kind = text(&event["type"]);
            let kind = kind.strip_prefix("io.serverlessworkflow.").unwrap();
            let task = text(&event["data"]["task"]);
            found.push(format!("{kind} {task}").trim_end().to_owned());
        }
        let last = "task.cancelled.v1 /do/2/w".to_owned();
        found.contains(&last).then_some(found)
    })
    .await;
    let of = |task: &str| {
        let all = found.iter().filter_map(|row| row.strip_suffix(task));
        let words = all.map(|row| row.trim_end().trim_start_matches("task."));
        words.collect::<Vec<_>>().join(" ")
    };
    let a = "created.v1 started.v1 faulted.v1";
    assert_eq!(of(" /do/0/t/try/0/a"), format!("{a} {a}"));
    let t = "created.v1 started.v1 retried.v1 completed.v1";
    assert_eq!(of(" /do/0/t"), t);
    let slow = "created.v1 started.v1 cancelled.v1";
    assert_eq!(of(" /do/1/f/fork/branches/1/slow"), slow, "{found:#?}");
    let w = "created.v1 started.v1 suspended.v1 resumed.v1 cancelled.v1";
    assert_eq!(of(" /do/2/w"), w);
}
