//! The log of received calls, and the answers to repeated ones.

use std::collections::{HashMap, VecDeque};

use axum::Json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};

use crate::{BODY_BYTES_MAX, KEPT_MAX, Service};

/// The calls received, oldest first, and the successful answers by method, path and key.
#[derive(Default)]
pub(crate) struct Log {
    calls: VecDeque<Value>,
    answers: HashMap<String, Answer>,
    order: VecDeque<String>,
}

#[derive(Clone)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Log {
    fn remember(&mut self, key: String, answer: Answer) {
        if self.answers.insert(key.clone(), answer).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > KEPT_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.answers.remove(&oldest);
            }
        }
    }
}

pub(crate) fn routes() -> axum::Router<Service> {
    axum::Router::new()
        .route("/calls", get(list).delete(clear))
        .route("/health", get(health))
}

async fn health() -> &'static str {
    "ok"
}

async fn list(State(service): State<Service>) -> Json<Value> {
    Json(Value::Array(
        service.lock().calls.calls.iter().cloned().collect(),
    ))
}

async fn clear(State(service): State<Service>) -> StatusCode {
    service.lock().calls.calls.clear();
    StatusCode::NO_CONTENT
}

/// Logs a call and answers a repeated one without calling the handler.
pub(crate) async fn record(
    State(service): State<Service>,
    request: Request,
    next: Next,
) -> Response {
    if request.uri().path() == "/openapi.json" {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let key = parts
        .headers
        .get("idempotency-key")
        .and_then(|key| key.to_str().ok());
    // Answering a GET again repeats no work, and a poll must see the job's progress.
    let known = key
        .filter(|_| parts.method != Method::GET)
        .map(|key| format!("{} {} {key}", parts.method, parts.uri.path()));
    let earlier = {
        let mut state = service.lock();
        let earlier = known
            .as_ref()
            .and_then(|known| state.calls.answers.get(known))
            .cloned();
        state.calls.calls.push_back(json!({
            "method": parts.method.as_str(),
            "path": parts.uri.path(),
            "query": parts.uri.query(),
            "idempotencyKey": key,
            "repeat": earlier.is_some(),
            "body": body_value(&body),
        }));
        if state.calls.calls.len() > KEPT_MAX {
            state.calls.calls.pop_front();
        }
        earlier
    };
    if let Some(answer) = earlier {
        return (answer.status, answer.headers, answer.body).into_response();
    }
    let response = next.run(Request::from_parts(parts, Body::from(body))).await;
    let (Some(known), true) = (known, response.status().is_success()) else {
        return response;
    };
    let (parts, body) = response.into_parts();
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let answer = Answer {
        status: parts.status,
        headers: parts.headers.clone(),
        body: body.clone(),
    };
    service.lock().calls.remember(known, answer);
    Response::from_parts(parts, Body::from(body))
}

/// A body as JSON if it is valid, otherwise as text; null if there is none.
pub(crate) fn body_value(body: &[u8]) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(body)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(body).into_owned()))
}
