//! Responses that the pages of one instance share. After a hint about a change (`swirl_console::Follows`) all pages
//! load the same, so the store is read once. Each request is authorized before it gets here.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use swirl_console::Follows;
use tokio::sync::OnceCell;

/// How many responses are kept, and for how long.
const ANSWERS_MAX: usize = 64;
const KEPT: Duration = Duration::from_secs(10);
/// Responses with more bytes are not shared.
const ANSWER_BYTES_MAX: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Shared(Mutex<VecDeque<Kept>>);

struct Kept {
    since: Instant,
    uri: String,
    follows: Arc<str>,
    answer: Answer,
}

type Answer = Arc<OnceCell<SharedResponse>>;
type SharedResponse = (StatusCode, HeaderMap, Bytes);

impl Shared {
    fn answer(&self, uri: String, follows: Arc<str>) -> Answer {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        all.retain(|kept| now.duration_since(kept.since) < KEPT);
        let found = all
            .iter()
            .find(|kept| kept.follows == follows && kept.uri == uri);
        if let Some(found) = found {
            return found.answer.clone();
        }
        if all.len() >= ANSWERS_MAX {
            all.pop_front();
        }
        let answer = Answer::default();
        all.push_back(Kept {
            since: now,
            uri,
            follows,
            answer: answer.clone(),
        });
        answer
    }
}

/// Answers all requests that follow the same hint with the response to the first one.
pub(super) async fn share(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let follows: Option<Follows> = request.extensions().get().cloned();
    let Some(Follows(follows)) = follows.filter(|_| request.method() == Method::GET) else {
        return next.run(request).await;
    };
    let answer = shared.answer(request.uri().to_string(), follows);
    let first = answer.get_or_try_init(async || buffered(next.run(request).await).await);
    match first.await {
        Ok((status, headers, body)) => (*status, headers.clone(), body.clone()).into_response(),
        Err(own) => own,
    }
}

/// Reads a whole response, so that it can be sent several times. If that isn't possible, returns it as an error, for
/// one client.
async fn buffered(response: Response) -> Result<SharedResponse, Response> {
    let (parts, body) = response.into_parts();
    let known = axum::body::HttpBody::size_hint(&body).exact();
    let is_away = parts.status == StatusCode::SERVICE_UNAVAILABLE;
    if is_away || known.is_none_or(|bytes| bytes > ANSWER_BYTES_MAX as u64) {
        return Err(Response::from_parts(parts, body));
    }
    match to_bytes(body, ANSWER_BYTES_MAX).await {
        Ok(bytes) => Ok((parts.status, parts.headers, bytes)),
        Err(_) => Err(Response::from_parts(parts, Body::empty())),
    }
}
