//! `/definitions`

use serde_json::{Value, json};

use super::{greeting, having, waiting};
use crate::dev::http::JSON;
use crate::dev::process::Dev;

const PATH: &str = "/api/v1/definitions";
const YAML: (&str, &str) = ("content-type", "application/yaml");
const WHOLE: (&str, &str) = ("content-type", "application/vnd.swirl.deployment+json");

pub async fn check(dev: &Dev) {
    let answer = dev.post(PATH, &[YAML], greeting("1.0.0")).await;
    assert_eq!(
        answer.headers["location"],
        "/api/v1/definitions/greeting/1.0.0"
    );
    let new = answer.is(201);
    assert_eq!(
        new,
        json!({"id": "greeting", "version": "1.0.0", "outcome": "new"})
    );
    let same = dev.post(PATH, &[YAML], greeting("1.0.0")).await.is(200);
    assert_eq!(same["outcome"], "unchanged");
    let other = greeting("1.0.0").replace("Greet", "Other");
    let conflict = dev
        .post(PATH, &[YAML], other)
        .await
        .refused(409, "definition-conflict");
    assert_eq!(
        (&conflict["id"], &conflict["version"]),
        (&json!("greeting"), &json!("1.0.0"))
    );
    dev.post(PATH, &[YAML], greeting("1.10.0")).await.is(201);
    dev.post(PATH, &[YAML], greeting("1.9.0")).await.is(201);

    let wrong = greeting("2.0.0").replace("end: true", "transition: Nowhere");
    let wrong = dev
        .post(&format!("{PATH}?name=mine.yaml"), &[YAML], wrong)
        .await;
    let wrong = wrong.refused(422, "definition-invalid");
    let found = &wrong["diagnostics"][0];
    assert_eq!(found["code"], "unknown-state", "{wrong:#}");
    assert!(
        found["line"].is_number() || found["range"].is_object(),
        "a place: {wrong:#}"
    );

    activated(dev).await;
    tried(dev).await;
    unmarked(dev).await;
    a_secret_in_the_data(dev).await;
    with_what_it_refers_to(dev).await;
    wrong_bodies(dev).await;
    reading(dev).await;
}

/// An older version becomes current, and the newer one again.
async fn activated(dev: &Dev) {
    let current = async || dev.get(&format!("{PATH}/greeting")).await.is(200)["version"].clone();
    assert_eq!(current().await, "1.10.0");
    let path = |version: &str| format!("{PATH}/greeting/{version}/activate");
    let done = dev.post(&path("1.9.0"), &[], "").await.is(200);
    assert_eq!(done["changed"], true);
    assert_eq!(current().await, "1.9.0");
    let (code, text, told) = dev.run(&["definition", "activate", "greeting:1.10.0"]);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(text, "greeting:1.10.0 is current now\n");
    assert_eq!(current().await, "1.10.0");
    let again = dev.post(&path("1.10.0"), &[], "").await.is(200);
    assert_eq!(again["changed"], false);
    dev.post(&path("9"), &[], "")
        .await
        .refused(404, "unknown-workflow");
}

/// The page of a definition says what it sends as text though it looks like an expression.
async fn unmarked(dev: &Dev) {
    let document = "id: unmarked
version: 1.0.0
specVersion: '0.8'
functions: [{name: log, type: custom, operation: sysout}]
states:
- name: Log
  type: operation
  actions: [{functionRef: {refName: log, arguments: {message: .name, other: 'Hello {{ .name }}'}}}]
  end: true
";
    dev.post(PATH, &[YAML], document).await.is(201);
    let path = format!("{PATH}/unmarked/1.0.0");
    let plain = dev.get(&path).await.is(200);
    assert!(plain.get("diagnostics").is_none(), "{plain:#}");
    let whole = dev.get(&format!("{path}?diagnostics=true")).await.is(200);
    let codes = whole["diagnostics"].as_array().unwrap().iter();
    let codes: Vec<_> = codes.map(|one| one["code"].clone()).collect();
    assert_eq!(codes, ["expression-not-marked"; 2], "{whole:#}");
    let page = dev.get("/console/definitions/unmarked/1.0.0").await;
    for words in [
        "2 texts look like expressions, and are sent as they are written.",
        "looks like an expression, but is sent as this string",
        "line 8",
    ] {
        assert!(page.text.contains(words), "{words}: {}", page.text);
    }
    let page = dev.get("/console/definitions/greeting/1.0.0").await;
    assert!(
        !page.text.contains("Warnings about the document"),
        "{}",
        page.text
    );
}

/// With `dryRun`, a document is checked and nothing else happens.
async fn tried(dev: &Dev) {
    let path = format!("{PATH}?dryRun=true");
    let check = async |document: String| dev.post(&path, &[YAML], document).await;
    let new = greeting("7.0.0");
    assert_eq!(
        check(new.clone()).await.is(200),
        json!({"id": "greeting", "version": "7.0.0", "outcome": "new", "dryRun": true, "diagnostics": []})
    );
    dev.get(&format!("{PATH}/greeting/7.0.0"))
        .await
        .refused(404, "unknown-workflow");
    let same = check(greeting("1.0.0")).await.is(200);
    assert_eq!(same["outcome"], "unchanged");
    let other = greeting("1.0.0").replace("Greet", "Other");
    check(other.clone())
        .await
        .refused(409, "definition-conflict");
    // The picture of the text, also of one that can't be deployed under its version.
    let drawn = format!("{path}&diagram=true");
    let fine = dev.post(&drawn, &[YAML], new.clone()).await.is(200);
    let refused = dev.post(&drawn, &[YAML], other).await;
    let refused = refused.refused(409, "definition-conflict");
    for (answer, state) in [(&fine, "Greet"), (&refused, "Other")] {
        let picture = answer["diagram"].as_str().unwrap();
        assert!(picture.contains(state), "{picture}");
    }
    let wrong = new.replace("end: true", "transition: Nowhere");
    let wrong = check(wrong).await.refused(422, "definition-invalid");
    assert_eq!(wrong["diagnostics"][0]["code"], "unknown-state");
    // Only the code of the function types finds this.
    let function = new.replace(
        "states:",
        "functions: [{name: f, type: custom, operation: 'rest:FETCH:http://localhost/'}]\nstates:",
    );
    let function = check(function).await.refused(422, "definition-invalid");
    assert_eq!(
        function["diagnostics"][0]["code"], "function-invalid",
        "{function:#}"
    );
    let loose = new.replace("states:", "keepActive: 'false'\nstates:");
    let loose = check(loose).await.is(200);
    assert_eq!(loose["diagnostics"][0]["severity"], "warning", "{loose:#}");
}

/// Whoever deploys a definition that stores a secret is warned.
async fn a_secret_in_the_data(dev: &Dev) {
    let document = "id: leaks\nversion: 1.0.0\nspecVersion: '0.8'\nsecrets: [KEY]\n\
                    states: [{name: A, type: inject, data: {a: 1}, end: true, stateDataFilter: {output: '${ {k: $SECRETS.KEY} }'}}]\n";
    let deployed = dev.post(PATH, &[YAML], document).await.is(201);
    assert_eq!(
        deployed["diagnostics"][0]["code"], "secret-in-data",
        "{deployed:#}"
    );
}

async fn with_what_it_refers_to(dev: &Dev) {
    let document = "id: schemed\nversion: 1.0.0\nspecVersion: '0.8'\ndataInputSchema: in.json\n\
                    states: [{name: A, type: inject, data: {a: 1}, end: true}]\n";
    let schema = json!({"type": "object", "required": ["order"]}).to_string();
    let whole =
        json!({"name": "schemed.yaml", "document": document, "resources": {"in.json": schema}});
    dev.post(PATH, &[WHOLE], whole.to_string()).await.is(201);
    let shown = dev.get(&format!("{PATH}/schemed")).await.is(200);
    assert_eq!(shown["resources"], json!(["in.json"]), "{shown:#}");
    let path = "/api/v1/workflows/schemed/instances?wait=PT20S";
    let refused = dev.post(path, &[JSON], "{}").await;
    assert_ne!(refused.body["status"], "completed", "{refused:#?}");
    let done = dev.post(path, &[JSON], r#"{"order": 1}"#).await.is(200);
    assert_eq!(done["status"], "completed", "{done:#}");
}

async fn wrong_bodies(dev: &Dev) {
    let text = dev.post(PATH, &[YAML], vec![0xff, 0xfe, 0x00]).await;
    text.refused(415, "invalid-text");
    for body in [
        "{",
        "[]",
        r#"{"document": 1}"#,
        r#"{"document": "", "more": 1}"#,
    ] {
        dev.post(PATH, &[WHOLE], body)
            .await
            .refused(400, "invalid-json");
    }
    let long = format!("# {}\n{}", "x".repeat(1 << 20), greeting("3.0.0"));
    dev.post(PATH, &[YAML], long.clone())
        .await
        .refused(413, "too-large");
    let long = json!({"document": long}).to_string();
    dev.post(PATH, &[WHOLE], long)
        .await
        .refused(413, "too-large");
    for body in ["", "- a", "id: [", "\0"] {
        dev.post(PATH, &[YAML], body)
            .await
            .refused(422, "definition-invalid");
    }
    dev.post(&format!("{PATH}?nam=x"), &[YAML], greeting("1.0.0"))
        .await
        .refused(400, "invalid-query");
    let binary = reqwest::header::HeaderValue::from_bytes(b"text/\xe4").unwrap();
    let sent = reqwest::Client::builder()
        .tls_backend_preconfigured(swirl_functions::http::tls().unwrap())
        .build()
        .unwrap()
        .post(format!("{}{PATH}", dev.url))
        .header("content-type", binary)
        .body("x");
    assert_eq!(sent.send().await.unwrap().status(), 400);
}

async fn pages(dev: &Dev) {
    let row = |row: &Value| format!("{} {}", row["id"], row["version"]);
    let whole = dev.get(&format!("{PATH}?limit=1000")).await.is(200);
    assert_eq!(
        (&whole["complete"], &whole["next"]),
        (&json!(true), &json!(null))
    );
    let whole: Vec<String> = whole["definitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(row)
        .collect();
    let mut query = reqwest::Url::parse("http://here/?limit=3").unwrap();
    let mut all = Vec::new();
    loop {
        let page = dev
            .get(&format!("{PATH}?{}", query.query().unwrap()))
            .await
            .is(200);
        let rows = page["definitions"].as_array().unwrap();
        assert!(rows.len() <= 3, "{page:#}");
        all.extend(rows.iter().map(row));
        assert_eq!(page["complete"], page["next"].is_null());
        let Some(next) = page["next"].as_str() else {
            break;
        };
        query
            .query_pairs_mut()
            .clear()
            .extend_pairs([("limit", "3"), ("after", next)]);
    }
    assert_eq!(all, whole);
    for wrong in ["limit=0", "limit=1001"] {
        let answer = dev.get(&format!("{PATH}?{wrong}")).await;
        answer.refused(400, "invalid-query");
    }
    let answer = dev.get(&format!("{PATH}?after=greeting")).await;
    answer.refused(400, "unknown-place");
    let listed = dev.swirl(&["definition", "list"]);
    assert_eq!(listed["definitions"].as_array().unwrap().len(), whole.len());
}

async fn reading(dev: &Dev) {
    pages(dev).await;
    let list = dev.get(PATH).await.is(200);
    let all = list["definitions"].as_array().unwrap();
    let named = |id: &str| all.iter().filter(|row| row["id"] == id).count();
    assert_eq!(
        (named("greeting"), named("waiter"), named("faulty")),
        (3, 1, 1),
        "{list:#}"
    );
    assert!(
        all.iter()
            .all(|row| row["digest"].is_string() && row["deployedAt"].is_string())
    );

    let latest = dev.get(&format!("{PATH}/greeting")).await.is(200);
    assert_eq!(
        latest["version"], "1.10.0",
        "as versions are ordered, not texts"
    );
    assert_eq!(latest["document"], greeting("1.10.0"));
    let first = dev.get(&format!("{PATH}/greeting/1.0.0")).await.is(200);
    assert_eq!(first["document"], greeting("1.0.0"));
    for path in ["none", "greeting/9.9.9", "none/1.0.0"] {
        let answer = dev.get(&format!("{PATH}/{path}")).await;
        answer.refused(404, "unknown-workflow");
    }
}

/// A new version applies only to instances that are started later.
pub async fn running_instances_keep_theirs(dev: &Dev) {
    let old = waiting(dev, "kept").await;
    let next = super::WAITER
        .replace("1.0.0", "2.0.0")
        .replace("test.go", "test.other");
    dev.post(PATH, &[YAML], next).await.is(201);
    let event = json!({"specversion": "1.0", "id": "kept", "source": "/test", "type": "test.go",
        "order": "kept", "data": {"kept": true}});
    let headers = [("content-type", "application/cloudevents+json")];
    dev.post("/api/v1/events", &headers, event.to_string())
        .await
        .is(202);
    let done: Value = having(dev, &old, "completed").await;
    assert_eq!(
        (&done["version"], &done["output"]["kept"]),
        (&json!("1.0.0"), &json!(true))
    );
}
