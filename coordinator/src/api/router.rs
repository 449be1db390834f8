//! The routes, and the rules for all of them: there is a time limit, a panic ends only its own request, and pages of
//! other origins are refused unless they are allowed.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, options};
use futures::FutureExt;
use percent_encoding::percent_decode_str;
use swirl_api::server::{self, Health};
use swirl_api::{Nothing, OPENAPI};

use super::answered::{self, Watched};
use super::hosts::plain_host;
use super::problem::Problem;
use super::serve::{Asked, Done, Route, by_itself, serve};
use super::shared::{self, Shared};
use super::{
    Api, audit, batches, below, changes, console, cors, counts, dead_letters, definitions,
    diagrams, events, gate, instances, listing, migrate, operate, overview, rehearsals, schedules,
    start, states, system, views,
};

/// The time limit of a request. It is longer than the longest `wait`.
const REQUEST_MAX: Duration = Duration::from_secs(90);

/// All routes with their handlers.
fn routes() -> Vec<Route> {
    vec![
        serve(&swirl_api::audit::LIST, audit::list),
        serve(&swirl_api::batches::LIST, batches::list),
        serve(&swirl_api::batches::CREATE, batches::create),
        serve(&swirl_api::batches::GET, batches::one),
        serve(&swirl_api::batches::PAUSE, batches::pause),
        serve(&swirl_api::batches::RESULTS, batches::results),
        serve(&swirl_api::batches::RESUME, batches::resume),
        serve(&swirl_api::batches::STOP, batches::stop),
        serve(&swirl_api::counts::COUNT, counts::counts),
        serve(&swirl_api::dead_letters::LIST, dead_letters::list),
        serve(&swirl_api::dead_letters::GET, dead_letters::one),
        serve(&swirl_api::dead_letters::DROP, dead_letters::remove),
        serve(&swirl_api::dead_letters::RETRY, dead_letters::retry),
        serve(&swirl_api::definitions::LIST, definitions::list),
        by_itself(&swirl_api::definitions::DEPLOY, definitions::deploy),
        serve(&swirl_api::definitions::LATEST, definitions::latest),
        serve(&swirl_api::definitions::GET, definitions::one),
        serve(&swirl_api::definitions::DELETE, definitions::delete),
        serve(&swirl_api::definitions::ACTIVATE, definitions::activate),
        by_itself(&swirl_api::diagrams::DEFINITION, diagrams::definition),
        serve(&swirl_api::definitions::STATES, states::states),
        serve(&swirl_api::events::RECENT, events::recent),
        by_itself(&swirl_api::events::PUBLISH, events::publish),
        by_itself(&swirl_api::events::EXPLAIN, events::explain),
        serve(&swirl_api::instance::LIST, listing::list),
        serve(&swirl_api::instance::GET, instances::one).shared(),
        serve(&swirl_api::actions::REMOVE, operate::remove),
        serve(&swirl_api::actions::CANCEL, operate::cancel),
        serve(&swirl_api::changes::COMPARE, changes::of_instance).shared(),
        by_itself(&swirl_api::diagrams::INSTANCE, diagrams::instance).shared(),
        serve(&swirl_api::instance::HISTORY, instances::history).shared(),
        serve(&swirl_api::actions::MIGRATE, migrate::migrate),
        serve(&swirl_api::actions::RERUN, operate::rerun),
        serve(&swirl_api::actions::RESUME, operate::resume),
        serve(&swirl_api::actions::RETRY, operate::retry),
        serve(&swirl_api::actions::SKIP, operate::skip),
        serve(&swirl_api::actions::SUSPEND, operate::suspend),
        serve(&swirl_api::overview::ME, overview::me),
        by_itself(&server::OPENAPI, openapi),
        serve(&swirl_api::overview::OVERVIEW, overview::overview),
        serve(&swirl_api::rehearsals::REHEARSE, rehearsals::rehearse),
        serve(&swirl_api::schedules::LIST, schedules::list),
        serve(&swirl_api::views::LIST, views::list),
        serve(&swirl_api::views::SAVE, views::save),
        serve(&swirl_api::views::REMOVE, views::remove),
        serve(&swirl_api::system::SYSTEM, system::system),
        serve(&swirl_api::system::CHECKS, system::checks),
        serve(&swirl_api::start::START, start::start),
        serve(&swirl_api::schedules::BACKFILL, schedules::backfill),
        serve(&swirl_api::schedules::FIRE, schedules::fire),
        serve(&swirl_api::schedules::PAUSE, schedules::pause),
        serve(&swirl_api::schedules::RESUME, schedules::resume),
    ]
    .into_iter()
    .chain(health())
    .collect()
}

/// The routes of health and metrics.
fn health() -> [Route; 3] {
    [
        serve(&server::LIVE, healthz),
        by_itself(&server::METRICS, metrics),
        serve(&server::READY, readyz),
    ]
}

/// Whether this is the path of a route of health and metrics.
pub fn is_health(api: &Api, path: &str) -> bool {
    let path = path.strip_prefix(&*api.base_path).unwrap_or(path);
    [server::LIVE.path, server::METRICS.path, server::READY.path].contains(&path)
}

/// Only health and metrics.
pub fn health_router(api: Api) -> Router {
    let add = |router: Router<Api>, one: Route| router.route(one.rules.path, one.handler);
    health()
        .into_iter()
        .fold(Router::new(), add)
        .with_state(api)
}

/// Routes below `/api/v1` are also available below `/api/v1/namespaces/NAME`. The console is at `/console`. `secure`:
/// the router is served over TLS.
pub fn router(api: Api, secure: bool) -> Router {
    let noted = |path, handler: MethodRouter<Api>| {
        handler.route_layer(from_fn(move |request, next| {
            answered::note(path, request, next)
        }))
    };
    // Everybody may ask whether deliveries are welcome.
    let events = swirl_api::events::PUBLISH.path;
    let mut router = Router::new().route(events, noted(events, options(events::handshake)));
    let shared = Arc::<Shared>::default();
    for Route {
        rules,
        mut handler,
        shared: is_shared,
    } in routes()
    {
        if is_shared {
            handler = handler.route_layer(from_fn_with_state(shared.clone(), shared::share));
        }
        let gate = from_fn_with_state((api.clone(), rules), gate::authorize);
        router = router.route(rules.path, noted(rules.path, handler.route_layer(gate)));
    }
    let router = router
        .fallback(async || Problem::not_found("unknown-route", "there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "unknown-method",
                "this path has no such method; /api/v1/openapi.json says which it has",
            )
        })
        .with_state(api.clone());
    // These layers are outside the routes, since they change the path before a route is matched.
    let router = Router::new()
        .fallback_service(router)
        .layer(from_fn(gate::namespace));
    let base = api.base_path.clone();
    let router = console::mount(router, &api, secure).layer(from_fn_with_state(api, guard));
    below::mount(router, &base)
}

async fn guard(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let watched = Watched::begin(&mut request);
    let response = guarded(&api, request, next).await;
    if let Some(observe) = &api.answers {
        observe(&watched.end(response.status()));
    }
    response
}

async fn guarded(api: &Api, request: Request, next: Next) -> Response {
    let hosts = api.hosts.as_deref();
    let origin = cors::allowed(request.headers(), &api.origins);
    let is_foreign =
        origin.is_none() && foreign(request.headers()) && !console::is_return(&request);
    if is_foreign || hosts.is_some_and(|hosts| !is_named(&request, hosts)) {
        return Problem::new(
            StatusCode::FORBIDDEN,
            "foreign-origin",
            "requests of web pages of another origin are refused unless coordinator.cors_origins (or \
             'swirl dev --cors-origin') names it, and those for a host that coordinator.allowed_hosts (or \
             'swirl dev --api-host') does not name",
        )
        .into_response();
    }
    if origin.is_some()
        && let Some(mut response) = cors::preflight(request.method(), request.headers())
    {
        cors::mark(response.headers_mut(), origin);
        return response;
    }
    let path = request.uri().path().to_owned();
    let is_text = percent_decode_str(&path).decode_utf8().is_ok();
    let answer = async {
        match is_text {
            true => next.run(request).await,
            false => {
                let detail = "the path is not UTF-8 when its percent-encoded bytes are decoded";
                Problem::bad_request("invalid-path", detail).into_response()
            }
        }
    };
    let answered = AssertUnwindSafe(answer).catch_unwind();
    let mut response = match tokio::time::timeout(REQUEST_MAX, answered).await {
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
    };
    let headers = response.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if !api.origins.is_empty() {
        cors::mark(headers, origin);
    }
    // A closed connection makes the client send its next request to another server when this one stops. It is also
    // closed after a body whose rest isn't read: one that is too large, or too slow.
    let is_unread = matches!(
        response.status(),
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT
    );
    if api.is_stopping() || is_unread {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    response
}

/// Whether a browser sends this for a page of another origin. Otherwise any page that a developer visits could start
/// workflows on this machine.
fn foreign(headers: &HeaderMap) -> bool {
    let text = |name| {
        headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    // Browsers omit the origin from some requests, but always send this header, and pages cannot set it.
    if text(HeaderName::from_static("sec-fetch-site")) == Some("cross-site") {
        return true;
    }
    let Some(origin) = text(header::ORIGIN) else {
        return false;
    };
    let origin = origin.split_once("://").map_or(origin, |(_, host)| host);
    text(header::HOST) != Some(origin)
}

/// Whether a request is addressed to `localhost`, to an address or to one of these names.
fn is_named(request: &Request, hosts: &[String]) -> bool {
    let header = request.headers().get(header::HOST);
    let header = header.map(|host| host.to_str().unwrap_or_default());
    let Some(host) = header.or(request
        .uri()
        .authority()
        .map(|authority| authority.as_str()))
    else {
        // Browsers always send this header.
        return true;
    };
    let Ok(authority) = host.parse::<Authority>() else {
        return false;
    };
    let name = plain_host(authority.host());
    if hosts.contains(&name) {
        return true;
    }
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || name.ends_with(".localhost") || address.parse::<IpAddr>().is_ok()
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

async fn metrics(State(api): State<Api>) -> Result<Response, Problem> {
    let text = match &api.metrics {
        Some(metrics) => metrics().ok_or_else(|| {
            let detail = "the metrics cannot be written now";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-metrics", detail)
        })?,
        None => String::new(),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

async fn healthz(api: Api, _: Asked<Nothing, Nothing, Nothing>) -> Result<Done<Health>, Problem> {
    let health = api.health.as_ref();
    let reason = health.and_then(|health| health.beyond_recovery());
    let (status, word) = match reason {
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, "beyond recovery"),
        None => (StatusCode::OK, "ok"),
    };
    let answer = Health {
        status: word.to_owned(),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        reason,
        limited: Vec::new(),
    };
    Ok(Done::from(answer).with_status(status))
}

async fn look(api: &Api) -> swirl_ports::Result<Vec<String>> {
    let filter = swirl_ports::Filter {
        limit: 1,
        ..swirl_ports::Filter::default()
    };
    api.queries.list(&filter).await?;
    match &api.health {
        Some(health) => health.limited().await,
        None => Ok(Vec::new()),
    }
}

/// Reports whether the server can read and change the store, and isn't stopping.
async fn readyz(api: Api, _: Asked<Nothing, Nothing, Nothing>) -> Result<Health, Problem> {
    if api.is_stopping() {
        return Err(Problem::stopping());
    }
    // The server is still ready, since no other coordinator could do more.
    let looking = api.clone();
    let look = || async move { look(&looking).await };
    let limited = api.readiness.answer(look).await?;
    Ok(Health {
        status: "ready".to_owned(),
        limited,
        ..Health::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

    #[test]
    fn the_document_describes_the_routes_and_the_roles_that_they_need() {
        let document: serde_json::Value = serde_json::from_str(OPENAPI).unwrap();
        let mut described = BTreeMap::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for method in METHODS {
                if let Some(operation) = item.get(method) {
                    let security = operation["security"].as_array().unwrap();
                    let role = security
                        .first()
                        .map(|one| one["token"][0].as_str().unwrap());
                    described.insert(format!("{method} {path}"), role);
                }
            }
        }
        let served = routes().into_iter().map(|Route { rules, .. }| {
            let method = rules.method.as_str().to_lowercase();
            let role = rules.need.role().map(|role| role.as_str());
            (format!("{method} {}", rules.path), role)
        });
        assert_eq!(described, served.collect());
    }

    #[test]
    fn hosts() {
        let named = |host: &str, hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|host| plain_host(host)).collect();
            let request = Request::builder().header("host", host);
            is_named(&request.body(axum::body::Body::empty()).unwrap(), &hosts)
        };
        for host in ["localhost:8080", "127.0.0.1", "[::1]:80", "a.localhost"] {
            assert!(named(host, &[]), "{host}");
        }
        for host in [
            "example.org",
            "localhost.example.org",
            "a b",
            "127.0.0.1.nip.io",
        ] {
            assert!(!named(host, &["swirl.example.org"]), "{host}");
        }
        assert!(named("Swirl.Example.org.:8080", &["swirl.example.ORG"]));
        assert!(!named("swirl.example.org", &[]));
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
        for (site, expected) in [
            ("cross-site", true),
            ("same-origin", false),
            ("none", false),
        ] {
            let mut headers = headers(None);
            headers.insert("sec-fetch-site", site.parse().unwrap());
            assert_eq!(foreign(&headers), expected, "{site}");
        }
    }
}
