//! `POST /events`: CloudEvents 1.0 over HTTP, in all three content modes.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use swirl_model::CloudEvent;
use swirl_service::Seen;
use swirl_service::cloudevents::{self, Invalid};

use super::Api;
use super::problem::{Problem, cut};
use super::request::{self, Parameters};

/// The largest event, and the largest batch, in bytes.
const EVENT_BYTES_MAX: usize = 1 << 20;
const BATCH_BYTES_MAX: usize = 8 << 20;
/// The maximum number of events in a batch.
const BATCH_MAX: usize = 100;

/// The default and the maximum number of listed events.
const RECENT: usize = 50;
const RECENT_MAX: usize = 500;

const STRUCTURED: &str = "application/cloudevents+json";
const BATCHED: &str = "application/cloudevents-batch+json";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recent {
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explain {
    /// Explains the effect on this instance only.
    instance: Option<String>,
}

/// Checks all events before it accepts any. The response is sent once all are committed. Sending the same events again
/// after a failure is safe, since an event is identified by its `source` and `id`.
pub async fn publish(
    State(api): State<Api>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let events = read(&headers, body).await?;
    let mut accepted: Vec<Value> = Vec::new();
    for event in &events {
        let reach = api.service.publish_explained(event).await;
        let reach = reach.map_err(|error| {
            Problem::from(error)
                .with("index", accepted.len())
                .with("accepted", accepted.clone())
        })?;
        accepted.push(reach.json(event));
    }
    let body = json!({"accepted": accepted});
    Ok((StatusCode::ACCEPTED, Json(body)).into_response())
}

/// The last events that this process accepted, newest first.
pub async fn recent(
    State(api): State<Api>,
    Parameters(query): Parameters<Recent>,
) -> Result<Json<Value>, Problem> {
    let limit = query.limit.unwrap_or(RECENT);
    if !(1..=RECENT_MAX).contains(&limit) {
        let detail = format!("'limit' is from 1 to {RECENT_MAX}");
        return Err(Problem::bad_request("invalid-query", detail));
    }
    let events = api.service.recent.last(limit);
    let events: Vec<Value> = events.iter().map(Seen::json).collect();
    Ok(Json(json!({"events": events})))
}

/// Explains which instances would receive an event, and what excludes the others. The event isn't accepted.
pub async fn explain(
    State(api): State<Api>,
    Parameters(query): Parameters<Explain>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Value>, Problem> {
    let events = read(&headers, body).await?;
    let [event] = &events[..] else {
        let detail = "one event is explained at a time";
        return Err(Problem::bad_request("invalid-event", detail));
    };
    let only = match &query.instance {
        None => None,
        Some(name) => {
            let id = api.service.called(name).await?;
            if api.queries.instance(&id).await?.is_none() {
                return Err(Problem::no_instance(name));
            }
            Some(id)
        }
    };
    let explained = api
        .service
        .explain_event(&*api.queries, event, only.as_ref())
        .await?;
    Ok(Json(explained.json()))
}

async fn read(headers: &HeaderMap, body: Body) -> Result<Vec<CloudEvent>, Problem> {
    let kind = request::media_type(headers)?;
    match kind.as_deref() {
        Some(STRUCTURED) => {
            let bytes = request::body(body, EVENT_BYTES_MAX).await?;
            let event = cloudevents::structured(&request::json(&bytes)?);
            Ok(vec![event.map_err(|invalid| problem(&invalid, None))?])
        }
        Some(BATCHED) => {
            let bytes = request::body(body, BATCH_BYTES_MAX).await?;
            batch(&bytes)
        }
        _ if headers.contains_key("ce-specversion") || headers.contains_key("ce-id") => {
            let bytes = request::body(body, EVENT_BYTES_MAX).await?;
            let headers = headers.iter();
            let headers = headers.map(|(name, value)| (name.as_str(), value.as_bytes()));
            let event = cloudevents::binary(headers, &bytes);
            Ok(vec![event.map_err(|invalid| problem(&invalid, None))?])
        }
        other => Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "no-cloudevent",
            format!(
                "{} without ce- headers is not a CloudEvent: send Content-Type {STRUCTURED} or {BATCHED}, \
                 or the headers ce-specversion, ce-id, ce-source and ce-type",
                other.map_or("a request without Content-Type".to_owned(), cut)
            ),
        )),
    }
}

fn batch(bytes: &[u8]) -> Result<Vec<CloudEvent>, Problem> {
    let data = request::json(bytes)?;
    let Some(items) = data.as_array() else {
        return Err(Problem::bad_request(
            "invalid-event",
            format!("a batch is a JSON array of events, not {}", data.kind()),
        ));
    };
    if items.len() > BATCH_MAX {
        return Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too-large",
            format!("a batch holds at most {BATCH_MAX} events"),
        ));
    }
    let mut events = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let item = swirl_model::Data(item.clone());
        // Only a batch that is larger than the limit on events can contain an event that is too large.
        if bytes.len() > EVENT_BYTES_MAX && item.to_string().len() > EVENT_BYTES_MAX {
            let detail = format!("event {index} is larger than {EVENT_BYTES_MAX} bytes");
            let problem = Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail);
            return Err(problem.with("index", index));
        }
        let event = cloudevents::structured(&item);
        events.push(event.map_err(|invalid| problem(&invalid, Some(index)))?);
    }
    Ok(events)
}

fn problem(invalid: &Invalid, index: Option<usize>) -> Problem {
    match index {
        None => Problem::bad_request("invalid-event", invalid.to_string()),
        Some(index) => Problem::bad_request("invalid-event", format!("event {index}: {invalid}"))
            .with("index", index),
    }
}
