//! The service that the workflows of these tests call.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use swirl_servers::PATIENCE;
use tokio::net::TcpListener;
use tokio::sync::Barrier;

/// A service in which `meet` answers two calls at a time, and `fail` never succeeds.
#[derive(Clone)]
pub struct Service {
    address: String,
    seen: Arc<Mutex<Vec<String>>>,
    passed: Arc<Mutex<Vec<[String; 2]>>>,
    two: Arc<Barrier>,
}

impl Service {
    pub async fn serve() -> Service {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let service = Service {
            address: format!("http://{}", listener.local_addr().unwrap()),
            seen: Arc::default(),
            passed: Arc::default(),
            two: Arc::new(Barrier::new(2)),
        };
        let router = Router::new()
            .route("/meet", post(meet))
            .route("/fail", post(fail))
            .route("/pass", post(pass))
            .with_state(service.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        service
    }

    /// `HOST:PORT`
    pub fn address(&self) -> &str {
        self.address.trim_start_matches("http://")
    }

    pub fn document(&self) -> String {
        let operation = |name: &str| json!({"post": {"operationId": name, "responses": {"200": {"description": "done"}}}});
        json!({
            "openapi": "3.0.3", "info": {"title": "t", "version": "1"},
            "servers": [{"url": self.address}],
            "paths": {
                "/meet": operation("meet"), "/fail": operation("fail"), "/pass": operation("pass"),
            },
        })
        .to_string()
    }

    fn see(&self, headers: &HeaderMap) {
        let trace = headers["traceparent"].to_str().unwrap().to_owned();
        self.seen.lock().unwrap().push(trace);
    }

    /// The `Idempotency-Key` and the `traceparent` of each call of `pass`; empty if not sent.
    pub fn passed(&self) -> Vec<[String; 2]> {
        self.passed.lock().unwrap().clone()
    }

    /// The `traceparent` of each call of `meet` and `fail`.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

async fn pass(State(service): State<Service>, headers: HeaderMap) -> Json<Value> {
    let own = ["idempotency-key", "traceparent"];
    let own = own.map(|name| {
        let value = headers.get(name).map(|value| value.to_str().unwrap());
        value.unwrap_or_default().to_owned()
    });
    service.passed.lock().unwrap().push(own);
    Json(json!({}))
}

async fn meet(State(service): State<Service>, headers: HeaderMap) -> (StatusCode, Json<Value>) {
    service.see(&headers);
    match tokio::time::timeout(PATIENCE, service.two.wait()).await {
        Ok(_) => (StatusCode::OK, Json(json!({}))),
        Err(_) => (StatusCode::BAD_REQUEST, Json(json!("nobody else came"))),
    }
}

async fn fail(State(service): State<Service>, headers: HeaderMap) -> StatusCode {
    service.see(&headers);
    StatusCode::BAD_REQUEST
}
