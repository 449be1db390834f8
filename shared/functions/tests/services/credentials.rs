//! Digests and tokens of DSL 1.0, against servers that check them.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};
use swirl_model::workflow::{AuthScheme, FunctionKind};
use swirl_model::{Data, data};
use tokio::net::TcpListener;

use crate::services::fixture::{Callable, Server};

type Requests = Arc<Mutex<Vec<(String, String, HeaderMap)>>>;

/// The parameters of a digest.
fn part(header: &str, name: &str) -> String {
    let parts = header.trim_start_matches("Digest ").split(',');
    let parts = parts.filter_map(|part| part.trim().split_once('='));
    let mut found = parts.filter(|(known, _)| *known == name);
    found
        .next()
        .map_or_else(String::new, |(_, value)| value.trim_matches('"').to_owned())
}

/// Demands a digest, and computes it itself.
async fn guarded(
    State(seen): State<Requests>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let given = headers
        .get("authorization")
        .map(|value| value.to_str().unwrap().to_owned());
    let line = format!("{method} {uri}");
    seen.lock()
        .unwrap()
        .push((line, String::from_utf8_lossy(&body).into_owned(), headers));
    if uri.path() == "/moved" {
        return Response::builder()
            .status(307)
            .header("location", "/door?a=b+c")
            .body(Body::empty())
            .unwrap();
    }
    let challenge = "Digest realm=\"shop\", nonce=\"abc\", qop=\"auth\", algorithm=SHA-256";
    let Some(given) = given else {
        return Response::builder()
            .status(401)
            .header("www-authenticate", "Basic realm=\"x\"")
            .header(
                "www-authenticate",
                "Digest realm=\"x\", nonce=\"x\", algorithm=NEW",
            )
            .header("www-authenticate", challenge)
            .body(Body::empty())
            .unwrap();
    };
    let hash = |text: &str| {
        let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        hash.as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let who = hash("ada:shop:lovelace");
    let what = hash(&format!("{method}:{uri}"));
    let expected = hash(&format!(
        "{who}:abc:{}:{}:auth:{what}",
        part(&given, "nc"),
        part(&given, "cnonce")
    ));
    let status = if part(&given, "response") == expected {
        200
    } else {
        403
    };
    Response::builder()
        .status(status)
        .body(Body::from("welcome"))
        .unwrap()
}

#[tokio::test]
async fn a_digest_is_what_the_service_computes() {
    let seen = Requests::default();
    let router = Router::new().fallback(guarded).with_state(seen.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let call = Callable::new(FunctionKind::HttpCall, "");
    let mut arguments =
        data!({"method": "post", "body": {"n": 1}, "query": {"a": "b c"}, "output": "raw"});
    arguments.set("uri", Data::string(format!("{base}/door")));
    let auth = |password: &str| {
        let mut properties = data!({"username": "ada"});
        properties.set("password", Data::string(password));
        Some((AuthScheme::Digest, properties))
    };
    let result = call
        .request(arguments.clone(), None, auth("lovelace"))
        .await
        .unwrap();
    assert_eq!(result, data!("d2VsY29tZQ=="));
    let requests = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(requests.len(), 2);
    for (line, body, _) in &requests {
        assert_eq!(
            (line.as_str(), body.as_str()),
            ("POST /door?a=b+c", "{\"n\":1}")
        );
    }
    let mut moved = arguments.clone();
    moved.set("uri", Data::string(format!("{base}/moved")));
    moved.set("redirect", data!(true));
    let result = call.request(moved, None, auth("lovelace")).await.unwrap();
    assert_eq!(result, data!("d2VsY29tZQ=="));
    let error = call
        .request(arguments, None, auth("wrong"))
        .await
        .unwrap_err();
    assert_eq!(error.status, Some(403));
}

#[tokio::test]
async fn tokens_are_had_where_the_definition_says() {
    let server = Server::start(|seen| {
        let path = seen.uri.path();
        let body = match path {
            "/x/.well-known/openid-configuration" => {
                let host = seen.header("host");
                format!("{{\"token_endpoint\": \"http://{host}/found\"}}")
            }
            "/x/auth/token" | "/found" => {
                "{\"access_token\": \"t1\", \"expires_in\": 60}".to_owned()
            }
            "/nothing/oauth2/token" => {
                return (
                    400,
                    "application/json",
                    "{\"error\": \"invalid_client\"}".to_owned(),
                );
            }
            _ => format!("\"{}\"", seen.header("authorization")),
        };
        (200, "application/json", body)
    })
    .await;
    let base = &server.base;
    let call = Callable::new(FunctionKind::HttpCall, "");
    let mut arguments = data!({"method": "get"});
    arguments.set("uri", Data::string(format!("{base}/service")));
    let ask = |authority: String, more: Data| {
        let mut properties =
            data!({"grantType": "client_credentials", "clientId": "c", "clientSecret": "s"});
        properties.set("authority", Data::string(authority));
        for name in ["tokenPath", "discovery", "encoding", "clientAuthentication"] {
            if let Some(value) = more.get(name) {
                properties.set(name, value);
            }
        }
        call.request(
            arguments.clone(),
            None,
            Some((AuthScheme::OAuth2, properties)),
        )
    };
    for (path, more) in [
        (
            "/x",
            data!({"tokenPath": "/auth/token", "encoding": "application/json"}),
        ),
        ("/x/", data!({"discovery": true})),
        (
            "/x/.well-known/openid-configuration",
            data!({"tokenPath": "/oauth2/token"}),
        ),
        (
            "/x",
            data!({"tokenPath": "auth/token", "clientAuthentication": "client_secret_jwt"}),
        ),
    ] {
        let result = ask(format!("{base}{path}"), more).await.unwrap();
        assert_eq!(result, data!("Bearer t1"), "{path}");
    }
    let first = &server.seen()[0];
    assert_eq!(first.body["client_id"], "c");
    assert_eq!(first.body["grant_type"], "client_credentials");
    let refused = ask(
        format!("{base}/nothing"),
        data!({"tokenPath": "/oauth2/token"}),
    );
    let unreachable = ask(
        "http://127.0.0.1:1".to_owned(),
        data!({"tokenPath": "/oauth2/token"}),
    );
    for error in [refused.await.unwrap_err(), unreachable.await.unwrap_err()] {
        let problem = error.problem.as_ref().unwrap();
        assert!(problem.kind.ends_with("/authentication"), "{error}");
        assert_eq!(error.status, Some(401));
    }
}
