//! `POST /workflows/{id}/instances`

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use swirl_api::actions::Json;
use swirl_api::schedules::{self, Workflow};
use swirl_api::start::{Begun, StartQuery};
use swirl_model::ids::InstanceId;
use swirl_model::instance::Instance;
use swirl_model::scope::Scope;
use swirl_model::time::IsoDuration;
use swirl_model::trace::TraceContext;
use swirl_service::{Refused, StartRequest, Started};

use super::Api;
use super::instance_view::shown;
use super::problem::{Problem, bounded};
use super::request::{self, located};
use super::serve::{Asked, Done};

/// The maximum time for which a request may wait for the end of its instance.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The shortest and the longest pause between two polls of an instance.
const PAUSE: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// The same if the store sends notifications of the end.
const NOTIFIED_PAUSE: Duration = Duration::from_millis(50);
const NOTIFIED_PAUSE_MAX: Duration = Duration::from_secs(1);

pub async fn start(
    api: Api,
    asked: Asked<Workflow, StartQuery, Json>,
) -> Result<Done<Begun>, Problem> {
    let wait = wait(asked.query.wait.as_deref(), &asked.headers)?;
    let Json(input) = asked.body;
    let request = StartRequest {
        workflow: asked.path.id,
        version: asked.query.version,
        input,
        key: asked.key,
        request: request::draw()?,
        watched: wait.is_some(),
        trace: trace(&asked.headers),
    };
    let (id, new, ended) = match api.service.start(request).await? {
        Ok(Started::New(id)) => (id, true, None),
        Ok(Started::Ended(instance)) => (instance.header.id.clone(), true, Some(*instance)),
        Ok(Started::Existing(id)) => (id, false, None),
        Err(refused) => return Err(problem(&refused)),
    };
    let location = located(&["instances", id.as_str()]);
    let (begun, status) = match wait {
        None => {
            let id = id.to_string();
            let status = match new {
                true => StatusCode::CREATED,
                false => StatusCode::OK,
            };
            (Begun::Started(schedules::Started { id, new }), status)
        }
        Some(wait) => {
            let found = match ended {
                Some(instance) => (instance, Vec::new()),
                None => until_end(&api, &id, wait, new, PAUSE_MAX).await?,
            };
            let status = match found.0.state.status.ended() {
                true => StatusCode::OK,
                false => StatusCode::ACCEPTED,
            };
            let instance = Box::new(shown(&api, &found).await?);
            (Begun::Instance(instance), status)
        }
    };
    Ok(Done::from(begun).with_status(status).located(location))
}

fn problem(refused: &Refused) -> Problem {
    let detail = bounded(&refused.to_string());
    match refused {
        Refused::Unknown(_) => Problem::not_found("unknown-workflow", detail),
        Refused::Rate { .. } => {
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-starts", detail)
        }
        Refused::Invalid(error) => Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "start-refused",
            error.to_string(),
        )
        .with(|more| more.error = Some((&error.to_data()).into())),
        Refused::KeyInUse { by, .. } => Problem::conflict("key-in-use", detail)
            .with(|more| more.instance = Some(by.as_str().to_owned())),
        Refused::Conflict { instance, .. } => Problem::conflict("key-conflict", detail)
            .with(|more| more.instance = Some(instance.as_str().to_owned())),
    }
}

/// Returns how long to wait: `?wait=PT10S`, or `Prefer: wait=10` (RFC 7240), in seconds.
fn wait(query: Option<&str>, headers: &HeaderMap) -> Result<Option<Duration>, Problem> {
    if let Some(text) = query {
        return parse_wait(text).map(Some);
    }
    // Servers may ignore a preference, so one that cannot be read is not an error.
    let seconds = request::preference(headers, "wait").and_then(|value| value.parse().ok());
    Ok(seconds.map(|seconds| Duration::from_secs(seconds).min(WAIT_MAX)))
}

pub(super) fn parse_wait(text: &str) -> Result<Duration, Problem> {
    let parsed: Result<IsoDuration, _> = text.parse();
    let duration = parsed.map_err(|error| {
        Problem::bad_request(
            "invalid-query",
            format!("'wait' is not a duration such as PT10S: {error}"),
        )
    })?;
    let wait = Duration::from_millis(duration.millis);
    if duration.months > 0 || wait > WAIT_MAX {
        return Err(Problem::bad_request(
            "invalid-query",
            "'wait' must be at most PT60S",
        ));
    }
    Ok(wait)
}

/// Ignores an unreadable trace context, as W3C Trace Context requires.
fn trace(headers: &HeaderMap) -> Option<TraceContext> {
    headers.get("traceparent")?.to_str().ok()?.parse().ok()
}

/// Returns the instance and its scopes when the instance has ended, when the time limit is reached, or when the server
/// stops. If this request created the instance, its end is notified, but the notification may be missed.
///
/// `pause_max`: the longest pause between two polls without notifications.
pub(super) async fn until_end(
    api: &Api,
    id: &InstanceId,
    wait: Duration,
    new: bool,
    pause_max: Duration,
) -> Result<(Instance, Vec<Scope>), Problem> {
    let until = tokio::time::Instant::now() + wait;
    let queries = &api.queries;
    let notifies = new && queries.notifies_ends();
    // With notifications, polling only covers the rare lost one, since each poll costs as much as a transition.
    let (mut pause, growth, pause_max) = if notifies {
        (NOTIFIED_PAUSE, 4, NOTIFIED_PAUSE_MAX)
    } else {
        (PAUSE, 2, pause_max)
    };
    let (mut looks, mut was_notified) = (!notifies, false);
    // Listens during polls too: an end that came between a poll and a new listener would be seen a pause later.
    let mut ended = queries.wait_ended(id);
    loop {
        // Most polls find a running instance, so a cheap check comes first.
        let is_over = || tokio::time::Instant::now() >= until || api.is_stopping();
        if looks && !was_notified && !is_over() && queries.has_ended(id).await? == Some(false) {
            looks = false;
        }
        if looks {
            let Some(found) = queries.view(id).await? else {
                return Err(Problem::no_instance(id.as_str()));
            };
            if found.0.state.status.ended() || is_over() {
                return Ok(found);
            }
        }
        let next = (tokio::time::Instant::now() + pause).min(until);
        // Poll, whether a notification arrived or the pause has passed.
        was_notified = tokio::time::timeout_at(next, &mut ended).await.is_ok();
        if was_notified {
            ended = queries.wait_ended(id);
        }
        pause = (pause * growth).min(pause_max);
        looks = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        [(name.parse().unwrap(), value.parse().unwrap())]
            .into_iter()
            .collect()
    }

    #[test]
    fn waiting() {
        let none = HeaderMap::new();
        assert_eq!(
            wait(Some("PT10S"), &none).unwrap(),
            Some(Duration::from_secs(10))
        );
        assert_eq!(wait(None, &none).unwrap(), None);
        assert!(wait(Some("10"), &none).is_err() && wait(Some("PT61S"), &none).is_err());
        for (text, seconds) in [
            ("wait=10", Some(10)),
            ("respond-async, wait=\"5\"", Some(5)),
            ("wait=3600", Some(60)),
            ("return=minimal", None),
        ] {
            let found = wait(None, &headers("prefer", text)).unwrap();
            assert_eq!(found, seconds.map(Duration::from_secs), "{text}");
        }
    }
}
