//! Any requests to the API, one after another on the same store: each is answered, none with an
//! internal error, and every error says what to do.

#![no_main]

use std::sync::{Arc, LazyLock};

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use swirl_api::Finding;
use swirl_coordinator::access::Access;
use swirl_coordinator::api::{Api, ReadDocument, Reader, Source, router};
use swirl_embedded::{Embedded, MemoryQueue, SystemClock};
use swirl_runtime::Registry;
use swirl_service::Deployment;
use swirl_spec::resource::MapResources;
use swirl_spec::{Options, read};
use swirl_assembly::System;
use tower::ServiceExt;

const REQUESTS_MAX: usize = 8;
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A workflow that allows all operations.
const DOCUMENT: &str = r#"{"id": "w", "version": "1.0.0", "specVersion": "0.8", "start": "A",
    "events": [{"name": "e", "source": "/s", "type": "t", "correlation": [
        {"contextAttributeName": "orderid", "contextAttributeValue": "${ .id }"}]}],
    "states": [{"name": "A", "type": "event", "onEvents": [{"eventRefs": ["e"]}], "end": true}]}"#;

struct Documents;

impl Reader for Documents {
    fn read(&self, source: &Source) -> Result<ReadDocument, Vec<Finding>> {
        let mut options = Options::default();
        options.limits.bytes_max = 1 << 14;
        options.limits.nodes_max = 5_000;
        options.limits.expanded_bytes_max = 1 << 20;
        let mut resources = MapResources::default();
        for (uri, content) in &source.resources {
            resources.insert(uri.clone(), content.clone());
        }
        let reading = read(source.document.as_bytes(), &resources, &options);
        let workflow = reading
            .workflow
            .ok_or_else(|| vec![Finding::error("unreadable", "it cannot be read")])?;
        Ok(Deployment {
            name: source.name.clone(),
            document: source.document.clone(),
            resources: source.resources.clone(),
            workflow,
        }
        .into())
    }
}

static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_time().build().expect("a runtime")
});

fn api() -> Api {
    let store = Arc::new(Embedded::memory());
    let lower = Box::new(|record: &swirl_ports::DefinitionRecord| {
        let source = Source {
            name: record.name.clone(),
            document: record.document.clone(),
            resources: record.resources.clone(),
            ..Source::default()
        };
        let read = Documents.read(&source);
        read.map(|read| read.deployment.workflow)
            .map_err(|_| "it cannot be read".to_owned())
    });
    let queue = Arc::new(MemoryQueue::default());
    let registry = Arc::new(Registry::new(store.clone(), lower));
    let system = System::new(
        store.clone(),
        store.clone(),
        queue,
        Arc::new(SystemClock),
        registry,
    );
    Api::new(
        system.service(),
        store,
        Arc::new(Documents),
        Access::open("default"),
    )
}

/// `METHOD /path`, headers, an empty line, the body; requests are separated by a line `---`.
fn request(text: &[u8]) -> Option<Request<Body>> {
    let at = text.windows(2).position(|two| two == b"\n\n");
    let (head, body) = match at {
        Some(at) => (&text[..at], &text[at + 2..]),
        None => (text, &b""[..]),
    };
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.lines();
    let (method, path) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).ok()?)
        .uri(path);
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        // A wait would only slow the fuzzer down.
        if name.eq_ignore_ascii_case("prefer") {
            continue;
        }
        request = request.header(name, value);
    }
    request.body(Body::from(body.to_vec())).ok()
}

fn parts(input: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = input;
    while parts.len() < REQUESTS_MAX {
        match rest.windows(5).position(|five| five == b"\n---\n") {
            Some(at) => {
                parts.push(&rest[..at]);
                rest = &rest[at + 5..];
            }
            None => {
                parts.push(rest);
                break;
            }
        }
    }
    parts
}

fuzz_target!(|input: &[u8]| {
    let requests: Vec<Request<Body>> = parts(input).into_iter().filter_map(request).collect();
    if requests.is_empty() || input.windows(5).any(|five| five == b"wait=") {
        return;
    }
    RUNTIME.block_on(async {
        let router = router(api(), false);
        let deploy = Request::post("/api/v1/definitions")
            .header("content-type", "application/json")
            .body(Body::from(DOCUMENT))
            .expect("a request");
        let mut all = vec![deploy];
        all.extend(requests);
        for request in all {
            let shown = format!("{} {}", request.method(), request.uri());
            let has_body = request.method() != Method::HEAD;
            let Ok(response) = router.clone().oneshot(request).await;
            let status = response.status();
            // A page gives its reason in words for people.
            let content = response.headers().get("content-type");
            let is_page =
                content.is_some_and(|content| content.as_bytes().starts_with(b"text/html"));
            let body = to_bytes(response.into_body(), ANSWER_BYTES_MAX).await;
            let body = body.expect("an answer has an end");
            assert_ne!(status.as_u16(), 500, "{shown}: {body:?}");
            if has_body && !is_page && (status.is_client_error() || status.is_server_error()) {
                let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
                let detail = problem["detail"].as_str().unwrap_or_default();
                assert!(
                    !detail.is_empty(),
                    "{shown}: {status} without a reason: {body:?}"
                );
            }
        }
    });
});
