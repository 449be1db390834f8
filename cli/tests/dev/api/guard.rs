//! Checks for all routes.

use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::dev::http::Seen;
use crate::dev::process::Dev;

pub async fn check(dev: &Dev) {
    let health = dev.get("/healthz").await.is(200);
    assert_eq!(health["status"], "ok");
    let ready = dev.get("/readyz").await.is(200);
    assert_eq!(ready["status"], "ready");
    let metrics = dev.get("/metrics").await;
    assert_eq!(metrics.status, 200);
    assert!(
        metrics.headers["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/plain")
    );
    assert!(metrics.text.contains("# TYPE"), "{metrics:#?}");
    let document = dev.get("/api/v1/openapi.json").await.is(200);
    assert!(
        document["openapi"].as_str().unwrap().starts_with("3."),
        "{document}"
    );

    let letters = dev.get("/api/v1/dead-letters").await.is(200);
    assert_eq!(letters["deadLetters"], serde_json::json!([]));
    let letter = "/api/v1/dead-letters/1";
    dev.get(letter).await.refused(404, "unknown-dead-letter");
    dev.send(Method::DELETE, letter, &[], "")
        .await
        .refused(404, "unknown-dead-letter");
    dev.post("/api/v1/dead-letters/1/retry", &[], "")
        .await
        .refused(404, "unknown-dead-letter");

    dev.get("/api/v1/nothing")
        .await
        .refused(404, "unknown-route");
    let deleted = dev
        .send(Method::DELETE, "/api/v1/definitions", &[], "")
        .await;
    deleted.refused(405, "unknown-method");

    dev.get("/api/v1/namespaces/default/instances")
        .await
        .is(200);
    dev.get("/api/v1/namespaces/other/instances")
        .await
        .refused(404, "unknown-namespace");

    let page = [("origin", "https://example.org")];
    for path in [
        "/api/v1/instances",
        "/api/v1/counts",
        "/api/v1/definitions",
        "/api/v1/dead-letters",
        "/api/v1/openapi.json",
        "/healthz",
        "/readyz",
        "/metrics",
    ] {
        dev.send(Method::GET, path, &page, "")
            .await
            .refused(403, "foreign-origin");
    }
    let own = [("origin", dev.url.as_str())];
    dev.send(Method::GET, "/api/v1/instances", &own, "")
        .await
        .is(200);

    // A page whose host name resolves to this machine.
    for (host, status) in [
        ("example.org:8080", 403),
        ("named.test", 200),
        ("localhost:1", 200),
        ("[::1]", 200),
    ] {
        let answer = dev
            .send(Method::GET, "/api/v1/instances", &[("host", host)], "")
            .await;
        match status {
            403 => answer.refused(403, "foreign-origin"),
            status => answer.is(status),
        };
    }

    an_incomplete_body(dev).await;
}

/// No HTTP client does this on purpose.
async fn an_incomplete_body(dev: &Dev) {
    let address = dev.url.trim_start_matches("http://");
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let path = "/api/v1/workflows/waiter/instances";
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 100\r\n\r\n{{\"or");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains(r#""code":"body-broken""#), "{answer}");
    dev.http.note(Seen {
        method: "post".to_owned(),
        path: path.to_owned(),
        status: 400,
        code: Some("body-broken".to_owned()),
    });
}
