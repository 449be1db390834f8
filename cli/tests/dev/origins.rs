//! Web pages from origins that `--cors-origin` permits.

use reqwest::Method;

use crate::http::JSON;
use crate::process::{Dev, command};

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
