//! The requests of calls, and their results.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get as on_get, post};
use swirl_functions::types::rest::{CallContext, OpenApi};
use swirl_model::{Data, data};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rest::fixture::*;

#[tokio::test]
async fn the_demo_service_is_called() {
    let base = demo().await;
    for (id, arguments, expected) in [
        (
            "greet",
            data!({"name": "Ada"}),
            data!({"greeting": "Hello Ada!"}),
        ),
        (
            "getPrice",
            data!({"item": "lamp", "quantity": 2}),
            data!({"item": "lamp", "price": 3990, "quantity": 2, "total": 7980}),
        ),
        (
            "reserveItem",
            data!({"order": "o 1", "item": "book", "quantity": 1}),
            data!({"reservation": 1, "order": "o 1", "item": "book", "quantity": 1}),
        ),
        (
            "createJob",
            data!({"polls": 0}),
            data!({"id": 1, "status": "running"}),
        ),
        (
            "getJob",
            data!({"id": 1}),
            data!({"id": 1, "status": "done", "polls": 1, "input": {"polls": 0}}),
        ),
    ] {
        let result = call(&demo_operation(&base, id), arguments).await.unwrap();
        assert_eq!(result, expected, "{id}");
    }
    let items = call(&demo_operation(&base, "listItems"), Data::NULL)
        .await
        .unwrap();
    assert_eq!(items.as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_repeated_call_carries_the_same_key() {
    let base = demo().await;
    let charge = demo_operation(&base, "chargeOrder");
    for _ in 0..2 {
        let result = call(&charge, data!({"order": "7", "amount": 5}))
            .await
            .unwrap();
        assert_eq!(result.get("payment"), Some(Data::int(1)));
    }
    let calls = call(&get(&base, "/calls"), Data::NULL).await.unwrap();
    let calls = calls.as_array().unwrap();
    let seen: Vec<_> = calls
        .iter()
        .map(|call| Data(call.clone()))
        .map(|call| {
            (
                call.get("idempotencyKey").unwrap(),
                call.get("repeat").unwrap(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (data!("key-1"), data!(false)),
            (data!("key-1"), data!(true))
        ]
    );
}

#[tokio::test]
async fn headers_and_body_arrive() {
    let base = demo().await;
    let headers = [("traceparent", "00-1-2-01"), ("accept", "text/never")];
    let context = CallContext {
        headers: &headers,
        ..context(None)
    };
    let echo = demo_operation(&base, "echo");
    let result = caller()
        .call(&echo, &data!({"a": [1]}), &context)
        .await
        .unwrap();
    assert_eq!(result.get("body"), Some(data!({"a": [1]})));
    let seen = result.get("headers").unwrap();
    for (name, expected) in [
        ("user-agent", concat!("swirl/", env!("CARGO_PKG_VERSION"))),
        ("idempotency-key", "key-1"),
        ("content-type", "application/json"),
        ("traceparent", "00-1-2-01"),
        ("accept", "application/json, */*;q=0.1"),
    ] {
        assert_eq!(seen.get(name), Some(data!(expected)), "{name}");
    }
    let result = call(&demo_operation(&base, "echoGet"), data!({"q": "a b&c"}))
        .await
        .unwrap();
    assert_eq!(result.get("query"), Some(data!("q=a%20b%26c")));
    assert_eq!(result.get("headers").unwrap().get("content-type"), None);
}

#[tokio::test]
async fn an_argument_may_set_the_idempotency_key() {
    let base = demo().await;
    let operation = operation(
        &base,
        "paths: {/echo: {post: {operationId: op, parameters: \
         [{name: Idempotency-Key, in: header, required: true}]}}}",
    );
    for (arguments, expected) in [
        (data!({"Idempotency-Key": "own"}), "own"),
        (data!({}), "key-1"),
    ] {
        let result = call(&operation, arguments).await.unwrap();
        let seen = result.get("headers").unwrap().get("idempotency-key");
        assert_eq!(seen, Some(data!(expected)));
    }
}

#[tokio::test]
async fn forms_and_files_arrive() {
    // Each content type has its own service, because one service would treat the second call as a repeat of the first.
    let body = async |content: &str| {
        let yaml = format!(
            "paths: {{/echo: {{post: {{operationId: op, requestBody: {{content: {content}}}}}}}}}"
        );
        operation(&demo().await, &yaml)
    };
    let form = body("{application/x-www-form-urlencoded: {}}").await;
    let result = call(&form, data!({"a": "x y", "b": [1, 2]})).await.unwrap();
    assert_eq!(result.get("body"), Some(data!("a=x%20y&b=1&b=2")));

    let multipart = body(
        "{multipart/form-data: {schema: {properties: {file: {type: string, format: binary}}}}}",
    )
    .await;
    let result = call(&multipart, data!({"file": "aGVsbG8=", "note": "n"}))
        .await
        .unwrap();
    let text = result.get("body").unwrap();
    let text = text.as_str().unwrap();
    for expected in [
        "name=\"file\"; filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\nhello\r\n",
        "name=\"note\"\r\n\r\nn\r\n",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    let media = result.get("headers").unwrap().get("content-type").unwrap();
    assert!(
        media
            .as_str()
            .unwrap()
            .starts_with("multipart/form-data; boundary=")
    );

    let bytes = body("{application/octet-stream: {}}").await;
    let result = call(&bytes, data!({"body": "aGVsbG8="})).await.unwrap();
    assert_eq!(result.get("body"), Some(data!("hello")));
}

/// OpenAPI 3.1: `style` and `explode` of `encoding` apply to the parts of `multipart/form-data`. In 3.0 they don't.
#[tokio::test]
async fn parts_are_encoded_as_the_document_says() {
    const PATHS: &str = "
paths:
  /echo:
    post:
      operationId: op
      requestBody:
        content:
          multipart/form-data:
            schema:
              properties:
                'seats[]': {type: array, items: {type: string}}
                marks: {type: array, items: {type: string}}
                hall: {type: object, properties: {town: {type: string}, floor: {type: integer}}}
            encoding:
              'seats[]': {style: form, explode: true}
              marks: {style: form, explode: false}
              hall: {style: deepObject, explode: true}
";
    let arguments =
        data!({"seats[]": ["7a", "7b"], "marks": ["m", "n"], "hall": {"town": "Graz", "floor": 2}});
    let parts = async |version: &str| {
        let base = demo().await;
        let document = format!("openapi: {version}\n{PATHS}");
        let document = OpenApi::parse(document.as_bytes(), &base).unwrap();
        let operation = document.operation("op").unwrap();
        let result = call(&operation, arguments.clone()).await.unwrap();
        let body = result.get("body").unwrap();
        let body = body.as_str().unwrap().to_owned();
        let name = |line: &str| {
            line.split("name=\"")
                .nth(1)?
                .split('"')
                .next()
                .map(str::to_owned)
        };
        let names = body.lines().filter_map(name).collect::<Vec<_>>();
        (names, body)
    };
    let (names, body) = parts("3.1.0").await;
    assert_eq!(
        names,
        ["seats[]", "seats[]", "marks", "hall[town]", "hall[floor]"]
    );
    for expected in ["\r\n\r\nm,n\r\n", "\r\n\r\nGraz\r\n", "\r\n\r\n2\r\n"] {
        assert!(body.contains(expected), "{body}");
    }
    let (names, _) = parts("3.0.3").await;
    assert_eq!(names, ["seats[]", "seats[]", "marks", "marks", "hall"]);
}

/// A member that only answers have isn't required in a request, however its schema is put together.
#[tokio::test]
async fn members_of_answers_are_not_required_in_requests() {
    let user = "{type: object, required: [number, name], properties: {number: {type: string, readOnly: true}, \
                name: {type: string}}}";
    let apart = "{allOf: [{properties: {number: {type: string, readOnly: true}, name: {type: string}}}, \
                 {type: object, required: [number, name]}]}";
    for (media, schema) in [
        ("application/json", user),
        ("application/json", apart),
        ("application/x-www-form-urlencoded", user),
        ("multipart/form-data", user),
        ("multipart/form-data", apart),
    ] {
        let yaml = format!(
            "paths: {{/echo: {{post: {{operationId: op, requestBody: {{required: true, content: \
             {{{media}: {{schema: {schema}}}}}}}}}}}}}"
        );
        let operation = operation(&demo().await, &yaml);
        let result = call(&operation, data!({"name": "Rex"})).await;
        let result = result.unwrap_or_else(|error| panic!("{media} {schema}: {error}"));
        let body = result.get("body").unwrap().to_string();
        assert!(body.contains("Rex") && !body.contains("number"), "{body}");
        // The service judges whether members of a JSON body are missing.
        if media != "application/json" {
            call(&operation, data!({"number": "7"})).await.unwrap_err();
        }
    }
}

#[tokio::test]
async fn a_swagger_2_document_is_called() {
    let base = demo().await;
    let document = "
swagger: '2.0'
basePath: /orders
paths:
  /{order}/payment:
    post:
      operationId: charge
      consumes: [application/json]
      parameters:
      - {in: path, name: order, type: string, required: true}
      - {in: body, name: payment, schema: {type: object}}
      responses: {'200': {description: ok}}
";
    let document =
        OpenApi::parse(document.as_bytes(), &format!("{base}/docs/swagger.yaml")).unwrap();
    let charge = document.operation("charge").unwrap();
    let result = call(&charge, data!({"order": "9", "payment": {"amount": 3}}))
        .await
        .unwrap();
    assert_eq!(result, data!({"payment": 1, "order": "9", "amount": 3}));
}

#[tokio::test]
async fn results_follow_the_content_type() {
    let base = serve(
        Router::new()
            .route("/text", on_get(async || "plain"))
            .route("/none", on_get(async || StatusCode::NO_CONTENT))
            .route(
                "/bytes",
                on_get(async || ([("content-type", "image/png")], vec![0u8, 255])),
            )
            .route(
                "/created",
                on_get(async || (StatusCode::CREATED, axum::Json(7))),
            ),
    )
    .await;
    for (path, expected) in [
        ("/text", data!("plain")),
        ("/none", data!(null)),
        ("/bytes", data!("AP8=")),
        ("/created", data!(7)),
    ] {
        assert_eq!(
            call(&get(&base, path), Data::NULL).await.unwrap(),
            expected,
            "{path}"
        );
    }
}

/// A caller's second call uses the connection of the first.
#[tokio::test]
async fn connections_are_reused() {
    let (listener, base) = listener().await;
    let accepted = Arc::new(AtomicUsize::new(0));
    let counter = accepted.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counter.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while stream.read(&mut buffer).await.unwrap() > 0 {
                    stream
                        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                        .await
                        .unwrap();
                }
            });
        }
    });
    let caller = caller();
    for _ in 0..3 {
        let result = caller
            .call(&get(&base, "/"), &Data::NULL, &context(None))
            .await
            .unwrap();
        assert_eq!(result, data!("ok"));
    }
    assert_eq!(accepted.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_failed_call_can_be_tried_again() {
    let base = demo().await;
    let flaky = demo_operation(&base, "flaky");
    let arguments = data!({"key": "k", "failures": 1});
    let error = call(&flaky, arguments.clone()).await.unwrap_err();
    assert_eq!((error.status(), error.can_retry), (Some(503), true));
    assert_eq!(
        call(&flaky, arguments).await.unwrap(),
        data!({"key": "k", "calls": 2})
    );
}

#[tokio::test]
async fn an_unknown_argument_sends_nothing() {
    let hits = Arc::new(AtomicUsize::new(0));
    let counter = hits.clone();
    let base = serve(Router::new().route(
        "/",
        post(async move || {
            counter.fetch_add(1, Ordering::SeqCst);
        }),
    ))
    .await;
    let operation = operation(&base, "paths: {/: {post: {operationId: op}}}");
    let error = call(&operation, data!({"x": 1})).await.unwrap_err();
    assert_eq!(
        error.message,
        "operation `op`: it takes no arguments, but got `x`"
    );
    assert_eq!(hits.load(Ordering::SeqCst), 0);
    call(&operation, data!({})).await.unwrap();
    assert_eq!(hits.load(Ordering::SeqCst), 1);
}
