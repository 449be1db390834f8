//! How many instances of a definition are in each of its states.

use serde_json::{Value, json};

use super::{having, started, waiting};
use crate::dev::http::JSON;
use crate::dev::process::Dev;

const WAITER: &str = "/api/v1/definitions/waiter/1.0.0/states";
const FAULTY: &str = "/api/v1/definitions/faulty/1.0.0/states";

pub async fn check(dev: &Dev) {
    running(dev).await;
    failed(dev).await;
    let drawn = dev.get(&format!("{WAITER}?diagram=true")).await.is(200);
    let drawn = drawn["diagram"].as_str().unwrap();
    assert!(
        drawn.starts_with("<svg") && drawn.contains(" here</text>"),
        "{drawn}"
    );
    dev.get("/api/v1/definitions/none/1/states")
        .await
        .refused(404, "unknown-workflow");
    dev.get(&format!("{WAITER}?none=1"))
        .await
        .refused(400, "invalid-query");
}

/// Running, waiting, suspended and faulted instances in a state.
async fn figures(dev: &Dev, path: &str, state: &str) -> [i64; 4] {
    let found = dev.get(path).await.is(200);
    let states = found["states"].as_array().unwrap().iter();
    let mut rows = states.filter(|row| row["state"] == state);
    let row: &Value = rows.next().unwrap();
    ["running", "waiting", "suspended", "faulted"].map(|name| row[name].as_i64().unwrap())
}

async fn running(dev: &Dev) {
    let before = figures(dev, WAITER, "Wait").await;
    let id = waiting(dev, "occupies").await;
    let more = |figures: [i64; 4]| [0, 1, 2, 3].map(|at| figures[at] - before[at]);
    assert_eq!(more(figures(dev, WAITER, "Wait").await), [1, 1, 0, 0]);
    let path = format!("/api/v1/instances/{id}");
    dev.post(&format!("{path}/suspend"), &[JSON], "")
        .await
        .is(202);
    assert_eq!(more(figures(dev, WAITER, "Wait").await), [1, 0, 1, 0]);
    let shown = dev.get("/console/definitions/waiter/1.0.0").await;
    assert!(shown.text.contains("Instances by state"), "{}", shown.text);
    assert!(shown.text.contains(" here</text>"), "{}", shown.text);
    dev.post(&format!("{path}/cancel"), &[JSON], "")
        .await
        .is(202);
    having(dev, &id, "cancelled").await;
    assert_eq!(more(figures(dev, WAITER, "Wait").await), [0; 4]);
    assert_eq!(figures(dev, WAITER, "Begin").await, [0; 4]);
}

async fn failed(dev: &Dev) {
    let before = figures(dev, FAULTY, "Work").await;
    let id = started(dev, "faulty", json!({"key": "occupies", "failures": 1000})).await;
    having(dev, &id, "faulted").await;
    let after = figures(dev, FAULTY, "Work").await;
    assert_eq!(after[3] - before[3], 1, "{after:?}");
    let shown = dev.get("/console/definitions/faulty/1.0.0").await;
    for words in ["those that failed in Work", " failed</text>", "ailing"] {
        assert!(shown.text.contains(words), "{words}: {}", shown.text);
    }
}
