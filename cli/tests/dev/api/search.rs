//! Queries through the API, on the command line and in the console.

use serde_json::{Value, json};

use super::{having, started};
use crate::dev::process::Dev;

/// Runs completely at its start.
pub const FOUND: &str = r#"
id: found
version: "1.0.0"
specVersion: "0.8"
metadata:
  swirl:
    search:
      orderId: {value: "${ .order.id }", type: string}
      total: {value: .order.total, type: number}
      paid: {value: "${ .paid }", type: boolean}
      due: {value: "${ .due }", type: time}
states:
  - {name: Only, type: inject, data: {paid: true}, end: true}
"#;

/// Runs step by step. Its totals are texts.
pub const FOUND_LATE: &str = r#"
id: found-late
version: "1.0.0"
specVersion: "0.8"
metadata:
  swirl:
    search:
      orderId: {value: "${ .order.id }", type: string}
      total: {value: "${ .order.total }", type: string}
      step: {value: "${ .step }", type: number}
states:
  - {name: First, type: inject, data: {step: 1}, transition: Rest}
  - {name: Rest, type: sleep, duration: PT0.05S, transition: Last}
  - {name: Last, type: inject, data: {step: "two"}, end: true}
"#;

pub async fn attributes(dev: &Dev) {
    let order = |id: &str, total: u32| json!({"order": {"id": id, "total": total}, "due": "2030-01-01T00:00:00Z"});
    let first = started(dev, "found", order("o-1", 12)).await;
    let second = started(dev, "found", order("o-2", 1200)).await;
    let late = started(dev, "found-late", order("o-2", 9)).await;
    for id in [&first, &second, &late] {
        having(dev, id, "completed").await;
    }
    for (query, wanted) in [
        ("@orderId = \"o-1\"", vec![&first]),
        ("@orderId = o-2", vec![&late, &second]),
        ("@orderId = o-2 and workflow = found", vec![&second]),
        ("@orderId ^= o-", vec![&late, &second, &first]),
        ("@orderId ^= o- and @orderId != o-2", vec![&first]),
        ("@orderId = none", vec![]),
        // A number in one definition, a text in the other: each is compared by its own type.
        ("@total > 1000", vec![&late, &second]),
        ("@total >= 12 and workflow = found", vec![&second, &first]),
        (
            "@paid = true and @due > 2029-12-31 and @due < 2030-01-02",
            vec![&second, &first],
        ),
        ("@paid = false", vec![]),
        ("not @paid = true and @orderId ^= o-", vec![&late]),
    ] {
        let found = dev.get(&path("instances", query, "")).await.is(200);
        assert_eq!(found["complete"], true, "{query}");
        let mut found = ids(&found);
        let mut wanted: Vec<String> = wanted.into_iter().cloned().collect();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "{query}");
        let counts = dev.get(&path("counts", query, "")).await.is(200);
        assert_eq!(counts["counts"]["completed"], wanted.len(), "{query}");
    }
    let both = path("instances", "@orderId = o-2", "&limit=1");
    let page = dev.get(&both).await.is(200);
    assert_eq!(ids(&page), [&late[..]], "the newest first");
    let rest = format!("&limit=1&after={}", encoded(page["next"].as_str().unwrap()));
    let page = dev.get(&path("instances", "@orderId = o-2", &rest)).await;
    let page = page.is(200);
    assert_eq!(ids(&page), [&second[..]]);
    let shown =
        json!({"orderId": "o-2", "total": 1200, "paid": true, "due": "2030-01-01T00:00:00.000Z"});
    assert_eq!(page["instances"][0]["attributes"], shown);
    let one = dev
        .get(&format!("/api/v1/instances/{second}"))
        .await
        .is(200);
    assert_eq!(one["attributes"], shown);
    for (query, code) in [
        ("@paid = 3", "invalid-search"),
        ("@due > soon", "invalid-search"),
        ("@paid ^= t", "invalid-search"),
        ("@order = 1", "unknown-attribute"),
    ] {
        dev.get(&path("instances", query, ""))
            .await
            .refused(400, code);
    }
    // A value that no longer has the declared type is left out, and the history says so.
    let view = dev.get(&format!("/api/v1/instances/{late}")).await.is(200);
    assert_eq!(view["attributes"], json!({"orderId": "o-2", "total": "9"}));
    let history = dev.get(&format!("/api/v1/instances/{late}/history")).await;
    let history = history.is(200);
    let mut entries = history["entries"].as_array().unwrap().iter();
    let told = entries.find(|entry| entry["event"] == "attribute_left_out");
    assert_eq!(told.unwrap()["attribute"], "step");

    let (code, listed, _) = dev.run(&["list", "--query", "@orderId = o-1"]);
    assert_eq!(code, Some(0));
    assert!(
        listed.contains("orderId = o-1") && listed.contains(&first),
        "{listed}"
    );
    let (_, got, _) = dev.run(&["get", &first]);
    assert!(got.contains("found by     due = 2030"), "{got}");
}

pub async fn check(dev: &Dev) {
    let first = started(dev, "faulty", json!({"key": "search-1", "failures": 9})).await;
    having(dev, &first, "faulted").await;
    let second = started(dev, "faulty", json!({"key": "search-2", "failures": 9})).await;
    having(dev, &second, "faulted").await;

    let both = "workflow = faulty and status = faulted and started > -1h and state = Work";
    let found = dev.get(&path("instances", both, "")).await.is(200);
    assert!(ids(&found).contains(&first) && ids(&found).contains(&second));
    assert_eq!(
        (&found["complete"], &found["next"]),
        (&json!(true), &Value::Null)
    );
    let newest = dev.get(&path("instances", both, "&limit=1")).await.is(200);
    assert_eq!(ids(&newest), [&second[..]]);
    assert_eq!(newest["complete"], false);
    let next = newest["next"].as_str().unwrap();
    let rest = format!("&limit=1&after={}", encoded(next));
    let older = dev.get(&path("instances", both, &rest)).await.is(200);
    assert_eq!(ids(&older), [&first[..]]);
    let one = dev
        .get(&path("instances", &format!("id = \"{first}\""), ""))
        .await
        .is(200);
    assert_eq!(ids(&one), [&first[..]]);
    let none = dev
        .get(&path("instances", &format!("{both} and ended < -1h"), ""))
        .await;
    assert_eq!(ids(&none.is(200)), Vec::<String>::new());

    let wrong = dev
        .get(&path("instances", "status = faulted and speed > 1", ""))
        .await;
    let wrong = wrong.refused(400, "invalid-search");
    assert_eq!(
        (&wrong["position"], &wrong["length"]),
        (&json!(21), &json!(5))
    );
    let unknown = dev.get(&path("instances", "@nobody = 1", "")).await;
    unknown.refused(400, "unknown-attribute");
    let lost = dev.get("/api/v1/instances?after=gone").await;
    lost.refused(400, "unknown-place");
    let lost = dev.get("/api/v1/instances?after=~gone").await;
    lost.refused(400, "unknown-place");

    let ambiguous = "/api/v1/counts?workflow=order&query=status%20=%20running";
    dev.get(ambiguous).await.is(400);
    let counts = dev.get("/api/v1/counts").await.is(200);
    let mut workflows = counts["workflows"].as_array().unwrap().iter();
    let faulty = workflows.find(|one| one["id"] == "faulty").unwrap();
    assert!(faulty["counts"]["faulted"].as_u64().unwrap() >= 2);
    let counted = format!("id in (\"{first}\", \"{second}\")");
    let counts = dev.get(&path("counts", &counted, "")).await.is(200);
    assert_eq!(counts["counts"]["faulted"], 2);
    assert_eq!(counts["complete"], true);

    let listed = dev.swirl(&["list", "--query", both, "--limit", "1"]);
    assert_eq!(ids(&listed), [&second[..]]);
    let (code, rows, said) = dev.run(&["list", "--query", both, "--limit", "1"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        rows.lines().count() == 2 && !rows.contains("--after"),
        "{rows}"
    );
    let next = listed["next"].as_str().unwrap();
    assert_eq!(
        said,
        format!("there may be more: --after '{next}'\n"),
        "{rows}"
    );
}

fn ids(body: &Value) -> Vec<String> {
    let rows = body["instances"].as_array().unwrap().iter();
    rows.map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

fn path(what: &str, query: &str, rest: &str) -> String {
    format!("/api/v1/{what}?query={}{rest}", encoded(query))
}

fn encoded(text: &str) -> String {
    let bytes = text.bytes().map(|byte| format!("%{byte:02X}"));
    bytes.collect()
}
