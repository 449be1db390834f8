//! `POST /events`: CloudEvents 1.0 over HTTP, in all three content modes.

use std::cmp::Reverse;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use swirl_api::Nothing;
use swirl_api::events::{
    BATCHED, ExplainQuery, Explained, Outcome, Published, RecentEvent, RecentEvents, RecentQuery,
    STRUCTURED, Via,
};
use swirl_model::CloudEvent;
use swirl_service::cloudevents::{self, Invalid};

use super::problem::{Problem, cut};
use super::request::{self, Parameters, Unread};
use super::serve::Asked;
use super::{Api, paging};

/// The largest event, and the largest batch, in bytes.
const EVENT_BYTES_MAX: usize = 1 << 20;
const BATCH_BYTES_MAX: usize = 8 << 20;
/// The maximum number of events in a batch.
const BATCH_MAX: usize = 100;

/// The default and the maximum number of listed events.
const RECENT: usize = 50;
const RECENT_MAX: usize = 500;

/// Checks all events before it accepts any. The response is sent once all are committed. Sending the same events again
/// after a failure is safe, since an event is identified by its `source` and `id`.
pub async fn publish(
    State(api): State<Api>,
    headers: HeaderMap,
    body: Unread,
) -> Result<Response, Problem> {
    let is_brief = wants_no_body(&headers);
    let events =
        read(&headers, body, BATCH_BYTES_MAX)
            .await
            .map_err(|NoEvent { problem, said }| {
                let (now, recent) = (api.service.clock.now(), &api.service.recent);
                recent.refused(Some(&said), Via::Http, problem.detail(), now);
                problem
            })?;
    let mut accepted = Vec::new();
    for event in &events {
        let reach = api.service.publish_explained(event).await;
        accepted.push(reach.map_err(|error| {
            Problem::from(error)
                .with(|more| (more.index, more.accepted) = (Some(accepted.len()), accepted.clone()))
        })?);
    }
    if is_brief {
        let applied = [("preference-applied", "return=minimal")];
        return Ok((StatusCode::NO_CONTENT, applied).into_response());
    }
    Ok((StatusCode::ACCEPTED, Json(Published { accepted })).into_response())
}

/// Whether the sender asks for a response without a body. To a broker of Knative, which sends `Prefer: reply`, a body
/// is an event, so it would count ours as a failure and send the event again.
fn wants_no_body(headers: &HeaderMap) -> bool {
    request::preference(headers, "return") == Some("minimal")
        || request::preference(headers, "reply").is_some()
        || headers.contains_key("kn-namespace")
}

/// `OPTIONS /events`: "HTTP 1.1 Web Hooks for Event Delivery", section 4. Some senders only deliver events to receivers
/// that agree to it.
pub async fn handshake(State(api): State<Api>, headers: HeaderMap) -> Result<Response, Problem> {
    let mut response = StatusCode::OK.into_response();
    let allow = HeaderValue::from_static("GET, HEAD, OPTIONS, POST");
    response.headers_mut().insert(header::ALLOW, allow);
    let Some(origin) = request::header(&headers, "webhook-request-origin")? else {
        return Ok(response);
    };
    let is_allowed = |known: &String| known == "*" || known.eq_ignore_ascii_case(origin);
    if !api.webhook_origins.iter().any(is_allowed) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "webhook-refused",
            format!(
                "'{}' may not deliver events here: coordinator.webhook_origins (or 'swirl dev --webhook-origin') \
                 doesn't name it",
                cut(origin)
            ),
        ));
    }
    let headers_out = response.headers_mut();
    if let Some(origin) = headers.get("webhook-request-origin") {
        headers_out.insert("webhook-allowed-origin", origin.clone());
    }
    let rate = headers.get("webhook-request-rate").cloned();
    let any = HeaderValue::from_static("*");
    headers_out.insert("webhook-allowed-rate", rate.unwrap_or(any));
    Ok(response)
}

/// The last events that the coordinators received, newest first.
pub async fn recent(
    api: Api,
    Asked { query, .. }: Asked<Nothing, RecentQuery, Nothing>,
) -> Result<RecentEvents, Problem> {
    let limit = paging::number("limit", query.limit, RECENT, RECENT_MAX)?;
    if let Some(Outcome::Other(word)) = &query.outcome {
        return Err(Problem::no_word("outcome", word, Outcome::WORDS));
    }
    let mut events = last(&api).await?;
    events.retain(|event| {
        query.kind.as_ref().is_none_or(|kind| *kind == event.kind)
            && query
                .outcome
                .as_ref()
                .is_none_or(|outcome| *outcome == event.reach.outcome)
    });
    events.truncate(limit);
    Ok(RecentEvents { events })
}

/// The last events that any coordinator received, newest first.
async fn last(api: &Api) -> Result<Vec<RecentEvent>, Problem> {
    let mut own = api.service.recent.last(RECENT_MAX);
    let shared = match &api.insight {
        Some(insight) => insight.recent_events(RECENT_MAX).await?,
        None => None,
    };
    let Some(mut events) = shared else {
        return Ok(own);
    };
    // The latest ones of this process are not shared yet.
    let newest = events.first().map(|event| event.at);
    own.retain(|event| Some(event.at) >= newest && !events.contains(event));
    events.splice(0..0, own);
    events.sort_by_key(|event| Reverse(event.at));
    Ok(events)
}

/// Explains which instances would receive an event, and what excludes the others. The event isn't accepted.
pub async fn explain(
    State(api): State<Api>,
    Parameters(query): Parameters<ExplainQuery>,
    headers: HeaderMap,
    body: Unread,
) -> Result<Json<Explained>, Problem> {
    let events = read(&headers, body, EVENT_BYTES_MAX).await;
    let events = events.map_err(|error| error.problem)?;
    let [event] = &events[..] else {
        let detail = "only one event can be explained at a time";
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
    Ok(Json(explained))
}

/// A request that has no event.
struct NoEvent {
    problem: Problem,
    /// The type, source and id that the request states, so that the refusal can be found.
    said: Box<CloudEvent>,
}

async fn read(
    headers: &HeaderMap,
    body: Unread,
    batch_bytes_max: usize,
) -> Result<Vec<CloudEvent>, NoEvent> {
    let lower = || {
        let headers = headers.iter();
        headers.map(|(name, value)| (name.as_str(), value.as_bytes()))
    };
    let mut said = cloudevents::said_in_headers(lower());
    let events = async {
        let kind = request::media_type(headers)?;
        match kind.as_deref() {
            Some(STRUCTURED) => {
                let bytes = request::text(body, EVENT_BYTES_MAX).await?;
                let json = request::json(&bytes)?;
                let event = cloudevents::structured(&json);
                let event = event.inspect_err(|_| said = cloudevents::said_in_json(&json));
                Ok(vec![event.map_err(|invalid| problem(&invalid, None))?])
            }
            Some(BATCHED) => {
                let bytes = request::text(body, batch_bytes_max).await?;
                batch(&bytes, &mut said)
            }
            _ if headers.contains_key("ce-specversion") || headers.contains_key("ce-id") => {
                let bytes = request::body(body, EVENT_BYTES_MAX).await?;
                let event = cloudevents::binary(lower(), &bytes);
                Ok(vec![event.map_err(|invalid| problem(&invalid, None))?])
            }
            other => Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "no-cloudevent",
                format!(
                    "this is not a CloudEvent: the Content-Type {}, and there are no ce- headers; send Content-Type \
                     {STRUCTURED} or {BATCHED}, or the headers ce-specversion, ce-id, ce-source and ce-type",
                    other.map_or("is missing".to_owned(), |other| format!(
                        "is {}",
                        cut(other)
                    ))
                ),
            )),
        }
    };
    let events = events.await;
    events.map_err(|problem| NoEvent {
        problem,
        said: Box::new(said),
    })
}

/// `said` gets what the item that isn't an event says of itself.
fn batch(bytes: &[u8], said: &mut CloudEvent) -> Result<Vec<CloudEvent>, Problem> {
    let data = request::json(bytes)?;
    let Some(items) = data.as_array() else {
        return Err(Problem::bad_request(
            "invalid-event",
            format!(
                "a batch is a JSON array of events, not {}",
                data.kind_in_words()
            ),
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
            *said = cloudevents::said_in_json(&item);
            let detail = format!("event {index} is larger than {EVENT_BYTES_MAX} bytes");
            let problem = Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail);
            return Err(problem.with(|more| more.index = Some(index)));
        }
        let event = cloudevents::structured(&item);
        let event = event.inspect_err(|_| *said = cloudevents::said_in_json(&item));
        events.push(event.map_err(|invalid| problem(&invalid, Some(index)))?);
    }
    Ok(events)
}

fn problem(invalid: &Invalid, index: Option<usize>) -> Problem {
    let new = |detail: String| match invalid {
        Invalid::Unreadable(_) => Problem::unreadable("invalid-text", detail),
        _ => Problem::bad_request("invalid-event", detail),
    };
    match index {
        None => new(invalid.to_string()),
        Some(index) => {
            new(format!("event {index}: {invalid}")).with(|more| more.index = Some(index))
        }
    }
}
