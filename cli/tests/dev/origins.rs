//! Web pages from origins that `--cors-origin` permits.

use reqwest::Method;

use crate::dev::http::JSON;
use crate::dev::process::{Dev, command};

const PAGE: &str = "http://localhost:5173";
const OTHER: &str = "https://app.example.org";
const PATH: &str = "/api/v1/definitions";
const DOCUMENT: &str = r#"{"id": "a", "version": "1", "specVersion": "0.8",
    "states": [{"name": "A", "type": "inject", "data": {}, "end": true}]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn pages_from_permitted_origins_may_use_the_api() {
    let folder = tempfile::tempdir().unwrap();
    let mut named = command(folder.path());
    named.args(["--cors-origin", PAGE, "--cors-origin", OTHER]);
    named.args(["--webhook-origin", "eventgrid.azure.net"]);
    let dev = Dev::of(named).await;
    for origin in [PAGE, OTHER] {
        // A browser's preflight request before a page may send JSON.
        let asks = [
            ("origin", origin),
            ("sec-fetch-site", "cross-site"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type"),
        ];
        let answer = dev.send(Method::OPTIONS, PATH, &asks, "").await;
        assert_eq!(answer.status, 204, "{answer:#?}");
        assert_eq!(answer.headers["access-control-allow-origin"], origin);
        assert_eq!(
            answer.headers["access-control-allow-headers"],
            "content-type"
        );

        let from = [("origin", origin), ("sec-fetch-site", "cross-site"), JSON];
        let answer = dev.post(PATH, &from, DOCUMENT).await;
        assert!([200, 201].contains(&answer.status), "{answer:#?}");
        assert_eq!(answer.headers["access-control-allow-origin"], origin);
        let answer = dev.send(Method::GET, PATH, &from, "").await;
        assert_eq!(answer.headers["access-control-allow-origin"], origin);
        assert_eq!(answer.is(200)["definitions"][0]["id"], "a");
    }
    for origin in ["http://localhost:5174", "https://example.org", "null"] {
        let from = [("origin", origin), ("sec-fetch-site", "cross-site"), JSON];
        let answer = dev.post(PATH, &from, DOCUMENT).await;
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
        answer.refused(403, "foreign-origin");
    }
    handshakes(&dev).await;
    dev.kill();

    // A name with a path or without a scheme is not an origin.
    for bad in ["localhost:5173", "http://localhost:5173/app", ""] {
        let output = command(folder.path())
            .args(["--cors-origin", bad])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{bad}");
    }
}

/// Some senders of webhooks only deliver events to receivers that agree to it.
async fn handshakes(dev: &Dev) {
    const EVENTS: &str = "/api/v1/events";
    let ask = async |headers: &[(&str, &str)]| dev.send(Method::OPTIONS, EVENTS, headers, "").await;
    let origin = ("webhook-request-origin", "EventGrid.azure.net");
    let answer = ask(&[origin, ("webhook-request-rate", "120")]).await;
    assert_eq!(answer.status, 200, "{answer:#?}");
    assert_eq!(answer.headers["webhook-allowed-origin"], origin.1);
    assert_eq!(answer.headers["webhook-allowed-rate"], "120");
    assert_eq!(answer.headers["allow"], "GET, HEAD, OPTIONS, POST");
    assert_eq!(ask(&[origin]).await.headers["webhook-allowed-rate"], "*");
    let other = ask(&[("webhook-request-origin", "example.org")]).await;
    assert!(!other.headers.contains_key("webhook-allowed-origin"));
    other.refused(403, "webhook-refused");
    let plain = ask(&[]).await;
    assert!(!plain.headers.contains_key("webhook-allowed-origin"));
    assert_eq!(plain.status, 200, "{plain:#?}");
}
