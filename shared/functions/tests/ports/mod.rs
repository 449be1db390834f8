//! Functions behind their port: fetched documents, and calls of a workflow's functions.

// Clippy's exceptions for tests don't cover helper functions of integration tests.

mod breaker;
mod calls;
mod examples;
mod fetch;

use axum::Router;
use tokio::net::TcpListener;

/// Serves a router, and returns its base URL.
async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    base
}
