//! `/views`: saved searches for instances.

use reqwest::Method;
use serde_json::{Value, json};

use crate::dev::http::{Answer, JSON};
use crate::dev::process::Dev;

/// The maximum number of views.
const VIEWS_MAX: usize = 100;

async fn save(dev: &Dev, view: &Value) -> Answer {
    dev.post("/api/v1/views", &[JSON], view.to_string()).await
}

async fn remove(dev: &Dev, name: &str) -> Answer {
    let path = format!("/api/v1/views/{name}");
    dev.send(Method::DELETE, &path, &[], "").await
}

async fn names(dev: &Dev) -> Vec<String> {
    let found = dev.get("/api/v1/views").await.is(200);
    let views = found["views"].as_array().unwrap();
    let names = views.iter().map(|view| view["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

pub async fn check(dev: &Dev) {
    assert_eq!(names(dev).await, Vec::<String>::new());
    let view = json!({"name": " Late / orders ", "workflow": "waiter", "query": "started < -1h", "key": ""});
    let saved = save(dev, &view).await.is(201);
    assert_eq!(saved["name"], "Late / orders");
    assert_eq!(saved["query"], "started < -1h");
    assert!(
        saved.get("key").is_none() && saved["savedAt"].is_string(),
        "{saved:#}"
    );
    let again = json!({"name": "Late / orders", "status": "waiting"});
    let path = "/api/v1/views?reason=only%20waiting%20ones";
    dev.post(path, &[JSON], again.to_string()).await.is(201);
    save(dev, &json!({"name": "a", "key": "k"})).await.is(201);
    let found = dev.get("/api/v1/views").await.is(200);
    assert_eq!(found["views"][0]["status"], "waiting", "it is replaced");
    assert!(found["views"][0].get("query").is_none(), "{found:#}");
    assert_eq!(names(dev).await, ["Late / orders", "a"]);
    refusals(dev).await;
    assert_eq!(
        remove(dev, "Late%20%2F%20orders").await.is(200)["name"],
        "Late / orders"
    );
    remove(dev, "Late%20%2F%20orders")
        .await
        .refused(404, "unknown-view");
    remove(dev, "a?reason=not%20needed").await.is(200);
    audited(dev).await;
}

/// Each change is in the audit log, with the search that it replaced or removed.
async fn audited(dev: &Dev) {
    let entries = async |subject: &str| {
        let path = format!("/api/v1/audit?kind=view&subject={subject}");
        let page = dev.get(&path).await.is(200);
        let entries = page["entries"].as_array().unwrap().iter();
        let shown = entries.map(|one| json!([one["action"], one["reason"], one["details"]]));
        shown.collect::<Vec<_>>()
    };
    let waiting = "status 'waiting'";
    let old = "workflow 'waiter', query 'started < -1h'";
    assert_eq!(
        entries("Late%20%2F%20orders").await,
        [
            json!(["view-remove", null, {"search": waiting}]),
            json!(["view-save", "only waiting ones", {"search": waiting, "replaced": old}]),
            json!(["view-save", null, {"search": old}]),
        ]
    );
    let (known, k) = ("key 'known'", "key 'k'");
    assert_eq!(
        entries("a").await,
        [
            json!(["view-remove", "not needed", {"search": known}]),
            json!(["view-save", null, {"search": known, "replaced": k}]),
            json!(["view-save", null, {"search": k}]),
        ]
    );
    let refused = ["n", "one%20more"];
    for name in refused {
        assert!(entries(name).await.is_empty(), "{name}");
    }
}

async fn refusals(dev: &Dev) {
    let long = "x".repeat(61);
    for (view, code) in [
        (json!({"name": "n"}), "empty-query"),
        (json!({"name": "n", "query": "  "}), "empty-query"),
        (json!({"name": " ", "status": "faulted"}), "invalid-json"),
        (json!({"name": long, "status": "faulted"}), "invalid-json"),
        (json!({"name": "a\nb", "status": "faulted"}), "invalid-json"),
        (
            json!({"name": "n", "workflow": "x".repeat(2_000)}),
            "invalid-json",
        ),
        (json!({"name": "n", "colour": "red"}), "invalid-json"),
        (json!({"name": "n", "status": "broken"}), "invalid-query"),
        (json!({"name": "n", "query": "status ="}), "invalid-search"),
        (
            json!({"name": "n", "query": "@colour = red"}),
            "unknown-attribute",
        ),
    ] {
        save(dev, &view).await.refused(400, code);
    }
    for n in 2..VIEWS_MAX {
        save(dev, &json!({"name": format!("v{n}"), "status": "faulted"}))
            .await
            .is(201);
    }
    save(dev, &json!({"name": "one more", "status": "faulted"}))
        .await
        .refused(409, "too-many-views");
    save(dev, &json!({"name": "a", "key": "known"}))
        .await
        .is(201);
    for n in 2..VIEWS_MAX {
        remove(dev, &format!("v{n}")).await.is(200);
    }
}
