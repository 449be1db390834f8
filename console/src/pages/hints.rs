//! The stream of hints for the page of an instance.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::unfold;

use crate::console::Console;
use crate::hints::stamp;
use crate::visitor::Visitor;

/// Proxies close connections without traffic.
const ALIVE: Duration = Duration::from_secs(20);

/// The answer to a viewer for whom there is no room.
const FULL: &str = "too many pages follow instances here: this one looks for changes by itself\n";

pub async fn stream(
    visitor: Visitor,
    Path(id): Path<String>,
    State(console): State<Console>,
) -> Response {
    // There are no hints about an instance that the viewer may not see.
    if let Err(refusal) = stamp(&visitor.asking, &id).await {
        return refusal.status.into_response();
    }
    let Some(viewer) = console.hints.join(&id, visitor.asking) else {
        return (StatusCode::SERVICE_UNAVAILABLE, FULL).into_response();
    };
    let hints = unfold(viewer, async |mut viewer| {
        let seen = viewer.hint().await?;
        Some((Ok::<_, Infallible>(Event::default().data(seen)), viewer))
    });
    let alive = KeepAlive::new().interval(ALIVE);
    Sse::new(hints).keep_alive(alive).into_response()
}
