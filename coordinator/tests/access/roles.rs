//! Checks every route with every role.

use std::collections::BTreeSet;

use reqwest::{Method, StatusCode};
use serde_json::Value;
use swirl_coordinator::access::Access;

use crate::running::{Running, Setup, client, guarded};

const NOBODY: &[&str] = &[];
const VIEW: &[&str] = &["viewer", "operator", "deployer", "admin"];
const OPERATE: &[&str] = &["operator", "admin"];
const DEPLOY: &[&str] = &["deployer", "admin"];

/// Method, path, and the roles that may use it. Empty if anyone may, even without a token.
const ROUTES: &[(&str, &str, &[&str])] = &[
    ("GET", "/api/v1/audit", OPERATE),
    ("GET", "/api/v1/batches", VIEW),
    ("POST", "/api/v1/batches", OPERATE),
    ("GET", "/api/v1/batches/{id}", VIEW),
    ("POST", "/api/v1/batches/{id}/pause", OPERATE),
    ("GET", "/api/v1/batches/{id}/results", VIEW),
    ("POST", "/api/v1/batches/{id}/resume", OPERATE),
    ("POST", "/api/v1/batches/{id}/stop", OPERATE),
    ("GET", "/api/v1/counts", VIEW),
    ("GET", "/api/v1/dead-letters", VIEW),
    ("DELETE", "/api/v1/dead-letters/{sequence}", OPERATE),
    ("GET", "/api/v1/dead-letters/{sequence}", VIEW),
    ("POST", "/api/v1/dead-letters/{sequence}/retry", OPERATE),
    ("GET", "/api/v1/definitions", VIEW),
    ("POST", "/api/v1/definitions", DEPLOY),
    ("GET", "/api/v1/definitions/{id}", VIEW),
    ("DELETE", "/api/v1/definitions/{id}/{version}", DEPLOY),
    ("GET", "/api/v1/definitions/{id}/{version}", VIEW),
    (
        "POST",
        "/api/v1/definitions/{id}/{version}/activate",
        DEPLOY,
    ),
    ("GET", "/api/v1/events", VIEW),
    ("GET", "/api/v1/definitions/{id}/{version}/diagram", VIEW),
    ("GET", "/api/v1/definitions/{id}/{version}/states", VIEW),
    ("POST", "/api/v1/events", OPERATE),
    ("POST", "/api/v1/events/explain", VIEW),
    ("GET", "/api/v1/instances", VIEW),
    ("GET", "/api/v1/instances/{id}", VIEW),
    ("DELETE", "/api/v1/instances/{id}", OPERATE),
    ("POST", "/api/v1/instances/{id}/cancel", OPERATE),
    ("GET", "/api/v1/instances/{id}/changes", VIEW),
    ("GET", "/api/v1/instances/{id}/diagram", VIEW),
    ("GET", "/api/v1/instances/{id}/history", VIEW),
    ("POST", "/api/v1/instances/{id}/migrate", OPERATE),
    ("POST", "/api/v1/instances/{id}/rerun", OPERATE),
    ("POST", "/api/v1/instances/{id}/resume", OPERATE),
    ("POST", "/api/v1/instances/{id}/retry", OPERATE),
    ("POST", "/api/v1/instances/{id}/skip", OPERATE),
    ("POST", "/api/v1/instances/{id}/suspend", OPERATE),
    ("GET", "/api/v1/me", VIEW),
    ("GET", "/api/v1/openapi.json", NOBODY),
    ("GET", "/api/v1/overview", VIEW),
    ("GET", "/api/v1/schedules", VIEW),
    ("GET", "/api/v1/views", VIEW),
    ("POST", "/api/v1/views", OPERATE),
    ("DELETE", "/api/v1/views/{name}", OPERATE),
    ("GET", "/api/v1/system", VIEW),
    ("GET", "/api/v1/system/checks", OPERATE),
    ("POST", "/api/v1/workflows/{id}/instances", OPERATE),
    ("POST", "/api/v1/workflows/{id}/schedule/backfill", OPERATE),
    ("POST", "/api/v1/workflows/{id}/schedule/fire", OPERATE),
    ("POST", "/api/v1/workflows/{id}/schedule/pause", OPERATE),
    ("POST", "/api/v1/workflows/{id}/schedule/resume", OPERATE),
    ("GET", "/healthz", NOBODY),
    ("GET", "/metrics", NOBODY),
    ("GET", "/readyz", NOBODY),
];

async fn ask(
    running: &Running,
    method: &str,
    path: &str,
    token: Option<&str>,
) -> reqwest::Response {
    let path = path.replace("{id}", "x").replace("{version}", "1");
    let path = path.replace("{sequence}", "1").replace("{name}", "x");
    let method: Method = method.parse().unwrap();
    let mut request = client().request(method, running.url(&path));
    if let Some(token) = token {
        request = request.bearer_auth(format!("{token}-token"));
    }
    request.send().await.unwrap()
}

async fn code(response: reqwest::Response) -> String {
    let kind = response.headers()["content-type"].clone();
    assert_eq!(kind, "application/problem+json");
    let body: Value = response.json().await.unwrap();
    body["code"].as_str().unwrap().to_owned()
}

/// A new route fails here until the table names its roles.
#[tokio::test]
async fn the_table_has_every_route() {
    let running = Setup::new(guarded(None)).start().await;
    let document = ask(&running, "GET", "/api/v1/openapi.json", None).await;
    let document: Value = document.json().await.unwrap();
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in ["get", "put", "post", "delete", "patch"] {
            if item.get(method).is_some() {
                described.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    let table = ROUTES
        .iter()
        .map(|(method, path, _)| format!("{method} {path}"));
    assert_eq!(table.collect::<BTreeSet<_>>(), described);
}

#[tokio::test]
async fn each_role_may_do_what_the_table_says() {
    let running = Setup::new(guarded(None)).start().await;
    for (method, path, may) in ROUTES {
        let namespaced = path.replace("/api/v1/", "/api/v1/namespaces/shop/");
        for path in [path.to_string(), namespaced] {
            for role in VIEW {
                let what = format!("{method} {path} as {role}");
                let response = ask(&running, method, &path, Some(role)).await;
                let status = response.status();
                if may.is_empty() || may.contains(role) {
                    assert_ne!(status, StatusCode::UNAUTHORIZED, "{what}");
                    assert_ne!(status, StatusCode::FORBIDDEN, "{what}");
                    assert_ne!(status, StatusCode::METHOD_NOT_ALLOWED, "{what}");
                } else {
                    assert_eq!(status, StatusCode::FORBIDDEN, "{what}");
                    let challenge = &response.headers()["www-authenticate"];
                    assert!(challenge.to_str().unwrap().contains("insufficient_scope"));
                    let body: Value = response.json().await.unwrap();
                    assert_eq!(body["code"], "forbidden");
                    assert_eq!(body["role"], may[0], "the least sufficient role");
                    assert!(body["detail"].as_str().unwrap().contains(role), "{body}");
                }
            }
            let response = ask(&running, method, &path, None).await;
            if may.is_empty() {
                assert_ne!(response.status(), StatusCode::UNAUTHORIZED, "{path}");
                continue;
            }
            assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{path}");
            let challenge = response.headers()["www-authenticate"].clone();
            assert_eq!(challenge, "Bearer realm=\"swirl\"");
            assert_eq!(code(response).await, "unauthenticated");
            let response = ask(&running, method, &path, Some("wrong")).await;
            assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{path}");
            let challenge = response.headers()["www-authenticate"].clone();
            assert!(challenge.to_str().unwrap().contains("invalid_token"));
            assert_eq!(code(response).await, "unauthenticated");
        }
    }
}

/// The handlers of `GET` answer `HEAD`, which must not bypass the gate.
#[tokio::test]
async fn head_needs_the_same_role_as_get() {
    let running = Setup::new(guarded(None)).start().await;
    let head = ask(&running, "HEAD", "/api/v1/instances", None).await;
    assert_eq!(head.status(), StatusCode::UNAUTHORIZED);
    let head = ask(&running, "HEAD", "/api/v1/instances", Some("viewer")).await;
    assert_eq!(head.status(), StatusCode::OK);
    let put = ask(&running, "PUT", "/api/v1/instances", None).await;
    assert_eq!(code(put).await, "unknown-method");
    let other = ask(&running, "GET", "/api/v2/instances", None).await;
    assert_eq!(code(other).await, "unknown-route");
}

#[tokio::test]
async fn a_server_has_one_namespace() {
    let running = Setup::new(guarded(None)).start().await;
    let path = "/api/v1/namespaces/bank/instances?limit=1";
    let response = ask(&running, "GET", path, Some("viewer")).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["code"], "unknown-namespace");
    assert_eq!(body["namespace"], "shop");
    // The name of the namespace isn't revealed without access.
    let response = ask(&running, "GET", path, None).await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(!response.text().await.unwrap().contains("shop"));
    let own = "/api/v1/namespaces/shop/instances?limit=1";
    let response = ask(&running, "GET", own, Some("viewer")).await;
    assert_eq!(response.status(), StatusCode::OK);
    let wrong = "/api/v1/namespaces/shop/instances?limit=x";
    let response = ask(&running, "GET", wrong, Some("viewer")).await;
    assert_eq!(code(response).await, "invalid-query", "the query is kept");
    let response = ask(&running, "GET", "/api/v1/namespaces/shop", Some("viewer")).await;
    assert_eq!(code(response).await, "unknown-route");
}

#[tokio::test]
async fn an_open_server_requires_no_token() {
    let running = Setup::new(Access::open("default")).start().await;
    for (method, path, _) in ROUTES {
        let status = ask(&running, method, path, None).await.status();
        assert_ne!(status, StatusCode::UNAUTHORIZED, "{method} {path}");
        assert_ne!(status, StatusCode::FORBIDDEN, "{method} {path}");
    }
}
