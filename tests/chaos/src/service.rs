//! The service that the workflows call. It records each call by its idempotency key.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::instance::{FLAKY, value};

/// Id, step and item.
pub type Place = (String, String, u64);

#[derive(Debug, Default)]
pub struct Seen {
    /// The keys of the calls, in order.
    pub keys: BTreeMap<Place, Vec<String>>,
    /// The number of calls, including repeats with the same key.
    pub total: usize,
    /// Calls without a key.
    pub without_key: usize,
    all: BTreeSet<String>,
    /// Keys that two different calls had.
    pub shared: Vec<String>,
}

#[derive(Clone, Default)]
pub struct Service {
    seen: Arc<Mutex<Seen>>,
}

impl Service {
    /// Serves until the runtime ends.
    pub async fn start(&self) -> std::io::Result<SocketAddr> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let router = Router::new()
            .route("/step", post(step))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(address)
    }

    pub fn look<T>(&self, read: impl FnOnce(&Seen) -> T) -> T {
        read(&self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn step(
    State(service): State<Service>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response {
    let (Some(id), Some(step), Some(item)) = (
        body["id"].as_str(),
        body["step"].as_str(),
        body["item"].as_u64(),
    ) else {
        return (StatusCode::BAD_REQUEST, "id, step and item").into_response();
    };
    let key = headers.get("idempotency-key");
    let key = key.and_then(|key| key.to_str().ok()).map(str::to_owned);
    let mut seen = service.seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.total += 1;
    let Some(key) = key else {
        seen.without_key += 1;
        return StatusCode::BAD_REQUEST.into_response();
    };
    let place = (id.to_owned(), step.to_owned(), item);
    let keys = seen.keys.entry(place).or_default();
    if !keys.contains(&key) {
        keys.push(key.clone());
        let shared = !seen.all.insert(key.clone());
        if shared {
            seen.shared.push(key.clone());
        }
    }
    let place = (id.to_owned(), step.to_owned(), item);
    // A repeat of the first attempt fails again, because it is the same call. The answer is definite, so the retry has
    // a key of its own.
    let first = seen.keys.get(&place).and_then(|keys| keys.first());
    if step == FLAKY && first == Some(&key) {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    Json(json!({"value": value(id, step, item)})).into_response()
}

/// The service's OpenAPI document.
pub fn document(address: SocketAddr) -> String {
    let text = json!({"type": "string"});
    json!({
        "openapi": "3.0.3",
        "info": {"title": "steps", "version": "1"},
        "servers": [{"url": format!("http://{address}")}],
        "paths": {"/step": {"post": {
            "operationId": "step",
            "requestBody": {"required": true, "content": {"application/json": {"schema": {
                "type": "object",
                "properties": {"id": text, "step": text, "item": {"type": "integer"}},
            }}}},
            "responses": {"200": {"description": "done"}},
        }}},
    })
    .to_string()
}
