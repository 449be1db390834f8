//! `GET /audit`: at the end, it has each kind of action that the other parts have carried out.

use serde_json::{Value, json};
use swirl_api::audit::Action;

use super::{started, waiting};
use crate::dev::http::JSON;
use crate::dev::process::Dev;

async fn entries(dev: &Dev, query: &str) -> Vec<Value> {
    let page = dev.get(&format!("/api/v1/audit?{query}")).await.is(200);
    page["entries"].as_array().unwrap().clone()
}

pub async fn check(dev: &Dev) {
    each_action(dev).await;
    one_instance(dev).await;
    pages(dev).await;
    refusals_leave_nothing(dev).await;
    for wrong in ["action=explode", "kind=planet", "limit=0", "who=ann"] {
        dev.get(&format!("/api/v1/audit?{wrong}"))
            .await
            .refused(400, "invalid-query");
    }
    dev.get("/api/v1/audit?after=5")
        .await
        .refused(400, "unknown-place");
}

async fn each_action(dev: &Dev) {
    for action in Action::WORDS {
        let found = entries(dev, &format!("action={action}&limit=1")).await;
        // There are none in one process: cli/tests/dead_letters.rs has some.
        if action.starts_with("dead-letter") {
            assert!(found.is_empty(), "{found:?}");
            continue;
        }
        let entry = found.first().unwrap_or_else(|| panic!("no {action}"));
        assert_eq!(entry["action"], *action);
        assert_eq!(entry["by"], Value::Null, "no token is asked for");
        let subject = &entry["subject"];
        let kind = match action.split_once('-') {
            Some((kind, _)) => kind,
            None if *action == "batch" => "batch",
            None if ["activate", "deploy", "delete", "rehearse"].contains(action) => "definition",
            None => "instance",
        };
        assert_eq!(subject["kind"], kind, "{entry:#}");
        assert!(!subject["id"].as_str().unwrap().is_empty());
        assert_eq!(
            subject["version"].is_string(),
            kind == "definition",
            "{entry:#}"
        );
    }
}

async fn one_instance(dev: &Dev) {
    let id = waiting(dev, "audited").await;
    let path = format!("/api/v1/instances/{id}");
    for word in [
        "suspend?reason=over%20lunch",
        "resume",
        "cancel?reason=enough",
    ] {
        dev.post(&format!("{path}/{word}"), &[JSON], "")
            .await
            .is(202);
    }
    let found = entries(dev, &format!("kind=instance&subject={id}")).await;
    let shown: Vec<Value> = found
        .iter()
        .map(|entry| json!([entry["action"], entry["reason"], entry["details"]]))
        .collect();
    let workflow = json!({"workflow": "waiter"});
    assert_eq!(
        shown,
        [
            json!(["cancel", "enough", workflow]),
            json!(["resume", null, workflow]),
            json!(["suspend", "over lunch", workflow]),
        ]
    );
    assert!(found.is_sorted_by(|a, b| a["id"].as_str() > b["id"].as_str()));
    assert!(
        entries(dev, &format!("kind=batch&subject={id}"))
            .await
            .is_empty()
    );
    assert!(entries(dev, "by=ann").await.is_empty());
}

async fn pages(dev: &Dev) {
    let all = entries(dev, "limit=1000").await;
    assert!(all.len() > 20, "{}", all.len());
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = dev
            .get(&format!("/api/v1/audit?limit=7{after}"))
            .await
            .is(200);
        let rows = page["entries"].as_array().unwrap();
        assert!(rows.len() <= 7);
        found.extend(rows.iter().cloned());
        let Some(next) = page["next"].as_str() else {
            assert_eq!(page["complete"], true);
            break;
        };
        assert_eq!((rows.len(), &page["complete"]), (7, &json!(false)));
        let next: String = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
        after = format!("&after={next}");
    }
    assert_eq!(found, all);
}

/// Nor do requests that only look.
async fn refusals_leave_nothing(dev: &Dev) {
    let before = entries(dev, "limit=1").await;
    let id = started(dev, "greeting", json!({})).await;
    let path = format!("/api/v1/instances/{id}");
    super::having(dev, &id, "completed").await;
    dev.post(&format!("{path}/cancel"), &[JSON], "")
        .await
        .refused(409, "wrong-status");
    let long = "x".repeat(501);
    dev.post(&format!("{path}/cancel?reason={long}"), &[JSON], "")
        .await
        .refused(400, "invalid-query");
    let batch = json!({"operation": "cancel", "query": "id = none", "dryRun": true});
    dev.post("/api/v1/batches", &[JSON], batch.to_string())
        .await
        .is(200);
    assert_eq!(entries(dev, "limit=1").await, before);
}
