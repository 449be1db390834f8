//! Inspects and controls schedules, and explains events.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use swirl_model::time::Timestamp;

use super::{having, waiting};
use crate::dev::http::JSON;
use crate::dev::process::Dev;

pub const HOURLY: &str = r#"
id: hourly
version: "1.0.0"
specVersion: "0.8"
start: {stateName: Only, schedule: {cron: "0 * * * *"}}
states:
  - {name: Only, type: inject, data: {a: 1}, end: true}
"#;

const EVENT: (&str, &str) = ("content-type", "application/cloudevents+json");
const BATCH: (&str, &str) = ("content-type", "application/cloudevents-batch+json");

fn path(workflow: &str, word: &str) -> String {
    format!("/api/v1/workflows/{workflow}/schedule/{word}")
}

pub async fn check(dev: &Dev) {
    listed(dev).await;
    fired(dev).await;
    backfilled(dev).await;
    explained(dev).await;
    recent(dev).await;
    drawn(dev).await;
    at_a_glance(dev).await;
}

/// Pictures, and the history in pages.
async fn drawn(dev: &Dev) {
    let id = waiting(dev, "drawn").await;
    let picture = async |path: &str| {
        let answer = dev.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        answer.text
    };
    let plain = picture("/api/v1/definitions/waiter/1.0.0/diagram").await;
    assert!(plain.starts_with("<svg ") && !plain.contains("is here"));
    let painted = picture(&format!("/api/v1/instances/{id}/diagram")).await;
    for words in ["card past", "card here", ">2. is here</text>", "edge taken"] {
        assert!(painted.contains(words), "{words}");
    }
    for (path, code) in [
        ("/api/v1/definitions/waiter/9/diagram", "unknown-workflow"),
        ("/api/v1/instances/none/diagram", "unknown-instance"),
    ] {
        dev.get(path).await.refused(404, code);
    }
    let history = async |query: &str| {
        let path = format!("/api/v1/instances/{id}/history?{query}");
        dev.get(&path).await.is(200)
    };
    let all = history("").await;
    let total = all["entries"].as_array().unwrap().len();
    assert_eq!(all["total"], json!(total));
    let page = history("after=1&limit=2").await;
    assert_eq!(page["before"], json!(1));
    assert_eq!(page["entries"][0], all["entries"][1]);
    assert_eq!(page["entries"].as_array().unwrap().len(), 2);
    let last = history("last=1").await;
    assert_eq!(last["before"], json!(total - 1));
    assert_eq!(last["entries"][0], all["entries"][total - 1]);
    let path = format!("/api/v1/instances/{id}/history?last=1&after=1");
    dev.get(&path).await.refused(400, "invalid-query");
    let path = format!("/api/v1/instances/{id}/cancel");
    dev.post(&path, &[JSON], "").await.is(202);
    having(dev, &id, "cancelled").await;
}

async fn at_a_glance(dev: &Dev) {
    let input = json!({"key": "at-a-glance", "failures": 100});
    let failed = super::started(dev, "faulty", input).await;
    having(dev, &failed, "faulted").await;
    let body = dev.get("/api/v1/overview").await.is(200);
    let counts = body["counts"].as_array().unwrap();
    let faulted = counts
        .iter()
        .find(|row| row["status"] == "faulted")
        .unwrap();
    assert!(faulted["count"].as_u64().unwrap() >= 1, "{body:#}");
    let groups = body["failures"].as_array().unwrap();
    let group = groups
        .iter()
        .find(|row| row["workflow"] == "faulty" && row["newest"] == json!(failed));
    let group = group.unwrap_or_else(|| panic!("{body:#}"));
    assert_eq!(group["state"], "Work");
    // Its query finds these failures and no others.
    let query = group["query"].as_str().unwrap();
    let query: String = url::form_urlencoded::byte_serialize(query.as_bytes()).collect();
    let found = dev
        .get(&format!("/api/v1/instances?limit=1000&query={query}"))
        .await
        .is(200);
    let found = found["instances"].as_array().unwrap();
    assert_eq!(json!(found.len()), group["count"], "{group:#}");
    assert!(found.iter().any(|row| row["id"] == json!(failed)));
    let oldest = body["oldest"].as_array().unwrap();
    assert!(
        oldest.iter().all(|row| row["status"] == "running"),
        "{body:#}"
    );
    let me = dev.get("/api/v1/me").await.is(200);
    assert_eq!(
        (&me["open"], &me["name"], &me["namespace"]),
        (&json!(true), &Value::Null, &json!("default"))
    );
}

async fn listed(dev: &Dev) {
    let body = dev.get("/api/v1/schedules?next=4").await.is(200);
    let all = body["schedules"].as_array().unwrap();
    let hourly = all.iter().find(|row| row["workflow"] == "hourly").unwrap();
    assert_eq!(
        (&hourly["kind"], &hourly["schedule"], &hourly["paused"]),
        (&json!("cron"), &json!("0 * * * *"), &json!(false))
    );
    let next = hourly["next"].as_array().unwrap();
    let next: Vec<i64> = next
        .iter()
        .map(|at| Timestamp::parse(at.as_str().unwrap()).unwrap().0)
        .collect();
    assert_eq!(next.len(), 4);
    assert!(next.windows(2).all(|pair| pair[1] - pair[0] == 3_600_000));
    for wrong in ["next=0", "limit=0"] {
        let answer = dev.get(&format!("/api/v1/schedules?{wrong}")).await;
        answer.refused(400, "invalid-query");
    }
    // One after another, by workflow.
    let names: Vec<&Value> = all.iter().map(|row| &row["workflow"]).collect();
    let page = dev.get("/api/v1/schedules?limit=1").await.is(200);
    assert_eq!(
        (&page["schedules"][0]["workflow"], names.len() > 1),
        (names[0], true)
    );
    let mut query = reqwest::Url::parse("http://here/").unwrap();
    let after = page["next"].as_str().unwrap();
    query.query_pairs_mut().append_pair("after", after);
    let rest = format!("/api/v1/schedules?{}", query.query().unwrap());
    let rest = dev.get(&rest).await.is(200);
    let found = rest["schedules"].as_array().unwrap().iter();
    let found: Vec<&Value> = found.map(|row| &row["workflow"]).collect();
    assert_eq!(
        (found, &rest["complete"]),
        (names[1..].to_vec(), &json!(true))
    );
}

async fn fired(dev: &Dev) {
    let key = [("idempotency-key", "once")];
    let first = dev.post(&path("hourly", "fire"), &key, "").await.is(201);
    let id = first["id"].as_str().unwrap();
    having(dev, id, "completed").await;
    let again = dev.post(&path("hourly", "fire"), &key, "").await.is(200);
    assert_eq!((&again["id"], &again["new"]), (&json!(id), &json!(false)));
    let other = dev.post(&path("hourly", "fire"), &[], "").await.is(201);
    assert_ne!(other["id"], json!(id));
    for word in ["fire", "backfill"] {
        let time = json!({"from": "2024-01-01T00:00:00Z", "to": "2024-01-02T00:00:00Z"});
        let time = time.to_string();
        dev.post(&path("none", word), &[JSON], time.clone())
            .await
            .refused(404, "unknown-workflow");
        dev.post(&path("waiter", word), &[JSON], time)
            .await
            .refused(409, "no-schedule");
    }
}

async fn backfilled(dev: &Dev) {
    let ask = async |workflow: &str, from: &str, to: &str, dry: bool| {
        let time = json!({"from": from, "to": to, "dryRun": dry});
        dev.post(&path(workflow, "backfill"), &[JSON], time.to_string())
            .await
    };
    let (from, to) = ("2024-01-01T00:00:00Z", "2024-01-01T03:00:00Z");
    let new = |body: &Value| -> Vec<bool> {
        let starts = body["starts"].as_array().unwrap();
        starts.iter().map(|start| start["new"] == true).collect()
    };
    let dry = ask("hourly", from, to, true).await.is(200);
    assert_eq!(new(&dry), [true; 3]);
    let wrong = ask("hourly", "2026-10-01 05:00", to, true).await;
    assert_eq!(
        wrong.refused(400, "invalid-json")["detail"],
        "'from' is '2026-10-01 05:00', which is not an instant such as 2026-01-31T00:00:00Z or 2026-01-31"
    );
    let first = ask("hourly", from, to, false).await.is(200);
    assert_eq!(new(&first), [true; 3], "the dry run started nothing");
    assert_eq!(first["starts"][1]["at"], "2024-01-01T01:00:00.000Z");
    assert_eq!(dry["starts"][0]["id"], first["starts"][0]["id"]);
    let again = ask("hourly", from, "2024-01-01T04:00:00Z", false).await;
    assert_eq!(new(&again.is(200)), [false, false, false, true]);
    let id = first["starts"][0]["id"].as_str().unwrap();
    having(dev, id, "completed").await;
    // Starts that the schedule itself has made aren't repeated.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = Timestamp(i64::try_from(now.as_millis()).unwrap()).to_string();
    let own = ask("timed", from, &now, true).await.is(200);
    assert_eq!(new(&own), [false], "{own}");
    for (from, to) in [
        (to, from),
        (from, "2999-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00Z", from),
    ] {
        ask("hourly", from, to, true)
            .await
            .refused(400, "invalid-range");
    }
    ask("hourly", "yesterday", to, true)
        .await
        .refused(400, "invalid-json");
}

async fn explained(dev: &Dev) {
    let (mine, other) = (
        waiting(dev, "explain-1").await,
        waiting(dev, "explain-2").await,
    );
    let url = "/api/v1/events/explain";
    let event = json!({"specversion": "1.0", "id": "x1", "source": "/test", "type": "test.go", "order": "explain-1"});
    let found = dev.post(url, &[EVENT], event.to_string()).await.is(200);
    let takers = found["takenBy"].as_array().unwrap();
    assert_eq!(takers.len(), 1, "{found:#}");
    assert_eq!(
        (&takers[0]["instance"], &takers[0]["state"]),
        (&json!(mine), &json!("Wait"))
    );
    assert_eq!(
        (&found["kept"], &found["complete"]),
        (&json!(true), &json!(true))
    );
    let missed = found["notTakenBy"].as_array().unwrap();
    let missed = missed.iter().find(|row| row["instance"] == json!(other));
    let why = &missed.unwrap()["why"][0];
    assert_eq!(
        (&why["attribute"], &why["expected"], &why["found"]),
        (&json!("order"), &json!("explain-2"), &json!("explain-1"))
    );
    // The nearest miss comes first: the value is inside the data.
    let inside = json!({"specversion": "1.0", "id": "x2", "source": "/test", "type": "test.go", "data": {"Order": "explain-2"}});
    let found = dev.post(url, &[EVENT], inside.to_string()).await.is(200);
    let why = found["notTakenBy"][0]["why"][0]["text"].as_str().unwrap();
    assert!(why.contains("'Order' is inside 'data'"), "{found:#}");
    let mut unknown = inside.clone();
    unknown["type"] = json!("Test.Go");
    let found = dev.post(url, &[EVENT], unknown.to_string()).await.is(200);
    let said = found["unknownType"].as_str().unwrap();
    assert!(said.contains("consumes 'test.go'"), "{said}");
    // For one instance only. The event was not accepted.
    let asked = format!("{url}?instance={other}");
    let alone = dev.post(&asked, &[EVENT], event.to_string()).await.is(200);
    assert_eq!(alone["takenBy"], json!([]));
    assert_eq!(alone["notTakenBy"][0]["why"][0]["expected"], "explain-2");
    let stands = dev.get(&format!("/api/v1/instances/{mine}")).await.is(200);
    assert_eq!(stands["status"], "running");
    // Workflows that it would start, alone and with others, and a source that differs.
    for (kind, workflow, by_itself) in [
        ("test.begin", "starter", true),
        ("test.left", "pair", false),
    ] {
        let mut event = event.clone();
        event["type"] = json!(kind);
        let found = dev.post(url, &[EVENT], event.to_string()).await.is(200);
        assert_eq!(
            (
                &found["starts"][0]["workflow"],
                &found["starts"][0]["alone"]
            ),
            (&json!(workflow), &json!(by_itself)),
            "{found:#}"
        );
        event["source"] = json!("/elsewhere");
        let found = dev.post(url, &[EVENT], event.to_string()).await.is(200);
        assert_eq!(found["starts"], json!([]));
        let why = &found["notTakenBy"][0]["why"][0];
        assert_eq!(
            (&why["attribute"], &why["expected"], &why["found"]),
            (&json!("source"), &json!("/test"), &json!("/elsewhere"))
        );
    }
    let asked = format!("{url}?instance=none");
    dev.post(&asked, &[EVENT], event.to_string())
        .await
        .refused(404, "unknown-instance");
    dev.post(url, &[BATCH], "[]")
        .await
        .refused(400, "invalid-event");
    dev.post(url, &[JSON], "{}")
        .await
        .refused(415, "no-cloudevent");
    let large = dev.post(url, &[EVENT], "x".repeat(2 << 20)).await;
    // The body isn't read to the end, so no other request may follow on this connection.
    assert_eq!(large.headers["connection"], "close");
    large.refused(413, "too-large");
    for id in [mine, other] {
        let path = format!("/api/v1/instances/{id}/cancel");
        dev.post(&path, &[JSON], "").await.is(202);
        having(dev, &id, "cancelled").await;
    }
}

async fn recent(dev: &Dev) {
    for (number, kind) in ["test.begin", "test.none"].iter().enumerate() {
        let event = json!({"specversion": "1.0", "id": format!("recent-{number}"), "source": "/test", "type": kind});
        dev.post("/api/v1/events", &[EVENT], event.to_string())
            .await
            .is(202);
    }
    let body = dev.get("/api/v1/events?limit=2").await.is(200);
    let ids: Vec<&Value> = body["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| &event["id"])
        .collect();
    assert_eq!(ids, ["recent-1", "recent-0"]);
    assert_eq!(body["events"][1]["started"][0]["workflow"], "starter");
    assert_eq!(body["events"][0]["type"], "test.none");
    let outcome = |place: usize| body["events"][place]["outcome"].clone();
    assert_eq!(
        (outcome(0), outcome(1)),
        (json!("not-received"), json!("received"))
    );
    assert_eq!(body["events"][0]["via"], "http");
    let reason = body["events"][0]["reasons"][0].as_str().unwrap();
    assert!(
        reason.contains("no deployed workflow consumes the type 'test.none'"),
        "{reason}"
    );
    // What is not a CloudEvent leaves a trace, too.
    dev.post("/api/v1/events", &[EVENT], "{}").await.is(400);
    let refused = dev
        .get("/api/v1/events?outcome=refused&limit=1")
        .await
        .is(200);
    assert!(
        refused["events"][0]["reasons"][0].is_string(),
        "{refused:#}"
    );
    let typed = dev.get("/api/v1/events?type=test.none").await.is(200);
    let typed = typed["events"].as_array().unwrap();
    assert!(!typed.is_empty() && typed.iter().all(|event| event["type"] == "test.none"));
    dev.get("/api/v1/events?outcome=lost")
        .await
        .refused(400, "invalid-query");
    let (code, text, _) = dev.run(&["events", "recent", "--outcome", "not-received"]);
    assert!(
        code == Some(0) && text.contains("(test.none, via http): not-received"),
        "{text}"
    );
    dev.get("/api/v1/events?limit=501")
        .await
        .refused(400, "invalid-query");
}
