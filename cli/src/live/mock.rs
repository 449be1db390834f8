//! The connector that answers the functions of a scenario.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::Value;
use swirl_engine::leaves_outcome_open;
use swirl_model::Data;
use swirl_model::time::Timestamp;
use swirl_scenario::RunError;
use swirl_scenario::answer::{Answered, Answers};
use tokio::net::TcpListener;

/// The type of the functions in the deployed documents.
pub const CONNECTOR: &str = "swirl-test";

/// A received call.
#[derive(Debug, Clone)]
pub struct Call {
    pub instance: String,
    pub function: String,
    pub arguments: Data,
    pub key: String,
    /// It got no answer, so another call with the same key is a retry (docs/language.md#decision-95).
    pub open: bool,
}

#[derive(Clone)]
pub struct Mock {
    answers: Arc<Answers>,
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
    pub fn new(answers: Answers) -> Mock {
        Mock {
            answers: Arc::new(answers),
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
                Answered::Return { .. } => false,
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
        Answered::Error { error, after } => {
            tokio::time::sleep(Duration::from_millis(after.millis_from(now))).await;
            let kind = [("content-type", "application/vnd.swirl.error+json")];
            let body = serde_json::to_string(&error).unwrap_or_default();
            (StatusCode::INTERNAL_SERVER_ERROR, kind, body).into_response()
        }
    }
}

fn now() -> Timestamp {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp(now.map_or(0, |now| now.as_millis() as i64))
}
