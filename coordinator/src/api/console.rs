//! Mounts the web console next to the API. The console gets only the API's router.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{Method, header};
use axum::middleware::{Next, from_fn};
use axum::response::{Redirect, Response};
use axum::routing::get;
use swirl_console::{CameFrom, Console};

use super::{Api, answered};
use crate::server::Peer;

/// The pages to which the provider sends browsers back, after signing in and out.
const RETURNS: [&str; 2] = ["/console/sign-in", "/console/sign-in/callback"];

/// An extension of requests that the console sends, which no client outside of the process can set.
#[derive(Clone)]
pub(super) struct FromConsole;

/// Whether a browser loads one of these pages as a whole, which changes nothing: it comes from another site, as
/// opposed to all other requests to us.
pub(super) fn is_return(request: &Request) -> bool {
    let headers = request.headers();
    let has = |name, value| headers.get(name).is_some_and(|found| found == value);
    request.method() == Method::GET
        && RETURNS.contains(&request.uri().path())
        && has("sec-fetch-mode", "navigate")
        && has("sec-fetch-dest", "document")
        && !headers.contains_key(header::ORIGIN)
}

/// The console's pages, and the routes of the API for all other paths. `secure`: browsers connect over TLS.
pub(super) fn mount(routes: Router, api: &Api, secure: bool) -> Router {
    let asked = routes.clone().layer(from_fn(restore_address));
    let stopping = api.clone();
    let is_stopping = Arc::new(move || stopping.is_stopping());
    let console = match Console::new(asked, secure, api.viewers_max, is_stopping) {
        Ok(console) => console
            .with_provider(api.access.provider())
            .below(api.base_path.clone()),
        Err(error) => {
            tracing::error!(error, "there is no console: random numbers are unavailable");
            return routes;
        }
    };
    let note = from_fn(|request, next| answered::note("/console", request, next));
    let pages = swirl_console::router(console)
        .layer(from_fn(pass_address))
        .layer(note);
    Router::new()
        .nest("/console/", pages)
        .route("/console", get(async || Redirect::permanent("/console/")))
        .fallback_service(routes)
}

/// Passes on the address that a page is requested from.
async fn pass_address(mut request: Request, next: Next) -> Response {
    if let Some(Peer(peer)) = request.extensions().get().copied() {
        request.extensions_mut().insert(CameFrom(peer));
    }
    next.run(request).await
}

/// Restores the visitor's address for the API, so that refused tokens count for that address, and marks the request.
async fn restore_address(mut request: Request, next: Next) -> Response {
    if let Some(CameFrom(peer)) = request.extensions().get().copied() {
        request.extensions_mut().insert(Peer(peer));
    }
    request.extensions_mut().insert(FromConsole);
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn only_whole_pages_of_the_sign_in_are_returned_to() {
        let returns = |method: &str, path: &str, headers: &[(&str, &str)]| {
            let mut request = Request::builder().method(method).uri(path);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            is_return(&request.body(Body::empty()).unwrap())
        };
        let mode = ("sec-fetch-mode", "navigate");
        let whole = [mode, ("sec-fetch-dest", "document")];
        assert!(returns("GET", "/console/sign-in", &whole));
        let path = "/console/sign-in/callback?code=1";
        assert!(returns("GET", path, &whole));
        for (method, path, headers) in [
            ("POST", path, &whole[..]),
            ("GET", "/console/", &whole),
            ("GET", "/console/sign-in/with", &whole),
            ("GET", path, &[]),
            ("GET", path, &[mode]),
            ("GET", path, &[mode, ("sec-fetch-dest", "iframe")]),
            ("GET", path, &[mode, whole[1], ("origin", "https://a.test")]),
        ] {
            assert!(!returns(method, path, headers), "{method} {path}");
        }
    }
}
