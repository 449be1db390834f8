//! Messages over HTTP: server-sent events.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures::StreamExt as _;
use futures::stream;
use serde_json::json;
use swirl_model::data;
use tokio::net::TcpListener;

use crate::services::asyncapi::code;
use crate::services::listen::{document, function};
use crate::services::subscribe::{Rule, all_lumens};

/// The ids from which streams were requested.
type Asked = Arc<Mutex<Vec<Option<String>>>>;

/// `/light/7` gives two readings, then ends; a stream after an event gives two more, and stays. `/plain/7` gives no
/// events.
async fn serve(asked: Asked) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().route("/{kind}/7", get(readings));
    let router = router.with_state(asked);
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

async fn readings(
    State(asked): State<Asked>,
    Path(kind): Path<String>,
    headers: HeaderMap,
) -> Response {
    assert_eq!(headers["accept"], "text/event-stream");
    match &*kind {
        "plain" => return "{}".into_response(),
        "closed" => return StatusCode::FORBIDDEN.into_response(),
        _ => {}
    }
    let after = headers.get("last-event-id");
    let after = after.map(|id| id.to_str().unwrap().to_owned());
    asked.lock().unwrap().push(after.clone());
    let first = match after.as_deref() {
        Some(id) => id.parse::<u32>().unwrap() + 1,
        None => 2,
    };
    let event = |n: u32| {
        Event::default()
            .id(n.to_string())
            .data(json!({"lumens": n}).to_string())
    };
    let events = stream::iter([event(first), event(first + 1)]).map(Ok::<_, Infallible>);
    match after {
        None => Sse::new(events).into_response(),
        Some(_) => Sse::new(events.chain(stream::pending())).into_response(),
    }
}

fn of(port: u16, address: &str) -> String {
    document(&format!("http://127.0.0.1:{port}"), address, json!({}))
}

#[tokio::test]
async fn a_message_is_a_server_sent_event() {
    let port = serve(Asked::default()).await;
    let hear = function(&of(port, "light/{id}"), "hear");
    assert_eq!(hear.call(data!({})).await.unwrap(), data!({"lumens": 2}));
}

#[tokio::test]
async fn a_stream_that_ends_goes_on_behind_its_last_event() {
    let asked = Asked::default();
    let port = serve(asked.clone()).await;
    let hear = function(&of(port, "light/{id}"), "hear");
    let taken = hear.take(Rule::of(4)).await.unwrap();
    assert_eq!(all_lumens(&taken), [2, 3, 4, 5]);
    let asked = asked.lock().unwrap().clone();
    assert_eq!(asked, [None, Some("3".to_owned())]);
}

#[tokio::test]
async fn other_answers_are_errors() {
    let port = serve(Asked::default()).await;
    for (address, expected, reason) in [
        (
            "plain/{id}",
            "response",
            "text/plain; charset=utf-8; a message over HTTP is a server-sent event",
        ),
        (
            "closed/{id}",
            "403",
            "the service answered with 403 Forbidden",
        ),
        ("other", "404", "the service answered with 404 Not Found"),
    ] {
        let hear = function(&of(port, address), "hear");
        let (found, message) = code(hear.call(data!({})).await.unwrap_err());
        assert_eq!(found, expected, "{message}");
        assert!(message.contains(reason), "{message}");
    }
}
