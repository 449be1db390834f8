//! A client that keeps sending wrong tokens has to wait.

use serde_json::Value;
use swirl_coordinator::access::Access;

use crate::running::{Setup, client, tokens};

#[tokio::test(flavor = "multi_thread")]
async fn an_address_with_too_many_wrong_tokens_has_to_wait() {
    let access = Access::guarded("shop", tokens(&[("viewer", "viewer")]), None).refused_max(4);
    let running = Setup::new(access).start().await;
    let client = client();
    let ask = async |token: &str| {
        let request = client.get(running.url("/api/v1/instances"));
        request.bearer_auth(token).send().await.unwrap()
    };
    for _ in 0..4 {
        assert_eq!(ask("wrong").await.status(), 401);
    }
    let refused = ask("wrong").await;
    assert_eq!(refused.status(), 429);
    let after = refused.headers()["retry-after"].to_str().unwrap();
    assert!((1..=4).contains(&after.parse::<u64>().unwrap()), "{after}");
    let problem: Value = refused.json().await.unwrap();
    assert_eq!(problem["code"], "too-many-refusals");
    // Valid tokens and requests without a token aren't affected.
    assert_eq!(ask("viewer-token").await.status(), 200);
    let ready = client.get(running.url("/readyz")).send().await.unwrap();
    assert_eq!(ready.status(), 200);
    let without = client.get(running.url("/api/v1/instances")).send().await;
    assert_eq!(without.unwrap().status(), 401);
}

/// Whatever the path contains, the response is a problem.
#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_is_not_utf8_is_refused() {
    let running = Setup::new(Access::open("shop")).start().await;
    let client = client();
    for path in [
        "/api/v1/instances/%ff",
        "/api/v1/instances/%C3%28/history",
        "/api/v1/definitions/a/%ff",
        "/api/v1/namespaces/%ff/instances",
        "/console/instances/%ff",
        "/%ff",
    ] {
        let answer = client.get(running.url(path)).send().await.unwrap();
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        let (kind, sniff) = (header("content-type"), header("x-content-type-options"));
        assert_eq!(
            (kind.as_str(), sniff.as_str()),
            ("application/problem+json", "nosniff"),
            "{path}"
        );
        assert_eq!(answer.status(), 400, "{path}");
        let problem: Value = answer.json().await.unwrap();
        assert_eq!(problem["code"], "invalid-path", "{path}");
    }
    // Text of any language is a valid name.
    let named = client.get(running.url("/api/v1/instances/%C3%A4"));
    let problem: Value = named.send().await.unwrap().json().await.unwrap();
    assert_eq!(problem["code"], "unknown-instance");
}
