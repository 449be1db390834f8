//! The routes, and what holds for all of them: a time limit, no panic that ends more than its
//! request, nothing for pages of other origins.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use futures::FutureExt;
use serde_json::json;
use swirl_ports::Filter;
use tokio::net::TcpListener;

use super::problem::Problem;
use super::{Api, definitions, events, instances, operate, start};

/// The longest that a request may take; more than the longest `wait`.
const REQUEST_MAX: Duration = Duration::from_secs(90);
/// How long requests under way may take when the server is to stop.
const STOP_MAX: Duration = Duration::from_secs(3);

const OPENAPI: &str = include_str!("openapi.json");

/// All routes: path, and handlers by method. `openapi.json` describes the same.
fn routes() -> Vec<(&'static str, MethodRouter<Api>)> {
    vec![
        (
            "/api/v1/definitions",
            get(definitions::list).post(definitions::deploy),
        ),
        ("/api/v1/definitions/{id}", get(definitions::latest)),
        ("/api/v1/definitions/{id}/{version}", get(definitions::one)),
        ("/api/v1/events", post(events::publish)),
        ("/api/v1/instances", get(instances::list)),
        ("/api/v1/instances/{id}", get(instances::one)),
        ("/api/v1/instances/{id}/cancel", post(operate::cancel)),
        ("/api/v1/instances/{id}/history", get(instances::history)),
        ("/api/v1/instances/{id}/rerun", post(operate::rerun)),
        ("/api/v1/instances/{id}/resume", post(operate::resume)),
        ("/api/v1/instances/{id}/retry", post(operate::retry)),
        ("/api/v1/instances/{id}/skip", post(operate::skip)),
        ("/api/v1/instances/{id}/suspend", post(operate::suspend)),
        ("/api/v1/openapi.json", get(openapi)),
        ("/api/v1/workflows/{id}/instances", post(start::start)),
        ("/healthz", get(healthz)),
        ("/metrics", get(metrics)),
        ("/readyz", get(readyz)),
    ]
}

pub fn router(api: Api) -> Router {
    let mut router = Router::new();
    for (path, methods) in routes() {
        router = router.route(path, methods);
    }
    router
        .fallback(async || Problem::not_found("unknown-route", "there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "unknown-method",
                "this path has no such method; /api/v1/openapi.json says which it has",
            )
        })
        .layer(from_fn(guard))
        .with_state(api)
}

/// Serves until `stop` is done, and then what is under way for a short time.
///
/// # Errors
/// The listener failed.
pub async fn serve(
    listener: TcpListener,
    api: Api,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let (stopping, mut stopped) = tokio::sync::watch::channel(false);
    let served = axum::serve(listener, router(api)).with_graceful_shutdown(async move {
        stop.await;
        let _ = stopping.send(true);
    });
    let late = async move {
        let _ = stopped.wait_for(|stopping| *stopping).await;
        tokio::time::sleep(STOP_MAX).await;
    };
    tokio::select! {
        served = served => served,
        () = late => Ok(()),
    }
}

async fn guard(request: Request, next: Next) -> Response {
    if foreign(request.headers()) {
        return Problem::new(
            StatusCode::FORBIDDEN,
            "foreign-origin",
            "requests of web pages of another origin are refused",
        )
        .into_response();
    }
    let path = request.uri().path().to_owned();
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind();
    match tokio::time::timeout(REQUEST_MAX, answered).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            tracing::error!(path, "a handler panicked");
            let detail = "this is an error in Swirl; please report it";
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail).into_response()
        }
        Err(_) => {
            let detail = format!("this took longer than {} s", REQUEST_MAX.as_secs());
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", detail).into_response()
        }
    }
}

/// Whether a browser sends this for a page of another origin: any page that a developer looks at
/// could else start workflows on this machine.
fn foreign(headers: &HeaderMap) -> bool {
    let text = |name| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    let Some(origin) = text(header::ORIGIN) else {
        return false;
    };
    let origin = origin.split_once("://").map_or(origin, |(_, host)| host);
    text(header::HOST) != Some(origin)
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

async fn metrics(State(api): State<Api>) -> Response {
    let text = match &api.metrics {
        Some(metrics) => metrics(),
        None => Some(String::new()),
    };
    match text {
        Some(text) => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

async fn healthz() -> Response {
    Json(json!({"status": "ok"})).into_response()
}

/// Ready is who can read the store.
async fn readyz(State(api): State<Api>) -> Result<Response, Problem> {
    let filter = Filter {
        limit: 1,
        ..Filter::default()
    };
    api.service.store.list(&filter).await?;
    Ok(Json(json!({"status": "ready"})).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Methods are told from the router's own `Debug`: it is the only place where they can be seen.
    #[test]
    fn the_document_describes_the_routes() {
        let document: serde_json::Value = serde_json::from_str(OPENAPI).unwrap();
        let mut described = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for method in ["get", "put", "post", "delete", "patch"] {
                if item.get(method).is_some() {
                    described.insert(format!("{method} {path}"));
                }
            }
        }
        let mut served = BTreeSet::new();
        for (path, methods) in routes() {
            let shown = format!("{methods:?}");
            for method in ["get", "put", "post", "delete", "patch"] {
                if shown.contains(&format!(" {method}: BoxedHandler")) {
                    served.insert(format!("{method} {path}"));
                }
            }
        }
        assert!(served.len() > 15, "{served:?}");
        assert_eq!(described, served);
    }

    #[test]
    fn origins() {
        let headers = |origin: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert("host", "127.0.0.1:8080".parse().unwrap());
            if let Some(origin) = origin {
                headers.insert("origin", origin.parse().unwrap());
            }
            headers
        };
        assert!(!foreign(&headers(None)));
        assert!(!foreign(&headers(Some("http://127.0.0.1:8080"))));
        assert!(foreign(&headers(Some("https://example.org"))));
        assert!(foreign(&headers(Some("null"))));
    }
}
