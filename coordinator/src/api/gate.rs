//! Checks every request before its handler: the namespace in its path, and the permission of its sender.

use std::panic::resume_unwind;

use axum::extract::{Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use swirl_api::Route;
use tracing::Instrument;

use super::Api;
use super::console::FromConsole;
use super::noted;
use super::problem::{Problem, cut};
use crate::access::{Denied, Need, Sender};
use crate::server::Peer;

const PREFIX: &str = "/api/v1/namespaces/";

/// The namespace in a path.
#[derive(Clone)]
struct RequestedNamespace(String);

/// Removes the namespace from the path, so that the remaining routes are those of this server's namespace.
pub(super) async fn namespace(mut request: Request, next: Next) -> Response {
    if let Some((namespace, uri)) = named(request.uri()) {
        request
            .extensions_mut()
            .insert(RequestedNamespace(namespace));
        *request.uri_mut() = uri;
    }
    next.run(request).await
}

fn named(uri: &Uri) -> Option<(String, Uri)> {
    let rest = uri.path().strip_prefix(PREFIX)?;
    let (namespace, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let query = uri.query().map(|query| format!("?{query}"));
    let path = format!("/api/v1/{rest}{}", query.unwrap_or_default());
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    Some((namespace.to_owned(), Uri::from_parts(parts).ok()?))
}

/// Lets the request pass if its sender has the permission. The name of the namespace is revealed only to authenticated
/// senders.
pub(super) async fn authorize(
    State((api, route)): State<(Api, &'static Route)>,
    mut request: Request,
    next: Next,
) -> Response {
    let authorization = request.headers().get(header::AUTHORIZATION);
    let authorization = authorization.map(HeaderValue::as_bytes);
    let extensions = request.extensions();
    let sender = Sender {
        peer: extensions.get::<Peer>().map(|Peer(peer)| *peer),
        is_console: extensions.get::<FromConsole>().is_some(),
    };
    let caller = api.access.authorize(authorization, route.need, sender);
    let caller = match caller.await {
        Ok(caller) => caller,
        Err(denied) => return refuse(&denied, &request),
    };
    let served = api.access.namespace();
    let asked = request.extensions().get::<RequestedNamespace>();
    if let Some(RequestedNamespace(asked)) =
        asked.filter(|RequestedNamespace(asked)| asked != served)
        && route.need != Need::Nothing
    {
        let detail = format!(
            "there is no namespace '{}' here: this server serves '{served}'",
            cut(asked)
        );
        return Problem::not_found("unknown-namespace", detail)
            .with(|more| more.namespace = Some(served.to_owned()))
            .into_response();
    }
    if !api.access.is_open() {
        request.extensions_mut().insert(caller.clone());
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let by = caller.name.clone();
    if route.audit.is_some() {
        // Before the action: if the process dies, its entry in the audit log may be missing.
        tracing::info!(by, %method, path, "a change begins");
    }
    let response = match &route.audit {
        None => next.run(request).await,
        Some(audit) => {
            let run = async move {
                let named = (!api.access.is_open()).then_some(&*caller.name);
                let mut response = next.run(request).await;
                noted::write(&api, audit, named, &mut response).await;
                response
            };
            match route.given_up {
                true => run.await,
                false => whole(run).await,
            }
        }
    };
    let status = response.status().as_u16();
    if route.audit.is_some() {
        tracing::info!(by, %method, path, status, "a change was requested");
    } else if route.need == Need::Start {
        tracing::debug!(by, %method, path, status, "a change was requested");
    }
    response
}

/// An action that has begun leaves its entry even if the client doesn't wait for the answer.
async fn whole(run: impl Future<Output = Response> + Send + 'static) -> Response {
    match tokio::spawn(run.in_current_span()).await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Problem::stopping().into_response(),
        },
    }
}

fn refuse(denied: &Denied, request: &Request) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    let detail = denied.to_string();
    let (problem, challenge) = match denied {
        Denied::Missing => (unauthenticated(detail), Some("Bearer realm=\"swirl\"")),
        Denied::Invalid(_) => {
            tracing::debug!(%method, path, detail, "a request is refused");
            let challenge = "Bearer realm=\"swirl\", error=\"invalid_token\"";
            (unauthenticated(detail), Some(challenge))
        }
        Denied::TooMany(wait) => {
            tracing::debug!(%method, path, "an address sends too many tokens that are refused");
            let status = StatusCode::TOO_MANY_REQUESTS;
            let problem = Problem::new(status, "too-many-refusals", detail);
            let mut response = problem.into_response();
            let after = HeaderValue::from(wait.as_secs());
            response.headers_mut().insert(header::RETRY_AFTER, after);
            return response;
        }
        Denied::Role { .. } | Denied::Namespace { .. } => {
            tracing::info!(%method, path, detail, "a request is refused");
            let mut problem = Problem::new(StatusCode::FORBIDDEN, "forbidden", detail);
            if let Denied::Role { role, .. } = denied {
                problem = problem.with(|more| more.role = Some(role.as_str().to_owned()));
            }
            let challenge = "Bearer realm=\"swirl\", error=\"insufficient_scope\"";
            (problem, Some(challenge))
        }
        Denied::Provider(reason) => {
            // The reason isn't in the response, since it may contain internal addresses.
            tracing::warn!(%method, path, reason, "a token cannot be checked");
            let status = StatusCode::SERVICE_UNAVAILABLE;
            (Problem::new(status, "provider-unavailable", detail), None)
        }
    };
    let mut response = problem.into_response();
    if let Some(challenge) = challenge {
        let challenge = HeaderValue::from_static(challenge);
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

fn unauthenticated(detail: String) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "unauthenticated", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_is_removed_from_the_path() {
        let named = |uri: &str| {
            let uri: Uri = uri.parse().unwrap();
            super::named(&uri).map(|(namespace, uri)| (namespace, uri.to_string()))
        };
        let found = |namespace: &str, uri: &str| Some((namespace.to_owned(), uri.to_owned()));
        assert_eq!(
            named("/api/v1/namespaces/shop/instances?limit=1"),
            found("shop", "/api/v1/instances?limit=1")
        );
        assert_eq!(
            named("http://h:1/api/v1/namespaces/a/events"),
            found("a", "http://h:1/api/v1/events")
        );
        assert_eq!(named("/api/v1/namespaces/shop"), found("shop", "/api/v1/"));
        assert_eq!(named("/api/v1/namespaces/"), found("", "/api/v1/"));
        assert_eq!(named("/api/v1/instances"), None);
        assert_eq!(named("/healthz"), None);
    }
}
