//! Mounts the web console next to the API. The console gets only the API's router.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{Redirect, Response};
use axum::routing::get;
use swirl_console::{CameFrom, Console};

use super::answered;
use crate::server::Peer;

/// The console's pages, and the API for all other paths. `secure`: browsers connect over TLS.
pub(super) fn mount(
    api: Router,
    secure: bool,
    is_stopping: Arc<dyn Fn() -> bool + Send + Sync>,
) -> Router {
    let asked = api.clone().layer(from_fn(restore_address));
    let console = match Console::new(asked, secure, is_stopping) {
        Ok(console) => console,
        Err(error) => {
            tracing::error!(error, "there is no console: random numbers are unavailable");
            return api;
        }
    };
    let note = from_fn(|request, next| answered::note("/console", request, next));
    let pages = swirl_console::router(console)
        .layer(from_fn(pass_address))
        .layer(note);
    Router::new()
        .nest("/console/", pages)
        .route("/console", get(async || Redirect::permanent("/console/")))
        .fallback_service(api)
}

/// Passes on the address that a page is requested from.
async fn pass_address(mut request: Request, next: Next) -> Response {
    if let Some(Peer(peer)) = request.extensions().get().copied() {
        request.extensions_mut().insert(CameFrom(peer));
    }
    next.run(request).await
}

/// Restores the visitor's address for the API, so that refused tokens count for that address.
async fn restore_address(mut request: Request, next: Next) -> Response {
    if let Some(CameFrom(peer)) = request.extensions().get().copied() {
        request.extensions_mut().insert(Peer(peer));
    }
    next.run(request).await
}
