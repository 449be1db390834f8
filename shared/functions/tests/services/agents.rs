//! Agents (A2A) and servers of the Model Context Protocol, as DSL 1.0 calls them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response};
use futures::StreamExt as _;
use serde_json::{Value, json};
use swirl_functions::http::HttpConfig;
use swirl_model::workflow::FunctionKind;
use swirl_model::{Data, WorkflowError, data};
use tokio::net::TcpListener;

use crate::services::fixture::{Callable, Server, bearer, config, json};

fn kind(error: &WorkflowError) -> (String, Option<u16>) {
    let problem = error.problem.as_ref().unwrap();
    let kind = problem.kind.rsplit('/').next().unwrap_or_default();
    (kind.to_owned(), error.status)
}

type Requests = Arc<Mutex<Vec<(String, HeaderMap, Value)>>>;

/// A server with sessions, whose answer to a call is a stream that stays open.
async fn mcp() -> (String, Requests) {
    let seen = Requests::default();
    let router = Router::new().fallback(answer).with_state(seen.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (base, seen)
}

async fn answer(
    State(seen): State<Requests>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    seen.lock()
        .unwrap()
        .push((method.to_string(), headers.clone(), body.clone()));
    let made = Response::builder();
    let id = &body["id"];
    match body["method"].as_str() {
        Some("initialize") => {
            let result = json!({"protocolVersion": "2025-03-26", "capabilities": {}});
            let result = json!({"jsonrpc": "2.0", "id": id, "result": result});
            made.header("content-type", "application/json")
                .header("Mcp-Session-Id", "s-1")
                .body(Body::from(result.to_string()))
        }
        Some("tools/list") => {
            const NOTE: &[u8] = b"data: {\"jsonrpc\": \"2.0\", \"method\": \"n\", \"params\": {}}\n\n";
            let notes = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(NOTE));
            made.header("content-type", "text/event-stream")
                .body(Body::from_stream(notes))
        }
        Some("tools/call") => {
            let note = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
            let name = &body["params"]["name"];
            let end = match name.as_str() {
                // The error's data is cut within the token.
                Some("echo") => {
                    let token = headers["authorization"].to_str().unwrap();
                    let token = token.trim_start_matches("Bearer ");
                    let data = format!("{}{token}", "x".repeat(496));
                    json!({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "", "data": data}})
                }
                Some("wrong") => {
                    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no such tool"}})
                }
                _ => json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"text": name}]}}),
            };
            let events = format!("data: {note}\n\nevent: message\ndata: {end}\n\n");
            let first = futures::stream::iter([Ok::<_, std::io::Error>(events)]);
            let stream = first.chain(futures::stream::pending());
            made.header("content-type", "text/event-stream")
                .body(Body::from_stream(stream))
        }
        _ => made.status(202).body(Body::empty()),
    }
    .unwrap()
}

#[tokio::test]
async fn an_mcp_call_is_a_session() {
    let (base, seen) = mcp().await;
    let metadata = data!({"protocolVersion": "2025-06-18"});
    let tool = Callable::with(FunctionKind::Mcp, "tools/call", metadata, &[], config()).unwrap();
    let mut arguments = data!({"parameters": {"name": "add"}, "headers": {"X-Team": "a"}});
    arguments.set("endpoint", Data::string(base.as_str()));
    let result = tool
        .request(arguments.clone(), None, bearer("t0ken"))
        .await
        .unwrap();
    assert_eq!(result, data!({"content": [{"text": "add"}]}));
    let requests = std::mem::take(&mut *seen.lock().unwrap());
    let methods: Vec<&str> = requests
        .iter()
        .map(|(method, _, body)| body["method"].as_str().unwrap_or(method))
        .collect();
    assert_eq!(
        methods,
        [
            "initialize",
            "notifications/initialized",
            "tools/call",
            "DELETE"
        ]
    );
    let begun = &requests[0].2["params"];
    assert_eq!(begun["protocolVersion"], "2025-06-18");
    assert_eq!(begun["clientInfo"]["name"], "swirl");
    for (_, headers, _) in &requests[1..] {
        assert_eq!(headers["mcp-session-id"], "s-1");
        // The version that the server chose.
        assert_eq!(headers["mcp-protocol-version"], "2025-03-26");
        assert_eq!(headers["authorization"], "Bearer t0ken");
        assert_eq!(headers["x-team"], "a");
    }
    assert!(!requests[0].1.contains_key("mcp-session-id"));

    arguments.set("parameters", data!({"name": "wrong"}));
    let error = tool.call(arguments.clone()).await.unwrap_err();
    assert_eq!(kind(&error), ("runtime".to_owned(), Some(500)));
    assert!(error.message.contains("no such tool"), "{error}");
    arguments.set("parameters", data!({"name": "echo"}));
    let asked = tool.request(arguments.clone(), None, bearer("t0ken-of-mine"));
    let error = asked.await.unwrap_err();
    assert!(error.message.ends_with("x***)"), "{error}");
    assert!(!error.message.contains("t0"), "{error}");
    arguments.set("endpoint", Data::string("http://127.0.0.1:1/"));
    let error = tool.call(arguments).await.unwrap_err();
    assert_eq!(kind(&error), ("runtime".to_owned(), Some(500)));
}

/// Reading a stream takes time in proportion to its length.
#[tokio::test]
async fn a_stream_without_a_response_ends_at_the_limit() {
    let (base, _) = mcp().await;
    let small = HttpConfig {
        response_bytes_max: 1_000_000,
        ..config()
    };
    let list = Callable::with(FunctionKind::Mcp, "tools/list", data!({}), &[], small).unwrap();
    let mut arguments = data!({});
    arguments.set("endpoint", Data::string(base.as_str()));
    let begun = Instant::now();
    let error = list.call(arguments).await.unwrap_err();
    assert_eq!(error.name, "LimitExceeded", "{error}");
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_message_goes_to_the_agent_of_the_card() {
    let agent = Server::start(|seen| match seen.body["params"]["message"]["parts"][0]["text"].as_str() {
        Some("fail") => json(200, &json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32001, "message": "Task not found"}})),
        Some("busy") => json(503, &json!({"reason": "busy"})),
        _ => json(200, &json!({"jsonrpc": "2.0", "id": 1, "result": {"kind": "task", "id": "t1"}})),
    })
    .await;
    let card = json!({"name": "a", "url": format!("{}/rpc", agent.base)}).to_string();
    let uri = format!("{}/.well-known/agent-card.json", agent.base);
    let documents = [(uri.as_str(), card.as_str())];
    let operation = format!("message/send#{uri}");
    let send = Callable::with(
        FunctionKind::A2a,
        &operation,
        Data::NULL,
        &documents,
        config(),
    )
    .unwrap();
    let message = |text: &str| {
        let mut part = data!({"kind": "text"});
        part.set("text", Data::string(text));
        let mut message = Data::object();
        message.set("parts", Data::array(vec![part]));
        let mut parameters = Data::object();
        parameters.set("message", message);
        let mut arguments = Data::object();
        arguments.set("parameters", parameters);
        arguments
    };
    let result = send
        .request(message("hi"), None, bearer("t0ken"))
        .await
        .unwrap();
    assert_eq!(result, data!({"kind": "task", "id": "t1"}));
    let seen = &agent.seen()[0];
    assert_eq!(seen.uri.path(), "/rpc");
    assert_eq!(seen.header("authorization"), "Bearer t0ken");
    assert_eq!(seen.body["method"], "message/send");
    assert_eq!(seen.body["params"]["message"]["role"], "user");
    let id = seen.body["params"]["message"]["messageId"]
        .as_str()
        .unwrap();
    assert_eq!(id.len(), 36, "{id}");
    for (text, status, part) in [("fail", 500, "Task not found"), ("busy", 503, "busy")] {
        let error = send.call(message(text)).await.unwrap_err();
        assert_eq!(
            kind(&error),
            ("runtime".to_owned(), Some(status)),
            "{error}"
        );
        assert!(error.message.contains(part), "{error}");
    }
}

#[tokio::test]
async fn a_stream_of_an_agent_is_a_list() {
    let agent = Server::start(|_| {
        let event = |result: Value| {
            format!(
                "data: {}\n\n",
                json!({"jsonrpc": "2.0", "id": 1, "result": result})
            )
        };
        let events = [
            event(json!({"n": 1})),
            event(json!({"n": 2, "final": true})),
        ]
        .concat();
        (200, "text/event-stream", events)
    })
    .await;
    let stream = Callable::new(FunctionKind::A2a, "message/stream#");
    let mut arguments = data!({"parameters": {"message": {"parts": []}}});
    arguments.set("server", Data::string(agent.base.as_str()));
    let result = tokio::time::timeout(Duration::from_secs(10), stream.call(arguments)).await;
    assert_eq!(
        result.unwrap().unwrap(),
        data!([{"n": 1}, {"n": 2, "final": true}])
    );
    assert!(
        agent.seen()[0]
            .header("accept")
            .contains("text/event-stream")
    );
}
