//! Reading instances: state data, arguments and results of calls, and operators' actions.

use serde_json::{Value, json};

use super::{having, started, waiting};
use crate::dev::http::JSON;
use crate::dev::process::Dev;

const PATH: &str = "/api/v1/instances";

pub async fn check(dev: &Dev) {
    state_data(dev).await;
    calls(dev).await;
    statuses(dev).await;
    until_the_end(dev).await;
    commands(dev).await;
}

async fn entries(dev: &Dev, id: &str, query: &str) -> Vec<Value> {
    let history = dev
        .get(&format!("{PATH}/{id}/history{query}"))
        .await
        .is(200);
    history["entries"].as_array().unwrap().clone()
}

async fn state_data(dev: &Dev) {
    let id = waiting(dev, "data").await;
    let shown = dev.get(&format!("{PATH}/{id}")).await.is(200);
    let data = json!({"order": "data", "begun": true});
    assert_eq!(shown["scopes"][0]["data"], data, "{shown:#}");

    let id = started(dev, "faulty", json!({"key": "data", "failures": 1000})).await;
    let shown = having(dev, &id, "faulted").await;
    assert_eq!(shown["scopes"][0]["data"]["prepared"], true, "{shown:#}");
}

async fn calls(dev: &Dev) {
    let id = started(dev, "faulty", json!({"key": "calls", "failures": 1})).await;
    having(dev, &id, "faulted").await;
    let path = format!("{PATH}/{id}/skip?reason=paid%20by%20phone");
    dev.post(&path, &[JSON], r#"{"by": "hand"}"#).await.is(202);
    having(dev, &id, "completed").await;
    let all = entries(dev, &id, "").await;
    let find = |event: &str| all.iter().find(|entry| entry["event"] == event).unwrap();
    let given = json!({"key": "calls", "failures": 1});
    assert_eq!(
        find("action_failed")["data"]["arguments"],
        given,
        "{all:#?}"
    );
    let operated = find("operated");
    assert_eq!(
        (&operated["action"], &operated["reason"]),
        (&json!("skip"), &json!("paid by phone"))
    );
    assert_eq!(
        operated["data"]["result"],
        json!({"by": "hand"}),
        "{operated:#}"
    );
    assert_eq!(operated.get("by"), None, "nobody is asked for a token");
    let long = format!("{PATH}/{id}/cancel?reason={}", "x".repeat(501));
    dev.post(&long, &[JSON], "")
        .await
        .refused(400, "invalid-query");

    let id = started(dev, "faulty", json!({"key": "answered", "failures": 0})).await;
    having(dev, &id, "completed").await;
    let all = entries(dev, &id, "").await;
    let done = all
        .iter()
        .find(|entry| entry["event"] == "action_completed")
        .unwrap();
    assert_eq!(done["data"]["arguments"]["key"], "answered", "{done:#}");
    assert!(done["data"]["result"].is_object(), "{done:#}");
    assert_eq!(entries(dev, &id, "?after=2").await, all[2..]);
}

async fn statuses(dev: &Dev) {
    let id = waiting(dev, "statuses").await;
    let row = async |query: &str| -> Option<Value> {
        let list = dev.get(&format!("{PATH}?limit=1000&{query}")).await.is(200);
        let rows = list["instances"].as_array().unwrap();
        rows.iter().find(|row| row["id"] == id.as_str()).cloned()
    };
    let waits = row("status=waiting").await.unwrap();
    assert_eq!(
        (&waits["state"], &waits["waiting"]),
        (&json!("Wait"), &json!(true)),
        "{waits:#}"
    );
    assert_eq!(row("status=suspended").await, None);
    dev.post(&format!("{PATH}/{id}/suspend"), &[JSON], "")
        .await
        .is(202);
    assert!(row("status=suspended").await.is_some());
    assert_eq!(row("status=waiting").await, None);
    dev.post(&format!("{PATH}/{id}/cancel"), &[JSON], "")
        .await
        .is(202);
    having(dev, &id, "cancelled").await;
    assert_eq!(row("status=suspended").await, None);

    let id = started(dev, "faulty", json!({"key": "statuses", "failures": 1000})).await;
    having(dev, &id, "faulted").await;
    let list = dev
        .get(&format!("{PATH}?status=faulted&limit=1"))
        .await
        .is(200);
    let row = &list["instances"][0];
    assert_eq!(
        (&row["id"], &row["state"], &row["error"]["code"]),
        (&json!(id), &json!("Work"), &json!("503"))
    );
}

async fn until_the_end(dev: &Dev) {
    let id = waiting(dev, "end").await;
    let path = format!("{PATH}/{id}?wait=PT0.01S");
    assert_eq!(dev.get(&path).await.is(200)["status"], "running");
    let path = format!("{PATH}/{id}?wait=PT15S");
    let (ended, sent) = tokio::join!(dev.get(&path), async {
        dev.post(&format!("{PATH}/{id}/cancel"), &[JSON], "").await
    });
    sent.is(202);
    assert_eq!(ended.is(200)["status"], "cancelled");
    for wait in ["PT61S", "1"] {
        let path = format!("{PATH}/{id}?wait={wait}");
        dev.get(&path).await.refused(400, "invalid-query");
    }
}

/// The commands as users run them.
async fn commands(dev: &Dev) {
    let id = waiting(dev, "commands").await;
    let (code, out, err) = dev.run(&["get", &id, "--watch", "--timeout", "10ms"]);
    assert_eq!(code, Some(3), "{out}{err}");
    assert!(
        out.contains("data         {\"order\":\"commands\""),
        "{out}"
    );
    let (code, _, err) = dev.run(&["history", &id, "--follow", "--timeout", "10ms"]);
    assert_eq!(code, Some(3), "{err}");
    let input = json!({"order": "commands"}).to_string();
    let start = [
        "start",
        "waiter",
        "--input",
        &input,
        "--key",
        "commands",
        "--wait",
        "--timeout",
        "10ms",
    ];
    let (code, out, err) = dev.run(&start);
    assert_eq!((code, out.as_str()), (Some(3), ""), "{err}");
    assert!(
        err.contains("is started") && err.contains("still running"),
        "{err}"
    );
    let second = err.split_whitespace().nth(1).unwrap();
    let (code, out, err) = dev.run(&[&start[..], &["--output", "json"]].concat());
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told, json!({"id": second, "status": "running"}), "{err}");
    assert_eq!(code, Some(3), "{err}");
    let (code, out, err) = dev.run(&["export", "nosuch", "--output", "json"]);
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &told["code"]),
        (Some(1), &json!("unknown-instance")),
        "{err}"
    );
    for id in [&id, second] {
        let (code, _, err) = dev.run(&["cancel", id, "--reason", "no longer wanted"]);
        assert_eq!(code, Some(0), "{err}");
        having(dev, id, "cancelled").await;
        let (_, out, _) = dev.run(&["history", id, "--follow"]);
        assert!(
            out.contains("operator: cancel, because: no longer wanted"),
            "{out}"
        );
    }
    beginnings(dev, second).await;
    let (_, out, _) = dev.run(&["list", "--status", "cancelled", "--limit", "1"]);
    assert!(out.starts_with("ID "), "{out}");
    let (_, out, _) = dev.run(&["definition", "list"]);
    assert!(out.contains("waiter") && out.contains("next at "), "{out}");
}

/// Commands accept the beginning of an id if it is unambiguous.
async fn beginnings(dev: &Dev, id: &str) {
    // Of seventeen ids, at least two begin with the same digit.
    for n in 0..16 {
        waiting(dev, &format!("begins-{n}")).await;
    }
    let all = dev.get(&format!("{PATH}?limit=1000")).await.is(200);
    let all = all["instances"].as_array().unwrap();
    let ids: Vec<&str> = all.iter().map(|one| one["id"].as_str().unwrap()).collect();
    let of = |digits: &str| ids.iter().filter(|id| id.starts_with(digits)).count();
    let shared = ids.iter().map(|id| &id[..1]).find(|digit| of(digit) > 1);
    let (code, out, err) = dev.run(&["cancel", shared.unwrap()]);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
    assert!(err.contains("use more digits\n  "), "{err}");

    let digits = (1..id.len()).find(|count| of(&id[..*count]) == 1);
    let beginning = &id[..digits.unwrap()];
    let (code, out, err) = dev.run(&["get", beginning]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with(&format!("id           {id}\n")), "{out}");
    let (code, _, err) = dev.run(&["history", beginning]);
    assert_eq!(code, Some(0), "{err}");
    let (code, _, err) = dev.run(&["resume", beginning]);
    assert_eq!(code, Some(1), "{err}");
    assert!(
        err.contains("the instance has ended: it is cancelled"),
        "{err}"
    );
    let (code, _, err) = dev.run(&["get", "0000000000000000000000"]);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("unknown-instance"), "{err}");
}
