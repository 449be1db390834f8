//! `POST /events`: the three content modes of CloudEvents over HTTP.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use serde_json::{Value, json};

use super::{having, started, waiting};
use crate::dev::http::{Answer, JSON};
use crate::dev::process::Dev;

const STRUCTURED: (&str, &str) = (
    "content-type",
    "application/cloudevents+json; charset=utf-8",
);
const BATCHED: (&str, &str) = ("content-type", "application/cloudevents-batch+json");

async fn publish(dev: &Dev, headers: &[(&str, &str)], body: impl Into<reqwest::Body>) -> Answer {
    dev.post("/api/v1/events", headers, body).await
}

fn event(id: &str, order: &str) -> Value {
    json!({"specversion": "1.0", "id": id, "source": "/test", "type": "test.go", "order": order,
        "data": {"by": id}})
}

pub async fn check(dev: &Dev) {
    structured(dev).await;
    batched(dev).await;
    binary(dev).await;
    encoded(dev).await;
    briefly(dev).await;
    refusals(dev).await;
    explained(dev).await;
}

/// The response to an event contains the instances that received it, or the reason if there are none.
async fn explained(dev: &Dev) {
    let mut number = 0;
    let mut reach = async |changes: Value| -> Value {
        number += 1;
        let mut event = event(&format!("e{number}"), "explained");
        for (name, value) in changes.as_object().unwrap() {
            event[name] = value.clone();
        }
        let answer = publish(dev, &[STRUCTURED], event.to_string()).await.is(202);
        answer["accepted"][0].clone()
    };
    let started = reach(json!({"type": "test.begin"})).await;
    assert_eq!(started["started"][0]["workflow"], "starter", "{started:#}");
    let id = started["started"][0]["id"].as_str().unwrap();
    having(dev, id, "completed").await;
    let collected = reach(json!({"type": "test.left"})).await;
    assert_eq!(collected["collectedBy"], json!(["pair"]), "{collected:#}");
    let again = reach(json!({"id": "e2", "type": "test.left"})).await;
    assert_eq!(again["duplicate"], true, "{again:#}");
    for (changes, reason) in [
        (
            json!({"type": "test.none"}),
            "no deployed workflow consumes the type 'test.none'",
        ),
        (
            json!({"source": "/other"}),
            "waiter:1.0.0 consumes the type 'test.go' from '/test', not from '/other'",
        ),
        (
            json!({"order": null}),
            "waiter:1.0.0 correlates 'Go' by 'order', which the event lacks",
        ),
        (
            json!({}),
            "no instance of waiter:1.0.0 waits for 'Go' with this correlation",
        ),
        (
            json!({"swirlinstanceid": "none"}),
            "it names the instance none, which does not wait for it",
        ),
    ] {
        let lost = reach(changes).await;
        assert_eq!(lost["reasons"], json!([reason]), "{lost:#}");
    }
    for words in [
        "event test.none (/test e4): no instance took it: no deployed workflow",
        "started starter",
    ] {
        dev.said(words).await;
    }
}

async fn structured(dev: &Dev) {
    let id = waiting(dev, "structured").await;
    let answer = publish(dev, &[STRUCTURED], event("s1", "structured").to_string()).await;
    let reach = json!({"source": "/test", "id": "s1", "outcome": "received", "duplicate": false, "instances": [id], "started": [],
        "collectedBy": [], "kept": true, "reasons": []});
    assert_eq!(answer.is(202), json!({"accepted": [reach]}));
    let done = having(dev, &id, "completed").await;
    assert_eq!(done["output"]["by"], "s1", "{done:#}");
    // If it is sent again, it is still the same event.
    publish(dev, &[STRUCTURED], event("s1", "structured").to_string())
        .await
        .is(202);
    // An event that nothing waits for yet is kept for later instances.
    publish(dev, &[STRUCTURED], event("s2", "early").to_string())
        .await
        .is(202);
    let later = started(dev, "waiter", json!({"order": "early"})).await;
    let done = having(dev, &later, "completed").await;
    assert_eq!(done["output"]["by"], "s2", "{done:#}");
}

async fn batched(dev: &Dev) {
    let ids = [waiting(dev, "b1").await, waiting(dev, "b2").await];
    let batch = json!([event("b1", "b1"), event("b2", "b2")]).to_string();
    let answer = publish(dev, &[BATCHED], batch).await.is(202);
    assert_eq!(answer["accepted"].as_array().unwrap().len(), 2);
    for (id, by) in ids.iter().zip(["b1", "b2"]) {
        assert_eq!(having(dev, id, "completed").await["output"]["by"], by);
    }
    assert_eq!(
        publish(dev, &[BATCHED], "[]").await.is(202),
        json!({"accepted": []})
    );
    // If one is not valid, none is accepted.
    let id = waiting(dev, "b3").await;
    let mut wrong = event("b4", "b3");
    wrong["id"] = json!("");
    let batch = json!([event("b3", "b3"), wrong]).to_string();
    let refused = publish(dev, &[BATCHED], batch)
        .await
        .refused(400, "invalid-event");
    assert_eq!(refused["index"], 1, "{refused:#}");
    // Time has to pass: none of them takes effect meanwhile.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    having(dev, &id, "running").await;
    publish(dev, &[BATCHED], event("b5", "b5").to_string())
        .await
        .refused(400, "invalid-event");
    let many: Vec<Value> = (0..101).map(|n| event(&format!("m{n}"), "many")).collect();
    publish(dev, &[BATCHED], json!(many).to_string())
        .await
        .refused(413, "too-large");
}

async fn binary(dev: &Dev) {
    let id = waiting(dev, "Zürich \"1\"").await;
    let headers = [
        ("ce-specversion", "1.0"),
        ("ce-id", "bin"),
        ("ce-source", "/test"),
        ("ce-type", "test.go"),
        ("ce-order", "Z%C3%BCrich%20%221%22"),
        JSON,
    ];
    publish(dev, &headers, r#"{"by": "bin"}"#).await.is(202);
    assert_eq!(having(dev, &id, "completed").await["output"]["by"], "bin");
    publish(dev, &headers, "{")
        .await
        .refused(400, "invalid-event");
    publish(dev, &headers[1..], "{}")
        .await
        .refused(400, "invalid-event");
}

/// Bodies are read as their headers describe them.
async fn encoded(dev: &Dev) {
    let gzip = |text: &str| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let zipped = ("content-encoding", "X-Gzip");
    for (id, headers) in [("z1", vec![STRUCTURED, zipped]), ("z2", vec![STRUCTURED])] {
        let waits = waiting(dev, id).await;
        let text = event(id, id).to_string();
        let body = match headers.len() {
            2 => {
                let (one, other) = text.split_at(10);
                [gzip(one), gzip(other)].concat()
            }
            _ => [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        };
        publish(dev, &headers, body).await.is(202);
        assert_eq!(having(dev, &waits, "completed").await["output"]["by"], id);
    }
    let binary = |kind: Option<&'static str>| {
        let required = [
            ("ce-specversion", "1.0"),
            ("ce-id", "z3"),
            ("ce-source", "/test"),
            ("ce-type", "test.none"),
        ];
        let kind = kind.map(|kind| ("content-type", kind));
        required.into_iter().chain(kind).collect::<Vec<_>>()
    };
    // Nobody says that this is JSON.
    publish(dev, &binary(None), "hello there").await.is(202);
    let latin = binary(Some("text/plain; charset=latin1"));
    publish(dev, &latin, vec![0xe9]).await.is(202);
    for (headers, code) in [
        (binary(Some("text/plain")), "invalid-text"),
        (binary(Some("text/plain; charset=klingon")), "invalid-text"),
        (vec![STRUCTURED], "invalid-text"),
        (
            vec![STRUCTURED, ("content-encoding", "zstd")],
            "unknown-coding",
        ),
        (vec![STRUCTURED, zipped], "unknown-coding"),
    ] {
        publish(dev, &headers, vec![0xff]).await.refused(415, code);
    }
    let bomb = gzip(&" ".repeat((1 << 20) + 1));
    publish(dev, &[STRUCTURED, zipped], bomb)
        .await
        .refused(413, "too-large");
}

/// Senders can ask for a response without a body. Brokers of Knative take a body for an event.
async fn briefly(dev: &Dev) {
    for (number, header) in [
        ("prefer", "return=minimal"),
        ("prefer", "reply"),
        ("kn-namespace", "default"),
    ]
    .into_iter()
    .enumerate()
    {
        let event = event(&format!("brief{number}"), "brief").to_string();
        let answer = publish(dev, &[STRUCTURED, header], event).await;
        assert_eq!(answer.status, 204, "{answer:#?}");
        assert_eq!(answer.headers["preference-applied"], "return=minimal");
        assert_eq!(answer.body, Value::Null, "{answer:#?}");
    }
}

async fn refusals(dev: &Dev) {
    let origin = [("webhook-request-origin", "example.org")];
    dev.send(Method::OPTIONS, "/api/v1/events", &origin, "")
        .await
        .refused(403, "webhook-refused");
    publish(dev, &[JSON], event("x", "x").to_string())
        .await
        .refused(415, "no-cloudevent");
    let nothing = publish(dev, &[], "").await;
    assert!(
        nothing
            .text
            .contains("the Content-Type is missing, and there are no ce- headers"),
        "{}",
        nothing.text
    );
    nothing.refused(415, "no-cloudevent");
    publish(dev, &[STRUCTURED], "{")
        .await
        .refused(400, "invalid-json");
    for (name, value) in [
        ("specversion", json!("0.3")),
        ("specversion", Value::Null),
        ("type", json!(7)),
        ("source", json!("")),
        ("time", json!("yesterday")),
        ("datacontenttype", json!("json")),
        ("data_base64", json!("AAAA")),
        ("order", json!(1.5)),
        ("order", json!({"a": 1})),
        ("an_order", json!("x")),
    ] {
        let mut event = event("wrong", "wrong");
        event[name] = value;
        let refused = publish(dev, &[STRUCTURED], event.to_string()).await;
        let refused = refused.refused(400, "invalid-event");
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains(name), "{name}: {detail}");
    }
    publish(dev, &[STRUCTURED], "[]")
        .await
        .refused(400, "invalid-event");
    let large = json!({"text": "x".repeat(1 << 20)});
    let mut event = event("large", "large");
    event["data"] = large;
    publish(dev, &[STRUCTURED], event.to_string())
        .await
        .refused(413, "too-large");
    known(dev).await;
}

/// Refused events are listed and counted under the type, source and id that they state, however they are sent.
async fn known(dev: &Dev) {
    let head = [
        ("ce-specversion", "1.0"),
        ("ce-id", "b1"),
        ("ce-source", "/bad"),
        ("ce-type", "t.bad"),
    ];
    for (name, value, status, code) in [
        ("content-type", "application/json", 400, "invalid-event"),
        ("content-encoding", "klingon", 415, "unknown-coding"),
    ] {
        let headers = [&head[..], &[(name, value)]].concat();
        let answer = publish(dev, &headers, "{").await;
        assert_eq!(answer.status, status, "{code}: {}", answer.text);
    }
    let mut wrong = event("b2", "x");
    (wrong["type"], wrong["time"]) = (json!("t.bad"), json!("never"));
    publish(dev, &[STRUCTURED], wrong.to_string())
        .await
        .refused(400, "invalid-event");
    let batch = json!([event("fine", "x"), wrong]);
    publish(dev, &[BATCHED], batch.to_string())
        .await
        .refused(400, "invalid-event");
    publish(dev, &[STRUCTURED], "{")
        .await
        .refused(400, "invalid-json");
    let path = "/api/v1/events?outcome=refused";
    let found = dev.get(&format!("{path}&type=t.bad")).await.is(200);
    let events = found["events"].as_array().unwrap().iter();
    let events: Vec<_> = events.map(|one| (&one["id"], &one["source"])).collect();
    let (json, headers) = (
        (&json!("b2"), &json!("/test")),
        (&json!("b1"), &json!("/bad")),
    );
    assert_eq!(events, [json, json, headers, headers], "{found:#}");
    let metrics = dev.get("/metrics").await.text;
    let count = |kind: &str| {
        let labels = [
            format!("cloudevents_event_type=\"{kind}\""),
            "swirl_event_outcome=\"refused\"".to_owned(),
        ];
        let line = metrics.lines().find(|line| {
            line.starts_with("swirl_events_total") && labels.iter().all(|one| line.contains(one))
        });
        line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
    };
    assert_eq!(count("t.bad"), Some(4), "{metrics}");
    assert!(count("(unknown)") >= Some(1), "{metrics}");
    let (code, text, told) = dev.run(&["events", "recent", "--outcome", "refused"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(
        text.contains("/bad b1 (t.bad, via http): refused"),
        "{text}"
    );
    assert!(
        text.contains("an event that could not be read (via http): refused"),
        "{text}"
    );
}
