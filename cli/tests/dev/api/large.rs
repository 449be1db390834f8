//! Large answers are split into parts.

use serde_json::json;

use super::{having, started};
use crate::dev::http::JSON;
use crate::dev::process::Dev;

/// Iterations that all wait.
pub const WIDE: &str = r#"
id: wide
version: "1.0.0"
specVersion: "0.8"
functions: [{name: nothing, type: expression, operation: "{}"}]
states:
  - name: each
    type: foreach
    inputCollection: "${ [range(1100)] }"
    iterationParam: n
    batchSize: 1100
    actions: [{functionRef: nothing, sleep: {before: P1D}}]
    end: true
"#;

/// A loop in which each iteration adds some history entries.
pub const LONG: &str = r#"
id: long
version: "1.0.0"
specVersion: "0.8"
states:
  - name: next
    type: inject
    data: {}
    stateDataFilter: {output: "${ {n: ((.n // 0) + 1)} }"}
    transition: again
  - name: again
    type: switch
    dataConditions: [{condition: "${ .n < 900 }", transition: next}]
    defaultCondition: {end: true}
"#;

pub async fn check(dev: &Dev) {
    let wide = started(dev, "wide", json!({})).await;
    let path = format!("/api/v1/instances/{wide}");
    // The state itself and its iterations.
    let all = |one: &serde_json::Value| one["scopesLeftOut"] == 101;
    let found = dev.until(&path, "all iterations", all).await;
    assert_eq!(found["scopes"].as_array().unwrap().len(), 1_000);
    dev.post(&format!("{path}/cancel"), &[JSON], "")
        .await
        .is(202);
    having(dev, &wide, "cancelled").await;
    // The iterations are removed one after another.
    let none = |one: &serde_json::Value| one["scopes"] == json!([]);
    dev.until(&path, "an empty list of scopes", none).await;

    let long = started(dev, "long", json!({})).await;
    having(dev, &long, "completed").await;
    let path = format!("/api/v1/instances/{long}/history");
    let first = dev.get(&path).await.is(200);
    assert_eq!(
        (&first["more"], &first["before"]),
        (&json!(true), &json!(0))
    );
    assert_eq!(first["entries"].as_array().unwrap().len(), 2_000);
    let total = first["total"].as_u64().unwrap();
    let rest = dev
        .get(&format!("{path}?after=2000&limit=2000"))
        .await
        .is(200);
    assert_eq!(rest["before"], 2_000);
    let rest_len = rest["entries"].as_array().unwrap().len() as u64;
    assert!(rest_len.min(1) == 1 && (rest["more"] == true || 2_000 + rest_len == total));
    for query in ["limit=2001", "last=2001"] {
        let answer = dev.get(&format!("{path}?{query}")).await;
        answer.refused(400, "invalid-query");
    }
    let whole = dev.swirl(&["history", &long]);
    assert_eq!(whole["entries"].as_array().unwrap().len() as u64, total);
    assert_eq!(
        (&whole["more"], &whole["before"]),
        (&json!(false), &json!(0))
    );
    let last = dev.get(&format!("{path}?last=1")).await.is(200);
    assert_eq!(whole["entries"][total as usize - 1], last["entries"][0]);
}
