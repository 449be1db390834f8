//! Reports each request after its response, for metrics and traces.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

/// Called for each request. It must not block.
pub type Answers = Arc<dyn Fn(&Answered) + Send + Sync>;

/// A request and its response, without query, body and credentials.
#[derive(Debug, Clone)]
pub struct Answered {
    /// `_OTHER` unless it is a standard method.
    pub method: &'static str,
    /// As in the OpenAPI document; `None` if nothing matches the path.
    pub route: Option<&'static str>,
    pub path: String,
    /// The name by which the client addressed this server.
    pub host: Option<String>,
    pub traceparent: Option<String>,
    pub status: u16,
    pub began: SystemTime,
    pub took: Duration,
}

/// Receives the route, which is known only once the router has matched the request.
#[derive(Clone, Default)]
struct Slot(Arc<OnceLock<&'static str>>);

/// A request in progress.
pub(super) struct Watched {
    answered: Answered,
    slot: Slot,
    begun: Instant,
}

impl Watched {
    pub fn begin(request: &mut Request) -> Watched {
        let slot = Slot::default();
        request.extensions_mut().insert(slot.clone());
        let headers = request.headers();
        let answered = Answered {
            method: method(request.method()),
            route: None,
            path: request.uri().path().to_owned(),
            host: text(headers, header::HOST.as_str()),
            traceparent: text(headers, "traceparent"),
            status: 0,
            began: SystemTime::now(),
            took: Duration::ZERO,
        };
        Watched {
            answered,
            slot,
            begun: Instant::now(),
        }
    }

    pub fn end(self, status: StatusCode) -> Answered {
        Answered {
            route: self.slot.0.get().copied(),
            status: status.as_u16(),
            took: self.begun.elapsed(),
            ..self.answered
        }
    }
}

/// Records the route that matched a request.
pub(super) async fn note(route: &'static str, request: Request, next: Next) -> Response {
    if let Some(Slot(slot)) = request.extensions().get() {
        let _ = slot.set(route);
    }
    next.run(request).await
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    Some(value.to_owned())
}

/// Returns only known methods. A client may send any word, and each would become its own series.
fn method(method: &Method) -> &'static str {
    match method.as_str() {
        "CONNECT" => "CONNECT",
        "DELETE" => "DELETE",
        "GET" => "GET",
        "HEAD" => "HEAD",
        "OPTIONS" => "OPTIONS",
        "PATCH" => "PATCH",
        "POST" => "POST",
        "PUT" => "PUT",
        "TRACE" => "TRACE",
        _ => "_OTHER",
    }
}
