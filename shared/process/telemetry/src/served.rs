//! Spans of requests that the API has answered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::Value;
use swirl_model::time::Timestamp;
use swirl_model::trace::TraceContext;

use crate::span::{Span, SpanRole};

/// A request and its response. No span contains its query or its headers.
#[derive(Debug, Clone)]
pub struct Served<'a> {
    pub method: &'static str,
    pub route: Option<&'static str>,
    pub path: &'a str,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// The host that the client addressed: a name or an address, with or without a port.
    pub host: Option<&'a str>,
    pub traceparent: Option<&'a str>,
    pub status: u16,
    pub began: SystemTime,
    pub took: Duration,
}

/// Generates the ids of requests. Unlike all other ids they are random, since no request is repeated after a crash.
pub(crate) struct Requests {
    process: String,
    count: AtomicU64,
}

impl Requests {
    pub fn of(process: &str) -> Requests {
        Requests {
            process: process.to_owned(),
            count: AtomicU64::new(0),
        }
    }

    fn draw(&self, began: SystemTime) -> (u128, u64) {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let since = began.duration_since(UNIX_EPOCH).unwrap_or_default();
        let text = format!("request {} {count} {}", self.process, since.as_nanos());
        let [a, b, c, ..] = *blake3::hash(text.as_bytes()).as_bytes().as_chunks().0 else {
            return (1, 1);
        };
        let half = |bytes: [u8; 8]| u64::from_be_bytes(bytes);
        let trace = u128::from(half(a)) << 64 | u128::from(half(b));
        (trace.max(1), half(c).max(1))
    }
}

/// The span and its trace id, if the trace is kept.
pub(crate) fn span(served: &Served<'_>, requests: &Requests, ratio: f64) -> Option<(Span, u128)> {
    let asked: Option<TraceContext> = served.traceparent.and_then(|text| text.parse().ok());
    let (drawn, id) = requests.draw(served.began);
    let trace = asked.map_or(drawn, |asked| asked.trace);
    let sampled = match asked {
        Some(asked) => asked.sampled,
        None => crate::ids::is_kept(trace, ratio),
    };
    if !sampled {
        return None;
    }
    let method = if served.method == "_OTHER" {
        "HTTP"
    } else {
        served.method
    };
    let name = match served.route {
        Some(route) => format!("{method} {route}"),
        None => method.to_owned(),
    };
    let since = served.began.duration_since(UNIX_EPOCH).unwrap_or_default();
    let from = Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    let took = u64::try_from(served.took.as_millis()).unwrap_or(u64::MAX);
    let span = Span {
        id,
        parent: asked.map(|asked| asked.span),
        name,
        kind: SpanRole::Server,
        from,
        to: from.plus_ms(took),
        // A part of the client's span, which may be shorter than a millisecond.
        precise: Some([served.began, served.began + served.took]),
        error: (served.status >= 500).then(|| served.status.to_string()),
        attributes: attributes(served),
        ..Span::default()
    };
    Some((span, trace))
}

fn attributes(served: &Served<'_>) -> Vec<(&'static str, Value)> {
    let mut attributes: Vec<(&'static str, Value)> = vec![
        ("http.request.method", served.method.into()),
        ("url.path", served.path.to_owned().into()),
        ("url.scheme", served.scheme.into()),
        ("http.response.status_code", i64::from(served.status).into()),
    ];
    attributes.extend(served.route.map(|route| ("http.route", route.into())));
    let host = served
        .host
        .and_then(|host| host.parse::<http::uri::Authority>().ok());
    if let Some(host) = host {
        attributes.push(("server.address", host.host().to_owned().into()));
        let port = host.port_u16().map(i64::from);
        attributes.extend(port.map(|port| ("server.port", port.into())));
    }
    attributes
}
