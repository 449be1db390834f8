//! Mounts the web console beside the API. It is given the API's own router, and nothing else.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{Redirect, Response};
use axum::routing::get;
use swirl_console::{CameFrom, Console};

use super::answered;
use crate::server::Peer;

/// The console's pages, and the API for what isn't one of them. `secure`: browsers come over TLS.
pub(super) fn mount(api: Router, secure: bool) -> Router {
    let asked = api.clone().layer(from_fn(told));
    let console = match Console::new(asked, secure) {
        Ok(console) => console,
        Err(error) => {
            tracing::error!(error, "there is no console: no random numbers can be had");
            return api;
        }
    };
    let note = from_fn(|request, next| answered::note("/console", request, next));
    let pages = swirl_console::router(console)
        .layer(from_fn(tell))
        .layer(note);
    Router::new()
        .nest("/console/", pages)
        .route("/console", get(async || Redirect::permanent("/console/")))
        .fallback_service(api)
}

/// Where a page is asked from.
async fn tell(mut request: Request, next: Next) -> Response {
    if let Some(Peer(peer)) = request.extensions().get().copied() {
        request.extensions_mut().insert(CameFrom(peer));
    }
    next.run(request).await
}

/// Where what a page asks of the API comes from: tokens that are refused count for that address.
async fn told(mut request: Request, next: Next) -> Response {
    if let Some(CameFrom(peer)) = request.extensions().get().copied() {
        request.extensions_mut().insert(Peer(peer));
    }
    next.run(request).await
}
