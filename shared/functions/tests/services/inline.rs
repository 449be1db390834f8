//! Requests that a definition itself describes: `http`, and `rest` with inline OpenAPI paths.

use serde_json::json;
use swirl_model::workflow::FunctionKind;
use swirl_model::{Data, data};

use crate::services::fixture::{Callable, Server, config, error_parts, json};

#[tokio::test]
async fn an_http_function_sends_its_request() {
    let server = Server::start(|seen| match seen.uri.path() {
        "/pet/3" => json(200, &json!({"name": "Lulu"})),
        "/pet" => json(201, &seen.body),
        _ => (404, "text/plain", "no such pet".to_owned()),
    })
    .await;
    let operation = json!({"method": "GET", "uri": format!("{}/pet/{{petId}}", server.base)});
    let get = Callable::new(FunctionKind::Http, &operation.to_string());
    let found = get.call(data!({"petId": 3})).await.unwrap();
    assert_eq!(found, data!({"name": "Lulu"}));
    let (_, code, status, message) = error_parts(get.call(data!({"petId": 4})).await.unwrap_err());
    assert_eq!((code.as_str(), status), ("404", Some(404)));
    assert!(message.contains("no such pet"), "{message}");
    let unplaced = error_parts(get.call(data!({"petId": 3, "x": 1})).await.unwrap_err());
    assert!(unplaced.3.contains("`x` isn't used"), "{unplaced:?}");

    let operation =
        json!({"method": "POST", "uri": format!("{}/pet", server.base), "headers": {"x-own": "1"}});
    let post = Callable::new(FunctionKind::Http, &operation.to_string());
    let arguments = data!({"body": {"name": "Lulu"}, "headers": {"my-header": "my-value"}});
    assert_eq!(post.call(arguments).await.unwrap(), data!({"name": "Lulu"}));
    let seen = server.seen();
    let posted = seen.last().unwrap();
    assert_eq!(
        (
            posted.header("content-type"),
            posted.header("my-header"),
            posted.header("x-own")
        ),
        ("application/json", "my-value", "1")
    );
    assert_eq!(posted.header("idempotency-key"), "key-1");
}

#[tokio::test]
async fn inline_paths_need_a_server_to_be_called() {
    let server = Server::start(|_| json(200, &json!({"id": 5}))).await;
    let paths = json!({"/users/{id}": {"get": {
        "parameters": [{"name": "id", "in": "path", "required": true}],
        "security": [{"none": []}]
    }}});
    let with = |metadata: Data| {
        Callable::with(
            FunctionKind::Rest,
            &paths.to_string(),
            metadata,
            &[],
            config(),
        )
    };
    let known = with(data!({"server": server.base.as_str()})).unwrap();
    assert_eq!(
        known.call(data!({"id": 5})).await.unwrap(),
        data!({"id": 5})
    );
    assert_eq!(server.seen()[0].uri.path(), "/users/5");
    let unknown = with(Data::NULL).unwrap();
    let (_, _, _, message) = error_parts(unknown.call(data!({"id": 5})).await.unwrap_err());
    assert!(message.contains("which has no `servers`"), "{message}");
    assert!(with(data!({"server": "nowhere"})).is_err());
}
