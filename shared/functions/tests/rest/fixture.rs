//! Servers on free ports, and operations that call them.

use axum::Router;
use swirl_functions::auth::Auth;
use swirl_functions::http::{Http, HttpConfig};
use swirl_functions::types::rest::{CallContext, OpenApi, Operation, RestCaller};
use swirl_functions::{CallError, CallErrorKind};
use swirl_model::Data;
use tokio::net::TcpListener;

pub async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    (listener, base)
}

/// Serves a router, and returns its base URL.
pub async fn serve(router: Router) -> String {
    let (listener, base) = listener().await;
    tokio::spawn(async move { axum::serve(listener, router).await });
    base
}

pub async fn demo() -> String {
    serve(swirl_demo_service::router()).await
}

pub fn demo_operation(base: &str, id: &str) -> Operation {
    let document = swirl_demo_service::openapi().to_string();
    OpenApi::parse(document.as_bytes(), &format!("{base}/openapi.json"))
        .unwrap()
        .operation(id)
        .unwrap()
}

/// An operation `op`, with `paths` and other top-level keys given as YAML.
pub fn operation(base: &str, yaml: &str) -> Operation {
    let document = format!("openapi: 3.0.3\n{yaml}");
    OpenApi::parse(document.as_bytes(), base)
        .unwrap()
        .operation("op")
        .unwrap()
}

/// `GET /` with any answer.
pub fn get(base: &str, path: &str) -> Operation {
    operation(
        base,
        &format!("paths: {{{path}: {{get: {{operationId: op}}}}}}"),
    )
}

pub fn config() -> HttpConfig {
    HttpConfig {
        proxy_from_env: false,
        ..HttpConfig::default()
    }
}

pub fn caller() -> RestCaller {
    RestCaller::new(Http::new(config()).unwrap())
}

pub fn context(auth: Option<&Auth>) -> CallContext<'_> {
    CallContext {
        idempotency_key: "key-1",
        secrets: &[],
        timeout: Some(swirl_servers::PATIENCE),
        auth,
        headers: &[],
    }
}

pub async fn call(operation: &Operation, arguments: Data) -> Result<Data, CallError> {
    caller().call(operation, &arguments, &context(None)).await
}

pub async fn fails(operation: &Operation, kind: CallErrorKind) -> CallError {
    let error = call(operation, Data::object()).await.unwrap_err();
    assert_eq!(error.kind, kind, "{error}");
    error
}
