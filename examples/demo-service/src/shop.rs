//! The shop: its state and the handlers.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::calls::body_value;
use crate::{KEPT_MAX, Service};

/// Items with their price in cents and the pieces in stock. The last is never in stock.
const ITEMS: [(&str, i64, i64); 4] = [
    ("apple", 50, 100),
    ("book", 1250, 10),
    ("lamp", 3990, 3),
    ("unicorn", 99_999, 0),
];

/// The longest that `slow` waits.
const SLOW_MS_MAX: u64 = 600_000;

/// Payments above this, in cents, are refused.
const CHARGE_MAX: i64 = 100_000;

#[derive(Default)]
pub(crate) struct Shop {
    /// How often each document kind was numbered: ids are counted, never drawn.
    counters: BTreeMap<&'static str, u64>,
    jobs: BTreeMap<u64, Job>,
    flaky: BTreeMap<String, u64>,
}

struct Job {
    polls_needed: u64,
    polls: u64,
    input: Value,
}

impl Shop {
    fn next(&mut self, kind: &'static str) -> u64 {
        let counter = self.counters.entry(kind).or_default();
        *counter += 1;
        *counter
    }
}

pub(crate) type Answer = Result<Json<Value>, Problem>;

/// The refusal of a call.
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({"status": self.status.as_u16(), "detail": self.detail});
        (self.status, Json(body)).into_response()
    }
}

fn problem(status: StatusCode, detail: impl Into<String>) -> Problem {
    Problem {
        status,
        detail: detail.into(),
    }
}

fn member<'a>(body: &'a Value, name: &str) -> Result<&'a Value, Problem> {
    body.get(name)
        .filter(|value| !value.is_null())
        .ok_or_else(|| problem(StatusCode::BAD_REQUEST, format!("`{name}` is missing")))
}

fn number(body: &Value, name: &str) -> Result<i64, Problem> {
    member(body, name)?.as_i64().ok_or_else(|| {
        problem(
            StatusCode::BAD_REQUEST,
            format!("`{name}` must be an integer"),
        )
    })
}

fn item(name: &str) -> Result<(&'static str, i64, i64), Problem> {
    ITEMS
        .into_iter()
        .find(|item| item.0 == name)
        .ok_or_else(|| problem(StatusCode::NOT_FOUND, format!("there is no item `{name}`")))
}

pub(crate) async fn items() -> Json<Value> {
    let items =
        ITEMS.map(|(name, price, stock)| json!({"item": name, "price": price, "stock": stock}));
    Json(Value::Array(items.to_vec()))
}

pub(crate) async fn price(
    Path(name): Path<String>,
    query: Query<BTreeMap<String, String>>,
) -> Answer {
    let (name, price, _) = item(&name)?;
    let quantity = match query.get("quantity") {
        Some(text) => text
            .parse::<i64>()
            .ok()
            .filter(|n| (1..=1_000_000).contains(n))
            .ok_or_else(|| {
                problem(
                    StatusCode::BAD_REQUEST,
                    "`quantity` must be between 1 and 1000000",
                )
            })?,
        None => 1,
    };
    Ok(Json(
        json!({"item": name, "price": price, "quantity": quantity, "total": price * quantity}),
    ))
}

pub(crate) async fn reserve(
    State(service): State<Service>,
    Path(order): Path<String>,
    Json(body): Json<Value>,
) -> Answer {
    let name = member(&body, "item")?
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let quantity = number(&body, "quantity")?;
    let (name, _, stock) = item(&name)?;
    if quantity > stock {
        return Err(problem(
            StatusCode::CONFLICT,
            format!("only {stock} of `{name}` in stock"),
        ));
    }
    let id = service.lock().shop.next("reservation");
    Ok(Json(
        json!({"reservation": id, "order": order, "item": name, "quantity": quantity}),
    ))
}

pub(crate) async fn release(Path((order, id)): Path<(String, u64)>) -> Json<Value> {
    Json(json!({"order": order, "reservation": id, "released": true}))
}

pub(crate) async fn charge(
    State(service): State<Service>,
    Path(order): Path<String>,
    Json(body): Json<Value>,
) -> Answer {
    let amount = number(&body, "amount")?;
    if !(1..=CHARGE_MAX).contains(&amount) {
        let detail = format!("`amount` must be between 1 and {CHARGE_MAX}");
        return Err(problem(StatusCode::PAYMENT_REQUIRED, detail));
    }
    let id = service.lock().shop.next("payment");
    Ok(Json(
        json!({"payment": id, "order": order, "amount": amount}),
    ))
}

pub(crate) async fn refund(Path((order, id)): Path<(String, u64)>) -> Json<Value> {
    Json(json!({"order": order, "payment": id, "refunded": true}))
}

pub(crate) async fn ship(State(service): State<Service>, Path(order): Path<String>) -> Json<Value> {
    let id = service.lock().shop.next("shipment");
    Json(json!({"shipment": id, "order": order, "tracking": format!("TRACK-{id:06}")}))
}

pub(crate) async fn greet(Json(body): Json<Value>) -> Answer {
    let name = member(&body, "name")?;
    let name = name
        .as_str()
        .map_or_else(|| name.to_string(), str::to_owned);
    Ok(Json(json!({"greeting": format!("Hello {name}!")})))
}

pub(crate) async fn create_job(
    State(service): State<Service>,
    Json(body): Json<Value>,
) -> impl IntoResponse {
    let mut state = service.lock();
    let id = state.shop.next("job");
    let polls_needed = body.get("polls").and_then(Value::as_u64).unwrap_or(2);
    state.shop.jobs.insert(
        id,
        Job {
            polls_needed,
            polls: 0,
            input: body,
        },
    );
    if state.shop.jobs.len() > KEPT_MAX {
        state.shop.jobs.pop_first();
    }
    (
        StatusCode::ACCEPTED,
        Json(json!({"id": id, "status": "running"})),
    )
}

pub(crate) async fn get_job(State(service): State<Service>, Path(id): Path<u64>) -> Answer {
    let mut state = service.lock();
    let Some(job) = state.shop.jobs.get_mut(&id) else {
        return Err(problem(
            StatusCode::NOT_FOUND,
            format!("there is no job {id}"),
        ));
    };
    job.polls += 1;
    let status = if job.polls > job.polls_needed {
        "done"
    } else {
        "running"
    };
    Ok(Json(
        json!({"id": id, "status": status, "polls": job.polls, "input": job.input}),
    ))
}

/// Fails the first `failures` calls of a `key` with 503, then succeeds.
pub(crate) async fn flaky(
    State(service): State<Service>,
    query: Query<BTreeMap<String, String>>,
) -> Answer {
    let key = query.get("key").cloned().unwrap_or_default();
    let failures = query
        .get("failures")
        .and_then(|text| text.parse().ok())
        .unwrap_or(2u64);
    let mut state = service.lock();
    let seen = &mut state.shop.flaky;
    let calls = seen.entry(key.clone()).or_default();
    *calls += 1;
    let calls = *calls;
    while seen.len() > KEPT_MAX {
        seen.pop_first();
    }
    if calls <= failures {
        let detail = format!("failure {calls} of {failures}");
        return Err(problem(StatusCode::SERVICE_UNAVAILABLE, detail));
    }
    Ok(Json(json!({"key": key, "calls": calls})))
}

pub(crate) async fn slow(query: Query<BTreeMap<String, String>>) -> Answer {
    let ms = query
        .get("ms")
        .and_then(|text| text.parse().ok())
        .unwrap_or(1000u64);
    if ms > SLOW_MS_MAX {
        return Err(problem(
            StatusCode::BAD_REQUEST,
            format!("`ms` is at most {SLOW_MS_MAX}"),
        ));
    }
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Ok(Json(json!({"waitedMs": ms})))
}

/// Echoes the request: method, path, headers (repeated ones joined), query string and body.
pub(crate) async fn echo(method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Json<Value> {
    let mut fields = Map::new();
    for name in headers.keys() {
        let values: Vec<_> = headers
            .get_all(name)
            .iter()
            .map(|v| String::from_utf8_lossy(v.as_bytes()))
            .collect();
        fields.insert(name.to_string(), Value::String(values.join(", ")));
    }
    Json(json!({
        "method": method.as_str(),
        "path": uri.path(),
        "query": uri.query(),
        "headers": fields,
        "body": body_value(&body),
    }))
}
