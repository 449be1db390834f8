//! Checks every route with every role.

use reqwest::{Method, StatusCode};
use serde_json::Value;
use swirl_api::{Route, routes};
use swirl_coordinator::access::{Access, Role};

use crate::running::{Running, Setup, client, guarded};

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

/// All routes, also below the namespace.
fn all() -> impl Iterator<Item = (&'static Route, String)> {
    routes().flat_map(|route| {
        let namespaced = route.path.replace("/api/v1/", "/api/v1/namespaces/shop/");
        [(route, route.path.to_owned()), (route, namespaced)]
    })
}

#[tokio::test]
async fn each_role_may_do_what_the_routes_say() {
    let running = Setup::new(guarded(None)).start().await;
    for (route, path) in all() {
        let (method, least) = (route.method.as_str(), route.need.role());
        for role in Role::ALL {
            let role_name = role.as_str();
            let what = format!("{method} {path} as {role}");
            let response = ask(&running, method, &path, Some(role_name)).await;
            let status = response.status();
            if role.may(route.need) {
                assert_ne!(status, StatusCode::UNAUTHORIZED, "{what}");
                assert_ne!(status, StatusCode::FORBIDDEN, "{what}");
                assert_ne!(status, StatusCode::METHOD_NOT_ALLOWED, "{what}");
            } else {
                assert_eq!(status, StatusCode::FORBIDDEN, "{what}");
                let challenge = &response.headers()["www-authenticate"];
                assert!(challenge.to_str().unwrap().contains("insufficient_scope"));
                let body: Value = response.json().await.unwrap();
                assert_eq!(body["code"], "forbidden");
                assert_eq!(body["role"].as_str(), least.map(Role::as_str));
                assert!(body["detail"].as_str().unwrap().contains(role_name));
            }
        }
        let response = ask(&running, method, &path, None).await;
        if least.is_none() {
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
    for (route, path) in all() {
        let method = route.method.as_str();
        let status = ask(&running, method, &path, None).await.status();
        assert_ne!(status, StatusCode::UNAUTHORIZED, "{method} {path}");
        assert_ne!(status, StatusCode::FORBIDDEN, "{method} {path}");
    }
}
