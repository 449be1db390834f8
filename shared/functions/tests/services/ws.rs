//! Messages over WebSocket.

use std::sync::{Arc, Mutex};

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use swirl_model::{Data, data};
use tokio::net::TcpListener;
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

use crate::services::asyncapi::code;
use crate::services::fixture::{bearer, error_parts};
use crate::services::listen::{document, function, made};

/// Path, headers and first message of each conversation.
type Seen = Arc<Mutex<Vec<(String, http::HeaderMap, Message)>>>;

/// Sends first at `/hear/...`, answers at `/ask/...`, closes the connection the first time at `/rude/...`, and refuses
/// everybody at `/closed/...`.
async fn serve(seen: Seen) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let visits = Arc::new(Mutex::new(0));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(one(stream, seen.clone(), visits.clone()));
        }
    });
    port
}

async fn one(stream: tokio::net::TcpStream, seen: Seen, visits: Arc<Mutex<u32>>) {
    let mut asked = (String::new(), http::HeaderMap::new());
    // The library requires this type.
    #[allow(clippy::result_large_err)]
    let look = |request: &Request, response: Response| {
        asked = (request.uri().path().to_owned(), request.headers().clone());
        match asked.0.starts_with("/closed") {
            true => {
                let mut refusal = ErrorResponse::new(None);
                *refusal.status_mut() = http::StatusCode::FORBIDDEN;
                Err(refusal)
            }
            false => Ok(response),
        }
    };
    let Ok(mut socket) = accept_hdr_async(stream, look).await else {
        return;
    };
    let (path, headers) = asked;
    if path.starts_with("/rude") {
        let first = {
            let mut visits = visits.lock().unwrap();
            *visits += 1;
            *visits == 1
        };
        if first {
            return;
        }
    }
    if path.starts_with("/hear") || path.starts_with("/rude") {
        let said = Message::text("{\"lumens\": 5}");
        seen.lock().unwrap().push((path, headers, said.clone()));
        socket.send(said).await.unwrap();
    } else if let Some(Ok(message)) = socket.next().await {
        if path.starts_with("/ask") {
            let answer = format!("{{\"got\": {}}}", message.to_text().unwrap());
            socket.send(Message::text(answer)).await.unwrap();
        }
        seen.lock().unwrap().push((path, headers, message));
    }
    while let Some(Ok(_)) = socket.next().await {}
}

fn of(port: u16, address: &str) -> String {
    document(&format!("ws://127.0.0.1:{port}"), address, json!({}))
}

#[tokio::test]
async fn messages_go_over_websocket() {
    let seen = Seen::default();
    let port = serve(seen.clone()).await;
    let tell = function(&of(port, "tell/{id}"), "tell");
    let arguments = data!({"id": "a b", "lumens": 3, "headers": {"x-place": "north"}});
    let result = tell.request(arguments, None, bearer("s3cret-token")).await;
    assert_eq!(result.unwrap(), Data::NULL);
    {
        let seen = seen.lock().unwrap();
        let (path, headers, message) = &seen[0];
        assert_eq!(path, "/tell/a%20b");
        assert_eq!(message.to_text().unwrap(), "{\"lumens\":3}");
        for (name, value) in [
            ("authorization", "Bearer s3cret-token"),
            ("idempotency-key", "key-1"),
            ("x-place", "north"),
        ] {
            assert_eq!(headers[name], value, "{name}");
        }
    }
    // The service's first message, also after it has closed the connection once.
    for place in ["hear/{id}", "rude/{id}"] {
        let hear = function(&of(port, place), "hear");
        assert_eq!(hear.call(data!({})).await.unwrap(), data!({"lumens": 5}));
    }
    // A reply.
    let mut asking: Value = serde_json::from_str(&of(port, "ask/{id}")).unwrap();
    asking["operations"]["tell"]["reply"] = json!({});
    let ask = function(&asking.to_string(), "tell");
    let result = ask.call(data!({"lumens": 3})).await.unwrap();
    assert_eq!(result, data!({"got": {"lumens": 3}}));

    for (operation, arguments) in [("tell", data!({"lumens": 3})), ("hear", data!({}))] {
        let closed = function(&of(port, "closed/{id}"), operation);
        let (_, code, status, message) = error_parts(closed.call(arguments).await.unwrap_err());
        assert_eq!((code.as_str(), status), ("403", Some(403)), "{message}");
        let nobody = function(&of(1, "tell/{id}"), operation);
        let arguments = match operation {
            "tell" => data!({"lumens": 3}),
            _ => data!({}),
        };
        let (found, message) = self::code(nobody.call(arguments).await.unwrap_err());
        assert_eq!(found, "connection", "{message}");
    }
}

#[tokio::test]
async fn a_query_in_the_binding_is_rejected() {
    let binding = json!({"bindings": {"ws": {"query": {"type": "object"}}}});
    let text = document("ws://127.0.0.1:1", "a", binding);
    let error = made(&text, "tell", Data::NULL).err().unwrap();
    assert!(
        error.contains("`query` of the WebSocket binding"),
        "{error}"
    );
}
