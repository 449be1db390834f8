//! Failures of calls.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Redirect;
use axum::routing::{any as on_any, get as on_get};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use swirl_functions::CallErrorKind;
use swirl_functions::http::{Http, HttpConfig};
use swirl_functions::types::rest::{CallContext, RestCaller};
use swirl_model::{Data, WorkflowError, data};
use swirl_servers::PATIENCE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rest::fixture::*;

#[tokio::test]
async fn a_status_is_an_error_with_the_body() {
    let base = demo().await;
    let error = call(
        &demo_operation(&base, "getPrice"),
        data!({"item": "x", "quantity": 7}),
    )
    .await
    .unwrap_err();
    assert_eq!(
        error.message,
        format!(
            "GET {base}/items/x/price: 404 Not Found: {{\"status\":404,\"detail\":\"there is no item `x`\"}}"
        )
    );
    assert_eq!(
        error.body,
        Some(data!({"status": 404, "detail": "there is no item `x`"}))
    );
    assert_eq!(
        (error.name(), error.code().as_str(), error.status()),
        ("FunctionError", "404", Some(404))
    );
    assert!(!error.can_retry);
    let seen = WorkflowError::from(&error);
    assert_eq!(
        (seen.name.as_str(), seen.code.as_deref(), seen.status),
        ("FunctionError", Some("404"), Some(404))
    );
}

#[tokio::test]
async fn redirects_are_followed_to_the_same_origin() {
    let away = serve(Router::new().route("/to", on_any(async || "away"))).await;
    let target = format!("{away}/to?token=s3cret");
    let seen = async |method: Method, headers: HeaderMap, body: String| {
        let kind = headers
            .get("content-type")
            .map(|kind| kind.to_str().unwrap());
        format!("{method} {} {body}", kind.unwrap_or("-"))
    };
    let base = serve(
        Router::new()
            .route(
                "/307",
                on_any(async || Redirect::temporary("to?token=s3cret")),
            )
            .route("/303", on_any(async || Redirect::to("/to")))
            .route(
                "/loop",
                on_any(async || Redirect::temporary("/loop?token=s3cret")),
            )
            .route(
                "/away",
                on_any(move || async move { Redirect::temporary(&target) }),
            )
            .route("/to", on_any(seen)),
    )
    .await;
    for path in ["/307", "/303"] {
        let found = call(&get(&base, path), Data::NULL).await;
        assert_eq!(found.unwrap(), data!("GET - "), "{path}");
    }
    let post = |path: &str, media: &str| {
        let body = format!("requestBody: {{content: {{{media}: {{}}}}}}");
        operation(
            &base,
            &format!("paths: {{{path}: {{post: {{operationId: op, {body}}}}}}}"),
        )
    };
    let found = call(&post("/307", "application/json"), data!({"a": 1})).await;
    assert_eq!(found.unwrap(), data!("POST application/json {\"a\":1}"));
    let found = call(&post("/307", "multipart/form-data"), data!({"a": 1}))
        .await
        .unwrap();
    let found = found.to_text();
    assert!(
        found.starts_with("POST multipart/form-data") && found.contains("name=\"a\""),
        "{found}"
    );
    // A POST doesn't become a GET.
    let error = call(&post("/303", "application/json"), data!({"a": 1}))
        .await
        .unwrap_err();
    assert_eq!(error.kind, CallErrorKind::Status(303));
    for (path, place) in [
        ("/loop", "/loop".to_owned()),
        ("/away", format!("{away}/to")),
    ] {
        let error = fails(&get(&base, path), CallErrorKind::Status(307)).await;
        let expected = format!(
            "GET {base}{path}: 307 Temporary Redirect to {place}; a redirect is followed to the same \
             origin, five times at most"
        );
        assert!(
            error.message.starts_with(&expected) && !error.message.contains("s3cret"),
            "{error}"
        );
        assert!(!error.can_retry);
    }
}

/// A compressed answer is decoded, and the limit applies to the decoded size.
#[tokio::test]
async fn compressed_answers_are_read_within_the_limit() {
    let json = b"{\"a\":1}";
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let mut deflate = ZlibEncoder::new(Vec::new(), Compression::default());
    deflate.write_all(json).unwrap();
    let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
    raw.write_all(json).unwrap();
    // A stream with one uncompressed block.
    let brotli = [&[0x0b, 0x03, 0x80][..], json, &[0x03]].concat();
    let bomb = gzip(&vec![b'0'; 9 << 20]);
    assert!(bomb.len() < 20_000);
    let answer = |encoding: &'static str, bytes: Vec<u8>| {
        on_any(move || async move {
            let headers = [
                ("content-type", "application/json"),
                ("content-encoding", encoding),
            ];
            (headers, bytes)
        })
    };
    let base = serve(
        Router::new()
            .route("/gzip", answer("gzip", gzip(json)))
            .route("/upper", answer("X-GZIP", gzip(json)))
            .route("/twice", answer("gzip, gzip", gzip(&gzip(json))))
            .route(
                "/members",
                answer("gzip", [gzip(&json[..3]), gzip(&json[3..])].concat()),
            )
            .route("/raw", answer("deflate", raw.finish().unwrap()))
            .route("/zstd", answer("zstd", json.to_vec()))
            .route("/deflate", answer("deflate", deflate.finish().unwrap()))
            .route("/br", answer("br", brotli))
            .route("/broken", answer("gzip", json.to_vec()))
            .route("/bomb", answer("gzip", bomb)),
    )
    .await;
    for path in [
        "/gzip", "/deflate", "/br", "/upper", "/twice", "/members", "/raw",
    ] {
        let found = call(&get(&base, path), Data::NULL).await;
        assert_eq!(found.unwrap(), data!({"a": 1}), "{path}");
    }
    let error = fails(&get(&base, "/bomb"), CallErrorKind::Limit).await;
    assert!(
        error.message.contains("larger than 8388608 bytes"),
        "{error}"
    );
    for (path, expected) in [
        ("/broken", "200 OK: the body isn't valid gzip: "),
        ("/zstd", "200 OK: the body is compressed with `zstd`"),
    ] {
        let error = fails(&get(&base, path), CallErrorKind::Response).await;
        assert!(error.message.contains(expected), "{error}");
    }
}

/// The status counts, even if the body cannot be read.
#[tokio::test]
async fn a_failure_whose_body_cannot_be_read_is_a_failure() {
    let busy = || async {
        let headers = [("content-encoding", "zstd"), ("retry-after", "7")];
        (StatusCode::SERVICE_UNAVAILABLE, headers, "zstd")
    };
    let base = serve(Router::new().route("/", on_get(busy))).await;
    let error = fails(&get(&base, "/"), CallErrorKind::Status(503)).await;
    assert!(error.message.contains("compressed with `zstd`"), "{error}");
    assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
}

const OK: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n7";

/// Answers the first request of each connection, sends these bytes instead of the next answer, and closes the
/// connection. Also counts the requests.
async fn answers_once_a_connection(then: &'static [u8]) -> (String, Arc<AtomicUsize>) {
    let (listener, base) = listener().await;
    let requests = Arc::new(AtomicUsize::new(0));
    let count = requests.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let count = count.clone();
            tokio::spawn(async move {
                for answer in [OK, then] {
                    let mut buffer = [0; 4096];
                    if stream.read(&mut buffer).await.unwrap() == 0 {
                        return;
                    }
                    count.fetch_add(1, Ordering::Relaxed);
                    stream.write_all(answer).await.unwrap();
                }
            });
        }
    });
    (base, requests)
}

/// A service or a balancer may close a kept connection while a request is on its way.
#[tokio::test]
async fn a_request_on_a_kept_connection_that_was_closed_is_sent_once_more() {
    const LATE: &[u8] =
        b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    for then in [&b""[..], LATE] {
        let (base, requests) = answers_once_a_connection(then).await;
        let caller = caller();
        let post = |media: &str| {
            let body = format!("requestBody: {{required: true, content: {{{media}: {{}}}}}}");
            operation(
                &base,
                &format!("paths: {{/x: {{post: {{operationId: op, {body}}}}}}}"),
            )
        };
        let operations = [
            get(&base, "/x"),
            post("application/json"),
            post("multipart/form-data"),
        ];
        for round in 1..=5 {
            let operation = &operations[round % 3];
            let (arguments, context) = (Data::object(), context(None));
            let found = caller.call(operation, &arguments, &context).await;
            assert_eq!(found.unwrap(), data!(7));
        }
        // The first one on a new connection; each of the others on a kept one, then on a new one that isn't kept.
        assert!(requests.load(Ordering::Relaxed) >= 6);
    }
}

/// Whatever came of an answer, the service has processed the request.
#[tokio::test]
async fn a_request_whose_answer_began_is_not_sent_again() {
    let (base, requests) = answers_once_a_connection(&OK[..OK.len() - 1]).await;
    let caller = caller();
    let operation = get(&base, "/x");
    let (arguments, context) = (Data::NULL, context(None));
    let call = || caller.call(&operation, &arguments, &context);
    assert_eq!(call().await.unwrap(), data!(7));
    let error = call().await.unwrap_err();
    assert_eq!(error.kind, CallErrorKind::Connection, "{error}");
    assert_eq!(requests.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn no_connection() {
    let (listener, base) = listener().await;
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = fails(&get(&base, "/x"), CallErrorKind::Connection).await;
    let expected =
        format!("GET {base}/x: no connection to 127.0.0.1 port {port}: Connection refused");
    assert!(error.message.starts_with(&expected), "{error}");
    assert_eq!(
        (error.code().as_str(), error.can_retry),
        ("connection", true)
    );
}

#[tokio::test]
async fn https_to_a_plain_http_server_fails() {
    let base = demo().await.replace("http:", "https:");
    let error = fails(&get(&base, "/items"), CallErrorKind::Connection).await;
    assert!(error.message.starts_with(&format!(
        "GET {base}/items: no connection to 127.0.0.1 port "
    )));
    assert!(error.message.contains("corrupt message"), "{error}");
}

/// Answers the first request with these bytes, then closes the connection.
async fn answer_once(bytes: &'static [u8]) -> String {
    let (listener, base) = listener().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer).await;
        stream.write_all(bytes).await.unwrap();
    });
    base
}

#[tokio::test]
async fn broken_and_invalid_answers_are_errors() {
    for bytes in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"220 smtp.example.org\r\n",
        b"",
    ] {
        let base = answer_once(bytes).await;
        let error = fails(&get(&base, "/"), CallErrorKind::Connection).await;
        assert!(
            error.message.contains("broke: ") && error.can_retry,
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_body_that_contradicts_its_content_type_is_an_error() {
    let base = answer_once(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n{a}",
    )
    .await;
    let error = fails(&get(&base, "/"), CallErrorKind::Response).await;
    assert!(
        error.message.contains("the body is not valid JSON"),
        "{error}"
    );
}

#[tokio::test]
async fn a_too_large_answer_is_an_error() {
    let http = Http::new(HttpConfig {
        response_bytes_max: 10,
        ..config()
    })
    .unwrap();
    let caller = RestCaller::new(http);
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n123456\r\n6\r\n789012\r\n0\r\n\r\n";
    for (bytes, fits) in [
        (
            &b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n1234567890"[..],
            true,
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n12345678901",
            false,
        ),
        (chunked, false),
        (
            b"HTTP/1.1 500 Oops\r\nContent-Length: 99999999999\r\n\r\n",
            false,
        ),
    ] {
        let base = answer_once(bytes).await;
        let result = caller
            .call(&get(&base, "/"), &Data::NULL, &context(None))
            .await;
        match fits {
            true => assert_eq!(result.unwrap(), data!(1234567890)),
            false => {
                let error = result.unwrap_err();
                assert_eq!(
                    (error.kind, error.name()),
                    (CallErrorKind::Limit, "LimitExceeded")
                );
                assert!(
                    error
                        .message
                        .ends_with("the answer is larger than 10 bytes"),
                    "{error}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_too_large_body_is_not_sent() {
    let http = Http::new(HttpConfig {
        request_bytes_max: 10,
        ..config()
    })
    .unwrap();
    let echo = demo_operation("http://127.0.0.1:9", "echo");
    let arguments = data!({"body": "0123456789"});
    let error = RestCaller::new(http)
        .call(&echo, &arguments, &context(None))
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (
            CallErrorKind::Limit,
            "operation `echo`: the request body has 12 bytes; at most 10 are sent"
        )
    );
}

#[tokio::test]
async fn no_answer_in_time() {
    let base = demo().await;
    let slow = demo_operation(&base, "slow");
    let arguments = data!({"ms": 60_000});
    let context = CallContext {
        timeout: Some(Duration::from_millis(150)),
        ..context(None)
    };
    let error = caller()
        .call(&slow, &arguments, &context)
        .await
        .unwrap_err();
    assert_eq!(
        error.message,
        format!("GET {base}/slow: no answer within 0.15 s")
    );
    assert_eq!((error.code().as_str(), error.can_retry), ("timeout", true));

    let http = Http::new(HttpConfig {
        timeout: Duration::from_millis(150),
        ..config()
    })
    .unwrap();
    let context = CallContext {
        timeout: None,
        ..context
    };
    let error = RestCaller::new(http)
        .call(&slow, &arguments, &context)
        .await
        .unwrap_err();
    assert_eq!(error.kind, CallErrorKind::Timeout);
}

/// The server sees the connection close when the call's future is dropped.
#[tokio::test]
async fn a_dropped_call_is_aborted() {
    let (listener, base) = listener().await;
    let (started_tx, started_rx) = tokio::sync::oneshot::channel();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4096];
        assert!(stream.read(&mut buffer).await.unwrap() > 0);
        let _ = started_tx.send(());
        let end = tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await;
        end.expect("the connection stays open")
    });
    let running = tokio::spawn(async move { call(&get(&base, "/"), Data::NULL).await });
    started_rx.await.unwrap();
    running.abort();
    assert!(matches!(server.await.unwrap(), Ok(0) | Err(_)));
}

#[tokio::test]
async fn secrets_of_the_call_are_removed_from_errors() {
    let echo = async |headers: axum::http::HeaderMap, uri: axum::http::Uri| {
        let auth = headers
            .get("authorization")
            .map(|value| value.to_str().unwrap().to_owned());
        (StatusCode::BAD_REQUEST, format!("got {uri} with {auth:?}"))
    };
    let base = serve(Router::new().route("/", on_get(echo))).await;
    let operation = operation(
        &base,
        "components: {securitySchemes: {key: {type: apiKey, in: query, name: appid}}}\n\
         paths: {/: {get: {operationId: op, security: [{key: []}]}}}",
    );
    let error = call(&operation, data!({"appid": "s3cret"}))
        .await
        .unwrap_err();
    assert_eq!(
        error.message,
        format!("GET {base}/: 400 Bad Request: got /?appid=*** with None")
    );
    assert_eq!(error.body, Some(data!("got /?appid=*** with None")));
}
