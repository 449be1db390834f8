//! Addresses of services from outside the definition.

use serde_json::json;
use swirl_model::workflow::FunctionKind;
use swirl_model::{Data, data};

use crate::services::fixture::{Callable, Server, config, error_parts, json};

const DOCUMENT: &str = "openapi: 3.0.3\npaths: {/hello: {get: {operationId: hello}}}\n";
const ABSOLUTE: &str = "openapi: 3.0.3\nservers: [{url: 'https://shop.invalid/v3'}]\npaths: {/hello: {get: {operationId: hello}}}\n";
const RELATIVE: &str =
    "openapi: 3.0.3\nservers: [{url: /v3}]\npaths: {/hello: {get: {operationId: hello}}}\n";

#[tokio::test]
async fn every_type_over_http_finds_its_service() {
    let server = Server::start(|seen| match seen.uri.path().ends_with("graphql") {
        true => json(200, &json!({"data": {"pet": 1}})),
        false => json(200, &json!({"value": [], "path": seen.uri.path()})),
    })
    .await;
    let base = server.base.as_str();
    let custom = || FunctionKind::Custom("custom".to_owned());
    let inline = json!({"/hello": {"get": {}}}).to_string();
    let http = |uri: &str| json!({"method": "get", "uri": uri}).to_string();
    let shop = format!("https://shop.invalid={base}/staging");
    for (server_of, kind, operation, document, path) in [
        ("f", FunctionKind::Rest, "a.yaml#hello", DOCUMENT, "/hello"),
        (
            "a.yaml",
            FunctionKind::Rest,
            "a.yaml#hello",
            DOCUMENT,
            "/hello",
        ),
        (
            "a.yaml",
            FunctionKind::Rest,
            "classpath:/a.yaml#hello",
            DOCUMENT,
            "/hello",
        ),
        (
            "f",
            FunctionKind::Rest,
            "a.yaml#hello",
            RELATIVE,
            "/v3/hello",
        ),
        ("f", FunctionKind::Rest, "a.yaml#hello", ABSOLUTE, "/hello"),
        (
            &shop,
            FunctionKind::Rest,
            "a.yaml#hello",
            ABSOLUTE,
            "/staging/v3/hello",
        ),
        ("f", FunctionKind::Rest, &inline, "", "/hello"),
        ("f", custom(), "rest:get:/hello", "", "/hello"),
        (
            "f",
            custom(),
            "rest:get:https://shop.invalid/hello",
            "",
            "/hello",
        ),
        (
            &shop,
            custom(),
            "rest:get:https://shop.invalid/hello",
            "",
            "/staging/hello",
        ),
        ("f", FunctionKind::Http, &http("/hello"), "", "/hello"),
        (
            &shop,
            FunctionKind::Http,
            &http("https://shop.invalid/hello"),
            "",
            "/staging/hello",
        ),
        ("/odata", FunctionKind::Odata, "/odata#Hello", "", "/Hello"),
        (
            &shop,
            FunctionKind::Odata,
            "https://shop.invalid#Hello",
            "",
            "/staging/Hello",
        ),
        ("f", FunctionKind::Graphql, "/graphql#query#pet", "", "/"),
        (
            &shop,
            FunctionKind::Graphql,
            "https://shop.invalid/graphql#query#pet",
            "",
            "/staging/graphql",
        ),
    ] {
        let entry = match server_of.contains('=') {
            true => server_of.to_owned(),
            false => format!("{server_of}={base}"),
        };
        let uri = operation.split('#').next().unwrap();
        let documents = [(uri, document)];
        let documents = &documents[..usize::from(!document.is_empty())];
        let function = Callable::among(&[entry], kind, operation, Data::NULL, documents, config());
        let function = function.unwrap_or_else(|reason| panic!("{operation}: {reason}"));
        let _ = function.call(data!({})).await;
        let seen = server.seen();
        let seen = seen.last().map(|seen| seen.uri.path().to_owned());
        assert_eq!(seen.as_deref(), Some(path), "{operation} {server_of}");
    }
}

#[tokio::test]
async fn a_function_without_an_address_is_deployed_and_its_calls_are_refused() {
    let custom = || FunctionKind::Custom("custom".to_owned());
    let asyncapi = "asyncapi: 2.6.0\nchannels: {a: {publish: {operationId: hello}}}\n";
    for (kind, operation, document) in [
        (FunctionKind::Rest, "a.yaml#hello", DOCUMENT),
        (FunctionKind::Rest, "classpath:a.yaml#hello", RELATIVE),
        (FunctionKind::Asyncapi, "a.yaml#hello", asyncapi),
        (custom(), "rest:get:/hello", ""),
        (
            FunctionKind::Http,
            r#"{"method": "get", "uri": "/hello"}"#,
            "",
        ),
        (FunctionKind::Odata, "/odata#Hello", ""),
        (FunctionKind::Graphql, "/graphql#query#pet", ""),
    ] {
        let uri = operation.split('#').next().unwrap();
        let documents = [(uri, document)];
        let documents = &documents[..usize::from(!document.is_empty())];
        let function = Callable::with(kind, operation, Data::NULL, documents, config());
        let function = function.unwrap_or_else(|reason| panic!("{operation}: {reason}"));
        let error = function.call(data!({})).await.unwrap_err();
        let (_, code, _, message) = error_parts(error);
        assert_eq!(code, "arguments", "{operation}: {message}");
        assert!(
            message.contains("--function-server f="),
            "{operation}: {message}"
        );
    }
}
