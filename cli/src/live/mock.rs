//! Answers the functions of a scenario: as a connector, and as the services that tasks of DSL 1.0 make requests to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::Value;
use swirl_engine::leaves_outcome_open;
use swirl_functions::simulated::Asked;
use swirl_model::Data;
use swirl_model::time::Timestamp;
use swirl_model::workflow::{Function, FunctionKind};
use swirl_scenario::answer::{Answered, Answers};
use swirl_scenario::observed::SeenRequest;
use swirl_scenario::requests::{Answering, answering, body, seen};
use swirl_scenario::{Observed, ObservedCall, RunError};
use tokio::net::TcpListener;

use super::tasks::{Callers, Hosts};

/// The type of the functions in the deployed documents.
pub const CONNECTOR: &str = "swirl-test";

/// The longest body of a request.
const BODY_BYTES_MAX: usize = 16 << 20;

/// A received call.
#[derive(Debug, Clone)]
pub struct Call {
    pub instance: String,
    pub function: String,
    pub arguments: Data,
    pub key: String,
    /// It got no answer, so another call with the same key is a retry (docs/language.md#decision-95).
    pub open: bool,
    /// Of a request that a task describes: its place.
    pub place: Option<String>,
    pub request: Option<SeenRequest>,
}

#[derive(Clone)]
pub struct Mock {
    answers: Arc<Answers>,
    hosts: Hosts,
    callers: Arc<Callers>,
    /// The calls of the run in virtual time.
    imagined: Arc<Vec<ObservedCall>>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    calls: Vec<Call>,
    trouble: Option<RunError>,
    last: Option<Instant>,
}

#[derive(Deserialize)]
struct MockCall {
    function: String,
    arguments: Value,
    instance: String,
    key: String,
}

impl Mock {
    pub fn new(answers: Answers, hosts: Hosts, callers: Callers, imagined: &Observed) -> Mock {
        let calls = imagined.instances.iter().flat_map(|one| &one.calls);
        Mock {
            answers: Arc::new(answers),
            hosts,
            callers: Arc::new(callers),
            imagined: Arc::new(calls.cloned().collect()),
            seen: Arc::default(),
        }
    }

    /// Serves until the runtime ends.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn serve(&self) -> std::io::Result<SocketAddr> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let router = Router::new()
            .route("/call", post(answer))
            .fallback(answer_request)
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(address)
    }

    /// The calls so far, and the reason if the run is invalid.
    pub fn calls(&self) -> Result<Vec<Call>, RunError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.trouble.take() {
            Some(trouble) => Err(trouble),
            None => Ok(seen.calls.clone()),
        }
    }

    fn note<T>(&self, change: impl FnOnce(&mut Seen) -> T) -> T {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.last = Some(Instant::now());
        change(&mut seen)
    }
}

async fn answer(State(mock): State<Mock>, Json(asked): Json<MockCall>) -> Response {
    let Ok(arguments) = Data::parse(asked.arguments.to_string().as_bytes()) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let call = Call {
        instance: asked.instance,
        function: asked.function.clone(),
        arguments: arguments.clone(),
        key: asked.key,
        open: true,
        place: None,
        request: None,
    };
    let now = now();
    match mock.answers.next(&asked.function, &arguments, now.0) {
        None => {
            mock.note(|seen| seen.trouble = Some(RunError::UnlistedFunction(asked.function)));
            StatusCode::NOT_FOUND.into_response()
        }
        Some(Err(error)) => {
            mock.note(|seen| seen.trouble = Some(error.into()));
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
        Some(Ok(answered)) => {
            let place = mock.note(|seen| {
                seen.calls.push(call);
                seen.calls.len() - 1
            });
            let open = match &answered {
                Answered::Never => true,
                Answered::Return { .. } | Answered::Respond { .. } | Answered::Exit { .. } => false,
                Answered::Error { error, .. } => leaves_outcome_open(error),
            };
            // If a caller leaves before the answer, this future is dropped and the call stays open.
            let response = respond(answered, now).await;
            mock.note(|seen| seen.calls[place].open = open);
            response
        }
    }
}

async fn respond(answered: Answered, now: Timestamp) -> Response {
    match answered {
        Answered::Never => std::future::pending().await,
        Answered::Return { data, after } => {
            tokio::time::sleep(Duration::from_millis(after.millis_from(now))).await;
            Json(Value::from(&data)).into_response()
        }
        // Only calls that tasks describe have such answers.
        Answered::Exit { .. } => StatusCode::OK.into_response(),
        Answered::Respond { status, .. } => StatusCode::from_u16(status)
            .unwrap_or(StatusCode::OK)
            .into_response(),
        Answered::Error { error, after } => {
            tokio::time::sleep(Duration::from_millis(after.millis_from(now))).await;
            let kind = [("content-type", "application/vnd.swirl.error+json")];
            let body = serde_json::to_string(&error).unwrap_or_default();
            (StatusCode::INTERNAL_SERVER_ERROR, kind, body).into_response()
        }
    }
}

/// Answers a request of a task, or one for a token.
async fn answer_request(State(mock): State<Mock>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let answered = match axum::body::to_bytes(body, BODY_BYTES_MAX).await {
        Ok(body) => mock.to_request(&parts, body).await,
        Err(error) => Err(RunError::Failed(format!(
            "a request can't be read: {error}"
        ))),
    };
    match answered {
        Ok(response) => response,
        Err(trouble) => {
            mock.note(|seen| seen.trouble = Some(trouble));
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

impl Mock {
    async fn to_request(&self, parts: &Parts, content: Bytes) -> Result<Response, RunError> {
        let Some(url) = self.hosts.meant(parts.uri.path(), parts.uri.query()) else {
            let what = format!("{} {}", parts.method, parts.uri);
            return Err(RunError::Failed(format!("no mock answers '{what}'")));
        };
        let headers = parts.headers.iter();
        let headers = headers.map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.to_string(), value.into_owned())
        });
        let key = parts.headers.get("idempotency-key");
        let key = key.and_then(|key| key.to_str().ok()).unwrap_or_default();
        let found = self.callers.find(key).await?;
        let asked = Asked {
            method: parts.method.to_string(),
            url,
            headers: headers.collect(),
            body: content.to_vec(),
            for_token: found.is_none(),
        };
        let place = found
            .as_ref()
            .map(|(_, function)| function.task_place().to_owned());
        let function = found.as_ref().map(|(_, function)| function);
        let arguments = self.arguments(function, place.as_deref(), &asked);
        let request = seen(&asked, function, &arguments);
        let call = Call {
            instance: found
                .as_ref()
                .map_or_else(String::new, |(id, _)| id.clone()),
            function: function.map_or_else(String::new, |it| it.task().to_string()),
            arguments: match function {
                Some(_) => arguments.clone(),
                None => Data::NULL,
            },
            key: String::new(),
            open: true,
            place,
            request: Some(request),
        };
        let name = call.function.clone();
        self.note(|seen| seen.calls.push(call));
        match answering(&self.answers, function, None, &arguments, &asked, now())? {
            Answering::Never => std::future::pending().await,
            Answering::Unknown => Err(RunError::UnlistedFunction(name)),
            Answering::Error { .. } => Err(RunError::Skipped(
                "a call has an error that no answer over HTTP describes".to_owned(),
            )),
            Answering::Given { given, after_ms } => {
                tokio::time::sleep(Duration::from_millis(after_ms)).await;
                let mut response = Response::builder().status(given.status);
                for (name, value) in &given.headers {
                    response = response.header(name, value);
                }
                let response = response.body(Body::from(given.body));
                response.map_err(|error| RunError::Failed(error.to_string()))
            }
        }
    }

    /// The arguments of the call that made a request. Only the run in virtual time shows those that a request doesn't
    /// contain as they are.
    fn arguments(&self, function: Option<&Function>, place: Option<&str>, asked: &Asked) -> Data {
        let content = body(asked);
        let same = |call: &&ObservedCall| {
            let request = call.request.as_ref();
            call.place.as_deref() == place
                && request.is_some_and(|it| {
                    it.method == asked.method
                        && asked.url.as_str().starts_with(&it.uri)
                        && (it.body == content || it.body.is_null() && content.is_null())
                })
        };
        if let Some(known) = self.imagined.iter().find(same) {
            return known.arguments.clone();
        }
        match function.map(|function| &function.kind) {
            Some(FunctionKind::HttpCall) => {
                let mut arguments = Data::object();
                arguments.set("body", content);
                arguments
            }
            _ => content,
        }
    }
}

fn now() -> Timestamp {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(now.map_or(0, |now| now.as_millis() as i64))
}
