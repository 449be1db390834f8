//! Messages that could not be processed, in a real cluster.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use swirl_chaos::Cluster;
use swirl_servers::until;

const BINARY: &str = env!("CARGO_BIN_EXE_swirl");

/// A command's output, and its exit code.
fn swirl(server: &str, arguments: &[&str]) -> (Value, Option<i32>) {
    let mut command = Command::new(BINARY);
    for variable in ["SWIRL_CONFIG", "SWIRL_TOKEN", "SWIRL_TOKEN_FILE"] {
        command.env_remove(variable);
    }
    let command = command.args(arguments).args(["--output", "json"]);
    let done = command.env("SWIRL_SERVER", server).output().unwrap();
    let answer = serde_json::from_slice(&done.stdout).unwrap_or(Value::Null);
    (answer, done.status.code())
}

/// The text output of a command: its rows and its messages.
fn shown(server: &str, arguments: &[&str]) -> (String, String) {
    let done = Command::new(BINARY)
        .args(arguments)
        .args(["--server", server, "--color", "never"])
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(done.stdout), text(done.stderr))
}

fn letters(server: &str, count: usize) -> Vec<Value> {
    until("so many letters", || {
        let (answer, code) = swirl(server, &["dead-letters", "list"]);
        assert_eq!(code, Some(0));
        let letters = answer["deadLetters"].as_array().unwrap();
        (letters.len() == count).then(|| letters.clone())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_listed_shown_resent_and_dropped() {
    let cluster = Cluster::start(Path::new(BINARY), 1, 1, Duration::from_secs(3), false).unwrap();
    let server = cluster.apis().remove(0);
    let nats = async_nats::connect(cluster.nats.url()).await.unwrap();
    assert!(letters(&server, 0).is_empty());
    let event = json!({"specversion": "1.0", "source": "/shop", "type": "paid"}).to_string();
    for payload in ["nonsense", &event] {
        let payload = payload.to_owned().into();
        nats.publish("swirl.events.test", payload).await.unwrap();
    }
    // A task for a missing instance.
    nats.publish("swirl-tasks.default", "{}".into())
        .await
        .unwrap();
    nats.flush().await.unwrap();

    let found = letters(&server, 3);
    let event = found
        .iter()
        .find(|letter| letter["event"]["type"] == "paid")
        .unwrap();
    assert_eq!(event["kind"], "event");
    assert_eq!(event["subject"], "swirl.events.test");
    let reason = event["reason"].as_str().unwrap();
    assert!(reason.contains("not a CloudEvent"), "{reason}");
    assert!(found.iter().any(|letter| letter["kind"] == "task"));
    let (page, _) = swirl(&server, &["dead-letters", "list", "--limit", "1"]);
    assert_eq!(page["next"], found[0]["sequence"]);
    let after = page["next"].to_string();
    let (rows, said) = shown(&server, &["dead-letters", "list", "--limit", "1"]);
    assert_eq!(rows.lines().count(), 1, "{rows}");
    assert_eq!(said, format!("there may be more: --after {after}\n"));
    let (rest, _) = swirl(&server, &["dead-letters", "list", "--after", &after]);
    assert_eq!(rest["deadLetters"].as_array().unwrap().len(), 2);

    let number = event["sequence"].to_string();
    let (whole, _) = swirl(&server, &["dead-letters", "show", &number]);
    let payload: Value = serde_json::from_str(whole["payload"].as_str().unwrap()).unwrap();
    assert_eq!(payload["source"], "/shop");

    // It still isn't an event, so it becomes a dead letter again, with another number.
    let (_, code) = swirl(&server, &["dead-letters", "retry", &number]);
    assert_eq!(code, Some(0));
    let again = letters(&server, 3);
    assert!(
        again
            .iter()
            .all(|letter| letter["sequence"] != event["sequence"])
    );
    correct(&server, &again).await;
    let again = letters(&server, 2);
    for letter in again {
        let number = letter["sequence"].to_string();
        let (dropped, code) = swirl(&server, &["dead-letters", "drop", &number]);
        assert_eq!((&dropped["reason"], code), (&letter["reason"], Some(0)));
        let (_, code) = swirl(&server, &["dead-letters", "show", &number]);
        assert_eq!(code, Some(1), "it is gone");
    }
    assert!(letters(&server, 0).is_empty());

    let (log, _) = swirl(&server, &["audit", "--kind", "dead-letter"]);
    let entries = log["entries"].as_array().unwrap();
    let actions: Vec<&str> = entries
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    let [dropped @ .., corrected, sent] = &actions[..] else {
        panic!("{log:#}")
    };
    assert_eq!(
        (*sent, *corrected, dropped),
        (
            "dead-letter-retry",
            "dead-letter-retry",
            &["dead-letter-drop"; 2][..]
        )
    );
    assert_eq!(entries[2]["details"]["corrected"], "yes", "{log:#}");
    assert_eq!(entries[3]["subject"]["id"], number);
    let (rows, _) = shown(&server, &["audit", "--subject", &number]);
    assert!(
        rows.contains(&format!(
            "dead-letter-retry  dead-letter {number}  (letter: "
        )),
        "{rows}"
    );
}

/// Corrects the event without an id. What can't be corrected, and corrections that would be dead letters again, are refused.
async fn correct(server: &str, letters: &[Value]) {
    // An error means that it has been done already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let retry = async |letter: &Value, payload: &str| {
        let url = format!("{server}/api/v1/dead-letters/{}/retry", letter["sequence"]);
        let body = json!({"payload": payload}).to_string();
        let answer = client.post(url).body(body).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.text().await.unwrap())
    };
    let of = |kind: &str| {
        let mut letters = letters.iter();
        letters.find(|letter| letter["event"]["type"] == kind || letter["kind"] == kind)
    };
    let (status, text) = retry(of("task").unwrap(), "{}").await;
    assert_eq!(status, 409, "{text}");
    assert!(text.contains("letter-of-task"), "{text}");
    let event = of("paid").unwrap();
    for (payload, words) in [
        ("nonsense", "JSON is not valid"),
        (
            "{\"specversion\": \"1.0\", \"id\": \"1\", \"source\": \"/shop\"}",
            "'type' is missing",
        ),
    ] {
        let (status, text) = retry(event, payload).await;
        assert_eq!(status, 400, "{text}");
        assert!(
            text.contains("invalid-event") && text.contains(words),
            "{text}"
        );
    }
    let corrected = json!({"specversion": "1.0", "id": "1", "source": "/shop", "type": "paid"});
    let (status, text) = retry(event, &corrected.to_string()).await;
    assert_eq!(status, 202, "{text}");
    let recent = until("the corrected event", || {
        let (recent, _) = swirl(server, &["events", "recent"]);
        let events = recent["events"].as_array().cloned().unwrap_or_default();
        (!events.is_empty()).then_some(events)
    });
    assert_eq!(recent[0]["type"], "paid", "{recent:?}");
}

/// The instance was suspended because of it.
#[tokio::test(flavor = "multi_thread")]
async fn resending_a_task_resumes_its_instance() {
    let cluster = Cluster::start(Path::new(BINARY), 1, 1, Duration::from_secs(3), false).unwrap();
    let server = cluster.apis().remove(0);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nap.sw.yaml");
    let nap = "{id: nap, version: '1.0.0', specVersion: '0.8', name: nap, start: rest, states: [\
               {name: rest, type: sleep, duration: PT3S, end: true}]}";
    std::fs::write(&file, nap).unwrap();
    assert_eq!(
        swirl(&server, &["deploy", file.to_str().unwrap()]).1,
        Some(0)
    );
    let (started, _) = swirl(&server, &["start", "nap"]);
    let id = started["id"].as_str().unwrap();
    assert_eq!(swirl(&server, &["suspend", id]).1, Some(0));
    // The same as a worker does with a task that it gives up.
    let nats = async_nats::connect(cluster.nats.url()).await.unwrap();
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Swirl-Reason", "it failed");
    headers.insert("Swirl-Subject", "swirl-tasks.default");
    let payload = json!([id, "r"]).to_string().into();
    nats.publish_with_headers("swirl-dead.default.task", headers, payload)
        .await
        .unwrap();
    nats.flush().await.unwrap();
    let found = letters(&server, 1);
    assert_eq!(found[0]["instance"], id);
    let number = found[0]["sequence"].to_string();
    assert_eq!(
        swirl(&server, &["dead-letters", "retry", &number]).1,
        Some(0)
    );
    assert!(letters(&server, 0).is_empty());
    until("its end", || {
        let (view, _) = swirl(&server, &["get", id]);
        (view["status"] == "completed").then_some(())
    });
}

/// NATS was reconfigured after the event was created, so the event could not be rejected earlier.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_nats_rejects_later_becomes_a_dead_letter() {
    let cluster = Cluster::start(Path::new(BINARY), 1, 1, Duration::from_secs(3), false).unwrap();
    let server = cluster.apis().remove(0);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tell.sw.yaml");
    let tell = "{id: tell, version: '1', specVersion: '0.8', \
                events: [{name: said, type: test.said, source: /test, kind: produced}], \
                states: [{name: A, type: sleep, duration: PT0.01S, \
                  end: {produceEvents: [{eventRef: said, data: '${ {text: (\"x\" * 9000)} }'}]}}]}";
    std::fs::write(&file, tell).unwrap();
    assert_eq!(
        swirl(&server, &["deploy", file.to_str().unwrap()]).1,
        Some(0)
    );
    let nats = async_nats::connect(cluster.nats.url()).await.unwrap();
    let context = async_nats::jetstream::new(nats);
    let stream = context.get_stream("SWIRL_default_EVENTS").await.unwrap();
    let mut config = stream.cached_info().config.clone();
    config.max_message_size = 4_000;
    context.update_stream(config).await.unwrap();

    let (ended, code) = swirl(&server, &["start", "tell", "--wait"]);
    assert_eq!((&ended["status"], code), (&json!("completed"), Some(0)));
    let found = letters(&server, 1);
    assert_eq!(found[0]["kind"], "event", "{found:#?}");
    assert_eq!(found[0]["event"]["type"], "test.said", "{found:#?}");
    let reason = found[0]["reason"].as_str().unwrap();
    assert!(reason.contains("for its stream"), "{reason}");
}
