//! Failures as a workflow sees them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use swirl_functions::http::HttpConfig;
use swirl_model::data;
use swirl_model::error::names;
use swirl_model::workflow::AuthScheme;
use swirl_servers::{Proxy, eventually};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::wrappers::TcpListenerStream;

use crate::rpc::fixture::{Callable, config};
use crate::rpc::service::{self, cancelled};

#[tokio::test]
async fn a_status_is_the_code_of_the_error() {
    let (server, _) = service::serve().await;
    let get = Callable::new(&server, "GetUser", config());
    for (number, name) in [
        (1, "CANCELLED"),
        (2, "UNKNOWN"),
        (3, "INVALID_ARGUMENT"),
        (4, "DEADLINE_EXCEEDED"),
        (5, "NOT_FOUND"),
        (6, "ALREADY_EXISTS"),
        (7, "PERMISSION_DENIED"),
        (8, "RESOURCE_EXHAUSTED"),
        (9, "FAILED_PRECONDITION"),
        (10, "ABORTED"),
        (11, "OUT_OF_RANGE"),
        (12, "UNIMPLEMENTED"),
        (13, "INTERNAL"),
        (14, "UNAVAILABLE"),
        (15, "DATA_LOSS"),
        (16, "UNAUTHENTICATED"),
    ] {
        let error = get
            .call(data!({"name": number.to_string()}))
            .await
            .unwrap_err();
        assert_eq!(
            (error.name.as_str(), error.status),
            (names::FUNCTION_ERROR, None)
        );
        assert_eq!(error.code.as_deref(), Some(name));
        assert_eq!(
            error.message,
            format!("gRPC /acme.v1.UserService/GetUser: {name}: code {number}")
        );
    }
    // Also in the middle of a stream.
    let list = Callable::new(&server, "ListUsers", config());
    let (code, message) = list.fails(data!({"count": -2})).await;
    assert!(
        code == "DATA_LOSS" && message.contains("the list is torn"),
        "{message}"
    );
}

#[tokio::test]
async fn invalid_arguments_are_never_sent() {
    let (server, seen) = service::serve().await;
    let get = Callable::new(&server, "GetUser", config());
    let (code, message) = get.fails(data!({"name": "Ada", "nick": "A"})).await;
    assert!(
        code == "arguments" && message.contains("'nick'"),
        "{message}"
    );
    let (code, message) = get.fails(data!({"name": 7})).await;
    assert!(
        code == "arguments" && message.contains("`name`"),
        "{message}"
    );
    let small = HttpConfig {
        request_bytes_max: 100,
        ..config()
    };
    let get = Callable::new(&server, "GetUser", small);
    let error = get
        .call(data!({"name": "x".repeat(200)}))
        .await
        .unwrap_err();
    assert_eq!(error.name, names::LIMIT_EXCEEDED);
    assert!(seen.lock().unwrap().metadata.is_empty());
}

#[tokio::test]
async fn answers_are_bounded() {
    let (server, _) = service::serve().await;
    let small = HttpConfig {
        response_bytes_max: 10_000,
        ..config()
    };
    let list = Callable::new(&server, "ListUsers", small);
    // One large message, many messages, many tiny messages.
    for arguments in [
        data!({"count": 1, "padding": 20_000}),
        data!({"count": 20, "padding": 1_000}),
        data!({"count": 1_000}),
    ] {
        let error = list.call(arguments).await.unwrap_err();
        assert_eq!(error.name, names::LIMIT_EXCEEDED, "{error}");
        assert_eq!(error.code.as_deref(), Some("limit"));
    }
    let users = list
        .call(data!({"count": 5, "padding": 1_000}))
        .await
        .unwrap();
    assert_eq!(users.as_array().map(<[_]>::len), Some(5));
}

#[tokio::test]
async fn an_answer_with_the_wrong_number_of_messages_is_an_error() {
    let (server, _) = service::serve().await;
    let get = Callable::new(&server, "GetUser", config());
    for (name, expected) in [("nobody", "no message"), ("twins", "more than one message")] {
        let (code, message) = get.fails(data!({"name": name})).await;
        assert!(
            code == "response" && message.ends_with(expected),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_call_times_out() {
    let (server, seen) = service::serve().await;
    let brief = HttpConfig {
        timeout: Duration::from_secs(2),
        ..config()
    };
    let get = Callable::new(&server, "GetUser", brief);
    let (code, message) = get.fails(data!({"name": "slow"})).await;
    assert!(
        code == "timeout" && message.ends_with("no answer within 2 s"),
        "{message}"
    );
    cancelled(&seen).await;
}

#[tokio::test]
async fn a_silent_connection_is_made_again() {
    let (server, _) = service::serve().await;
    let proxy = Proxy::start(server.trim_start_matches("grpc://")).unwrap();
    let brief = HttpConfig {
        timeout: Duration::from_secs(2),
        ..config()
    };
    let server = format!("grpc://{}", proxy.address());
    let get = Callable::new(&server, "GetUser", brief);
    get.call(data!({"name": "Ada"})).await.unwrap();
    proxy.silence();
    let (code, message) = get.fails(data!({"name": "Ada"})).await;
    assert_eq!(code, "timeout", "{message}");
    get.call(data!({"name": "Ada"})).await.unwrap();
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_on_the_server() {
    let (server, seen) = service::serve().await;
    let get = Callable::new(&server, "GetUser", config());
    let arrived = eventually("the call", async || {
        (seen.lock().unwrap().slow > 0).then_some(())
    });
    tokio::select! {
        answer = get.call(data!({"name": "slow"})) => panic!("{answer:?}"),
        () = arrived => {}
    }
    cancelled(&seen).await;
    // The connection still works.
    get.call(data!({"name": "Ada"})).await.unwrap();
}

#[tokio::test]
async fn missing_servers_and_non_grpc_servers_have_different_errors() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("grpc://{}", listener.local_addr().unwrap());
    drop(listener);
    let get = Callable::new(&nobody, "GetUser", config());
    let (code, message) = get.fails(data!({})).await;
    assert!(
        code == "connection" && message.contains(&format!("no connection to {nobody}")),
        "{message}"
    );
    // An HTTP/1.1 server.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other = format!("grpc://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let answer = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        // Waits until the other side has read it.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    let get = Callable::new(&other, "GetUser", config());
    let (code, message) = get.fails(data!({})).await;
    assert!(
        code == "connection" && message.contains("broke"),
        "{message}"
    );
    // An HTTP/2 server without gRPC.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other = format!("grpc://{}", listener.local_addr().unwrap());
    let routes = tonic::service::Routes::from(Router::new());
    let serving = tonic::transport::Server::builder().add_routes(routes);
    tokio::spawn(serving.serve_with_incoming(TcpListenerStream::new(listener)));
    let get = Callable::new(&other, "GetUser", config());
    assert_eq!(get.fails(data!({})).await.0, "UNIMPLEMENTED");
    // A server without TLS.
    let (server, _) = service::serve().await;
    let tls = server.replace("grpc:", "grpcs:");
    let get = Callable::new(&tls, "GetUser", config());
    let (code, message) = get.fails(data!({})).await;
    assert_eq!(code, "connection", "{message}");
}

#[tokio::test]
async fn a_restarted_server_is_found_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let get = Callable::new(&format!("grpc://{address}"), "GetUser", config());
    assert_eq!(get.fails(data!({})).await.0, "connection");
    let Ok(listener) = TcpListener::bind(address).await else {
        // Another process has taken the port meanwhile.
        return;
    };
    service::serve_on(listener);
    get.call(data!({"name": "Ada"})).await.unwrap();
}

#[tokio::test]
async fn secrets_in_a_servers_message_are_removed() {
    let (server, _) = service::serve().await;
    let get = Callable::new(&server, "GetUser", config());
    let auth = Some((AuthScheme::Bearer, data!({"token": "hunter22"})));
    let error = get
        .call_with(data!({"name": "telltale"}), auth)
        .await
        .unwrap_err();
    assert!(
        error.message.contains("***") && !error.message.contains("hunter22"),
        "{error}"
    );
}

/// The library panics on this answer, but the process must not.
#[tokio::test]
async fn a_malformed_answer_is_an_error() {
    use axum::http::HeaderMap;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("grpc://{}", listener.local_addr().unwrap());
    let answer = || async {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/grpc".parse().unwrap());
        headers.insert("grpc-status", "5".parse().unwrap());
        headers.insert("grpc-status-details-bin", "!".parse().unwrap());
        headers
    };
    let routes = tonic::service::Routes::from(Router::new().fallback(answer));
    let incoming = TcpListenerStream::new(listener);
    let serving = tonic::transport::Server::builder().add_routes(routes);
    tokio::spawn(serving.serve_with_incoming(incoming));
    let get = Callable::new(&server, "GetUser", config());
    let (code, message) = get.fails(data!({})).await;
    assert!(
        code == "response" && message.contains("malformed"),
        "{code} {message}"
    );
}

/// Forwards a connection to the server, until it is told to close the connection instead of forwarding.
async fn relay(mut near: TcpStream, server: SocketAddr, closes: Arc<AtomicBool>) {
    let mut far = TcpStream::connect(server).await.unwrap();
    let (mut one, mut other) = ([0; 4096], [0; 4096]);
    loop {
        tokio::select! {
            read = near.read(&mut one) => match read {
                Ok(size) if size > 0 && !closes.load(Ordering::Relaxed) => {
                    far.write_all(&one[..size]).await.unwrap();
                }
                _ => return,
            },
            read = far.read(&mut other) => match read {
                Ok(size) if size > 0 => near.write_all(&other[..size]).await.unwrap(),
                _ => return,
            },
        }
    }
}

/// A server or a balancer may close a kept connection while a call is on its way.
#[tokio::test]
async fn a_call_on_a_kept_connection_that_was_closed_is_made_once_more() {
    let (server, seen) = service::serve().await;
    let server = server.trim_start_matches("grpc://").parse().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("grpc://{}", listener.local_addr().unwrap());
    let connections = Arc::new(Mutex::new(Vec::new()));
    let opened = connections.clone();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let closes = Arc::new(AtomicBool::new(false));
            opened.lock().unwrap().push(closes.clone());
            tokio::spawn(relay(near, server, closes));
        }
    });
    let get = Callable::new(&address, "GetUser", config());
    get.call(data!({"name": "Ada"})).await.unwrap();
    connections.lock().unwrap()[0].store(true, Ordering::Relaxed);
    get.call(data!({"name": "Ada"})).await.unwrap();
    assert_eq!(connections.lock().unwrap().len(), 2);
    assert_eq!(seen.lock().unwrap().metadata.len(), 2);
}
