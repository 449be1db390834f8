//! Queries over the API, on the command line and in the console.

use serde_json::{Value, json};

use super::{having, started};
use crate::process::Dev;

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
