//! Fields of GraphQL services.

use std::time::Duration;

use serde_json::{Value, json};
use swirl_functions::http::HttpConfig;
use swirl_model::data;
use swirl_model::workflow::FunctionKind;

use crate::services::fixture::{
    Answer, Callable, Seen, Server, basic, bearer, config, error_parts, json,
};

const SELECTION: &str = "{ id, name, favoriteTreat { id } }";

fn is_introspection(seen: &Seen) -> bool {
    seen.body["query"].as_str().unwrap().contains("__schema")
}

/// The schema of the example in the language specification, as a service returns it.
fn schema(seen: &Seen) -> Value {
    let asked = seen.body["query"].as_str().unwrap();
    let (root, field, argument, of) = if asked.contains("mutationType") {
        ("mutationType", "createPet", "pet", "PetInput")
    } else {
        ("queryType", "pet", "id", "Int")
    };
    let of = json!({"kind": "NON_NULL", "name": null, "ofType": {"kind": "SCALAR", "name": of}});
    json!({"data": {"__schema": {root: {"fields": [
        {"name": "pets", "args": []},
        {"name": field, "args": [{"name": argument, "type": of}]},
    ]}}}})
}

/// A service with introspection that answers all other requests with this.
async fn with_introspection(answer: Answer) -> Server {
    Server::start(move |seen| {
        if is_introspection(seen) {
            json(200, &schema(seen))
        } else {
            answer.clone()
        }
    })
    .await
}

/// A service without introspection.
async fn without_introspection(answer: Answer) -> Server {
    Server::start(move |seen| {
        if is_introspection(seen) {
            json(400, &json!({"errors": [{"message": "no introspection"}]}))
        } else {
            answer.clone()
        }
    })
    .await
}

fn function(server: &Server, operation: &str) -> Callable {
    Callable::new(
        FunctionKind::Graphql,
        &format!("{}/graphql#{operation}", server.base),
    )
}

#[tokio::test]
async fn the_specifications_examples_run() {
    let pet = json!({"pet": {"id": 42, "name": "Snuffles", "favoriteTreat": {"id": 9001}}});
    let server = with_introspection(json(200, &json!({"data": pet}))).await;
    let get = function(&server, "query#pet");
    for _ in 0..2 {
        let result = get.select(data!({"id": 42}), SELECTION).await.unwrap();
        assert_eq!(Value::from(&result), pet);
    }
    let seen = server.seen();
    // Introspection was requested once for both calls.
    assert_eq!(seen.len(), 3);
    assert!(is_introspection(&seen[0]));
    let call = &seen[1];
    assert_eq!(call.uri.path(), "/graphql");
    assert_eq!(call.header("idempotency-key"), "key-1");
    assert_eq!(call.header("content-type"), "application/json");
    assert!(
        call.header("accept")
            .starts_with("application/graphql-response+json")
    );
    assert_eq!(
        call.body,
        json!({
            "query": "query ($id: Int!){ pet(id: $id) { id, name, favoriteTreat { id } }\n}",
            "variables": {"id": 42},
        })
    );

    let create = function(&server, "mutation#createPet");
    let pet = data!({"pet": {"id": 43, "name": "Sadaharu", "favoriteTreatId": 9001}});
    create.select(pet.clone(), SELECTION).await.unwrap();
    assert_eq!(
        server.seen().last().unwrap().body,
        json!({
            "query": "mutation ($pet: PetInput!){ createPet(pet: $pet) { id, name, favoriteTreat { id } }\n}",
            "variables": Value::from(&pet),
        })
    );
}

#[tokio::test]
async fn without_introspection_arguments_are_literals() {
    let server = without_introspection(json(200, &json!({"data": {"pet": null}}))).await;
    let get = function(&server, "query#pet");
    for _ in 0..2 {
        let result = get
            .select(data!({"id": 42, "of": {"a": ["b"]}}), "{ id }")
            .await;
        assert_eq!(result.unwrap(), data!({"pet": null}));
    }
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert_eq!(
        seen[2].body,
        json!({"query": "query { pet(id: 42, of: {a: [\"b\"]}) { id }\n}"})
    );
}

#[tokio::test]
async fn types_can_be_stated() {
    let server = with_introspection(json(200, &json!({"data": {"ping": 1}}))).await;
    let operation = format!("{}/#query#ping", server.base);
    let metadata = data!({"argumentTypes": {"kind": "Kind!", "at": "[DateTime!]"}});
    let ping =
        |metadata| Callable::with(FunctionKind::Graphql, &operation, metadata, &[], config());
    let arguments = data!({"kind": "DOG", "at": [], "other": "x"});
    ping(metadata).unwrap().select(arguments, "").await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(
        seen[0].body,
        json!({
            "query": "query ($kind: Kind!, $at: [DateTime!]){ ping(kind: $kind, at: $at, other: \"x\") \n}",
            "variables": {"kind": "DOG", "at": []},
        })
    );
    let error = ping(data!({"argumentTypes": {"kind": "Kind) {"}}))
        .err()
        .unwrap();
    assert!(
        error.contains("`metadata.argumentTypes.kind` must be a GraphQL type"),
        "{error}"
    );
}

#[tokio::test]
async fn errors_have_the_services_code() {
    let refused = json!({"errors": [
        {"message": "Pet 42 is away", "path": ["pet", 0], "extensions": {"code": "AWAY"}},
        {"message": "and so is its owner"},
    ], "data": {"pet": null}});
    let plain = json!({"errors": [{"message": "oops"}]});
    let function_error = "FunctionError".to_owned();
    for (answer, code, status, message) in [
        (
            json(200, &refused),
            "AWAY",
            None,
            "query `pet`: Pet 42 is away (at `pet.0`), and 1 more",
        ),
        (json(400, &refused), "AWAY", Some(400), "Pet 42 is away"),
        (json(200, &plain), "failed", None, "oops"),
        (json(422, &plain), "422", Some(422), "oops"),
        // Not as the specification says.
        (
            json(200, &json!({"errors": "boom", "data": null})),
            "failed",
            None,
            "boom",
        ),
        (
            json(200, &json!({"errors": {"message": "boom"}})),
            "failed",
            None,
            "boom",
        ),
        (
            json(200, &json!({"errors": ["boom", 1], "data": {"pet": 1}})),
            "failed",
            None,
            "boom, and 1 more",
        ),
        (
            json(200, &json!({"errors": [null]})),
            "failed",
            None,
            "an error without a message",
        ),
        (
            json(200, &json!({"errors": [], "message": "boom"})),
            "response",
            None,
            "neither `data` nor `errors`",
        ),
        (
            (503, "text/plain", "busy".to_owned()),
            "503",
            Some(503),
            "503 Service Unavailable: busy",
        ),
        (
            (200, "text/html", "<p>".to_owned()),
            "response",
            None,
            "neither `data` nor `errors`",
        ),
        (
            json(200, &json!([1])),
            "response",
            None,
            "neither `data` nor `errors`",
        ),
    ] {
        let server = without_introspection(answer).await;
        let error = function(&server, "query#pet")
            .select(data!({"id": 1}), "{ id }")
            .await;
        let (name, found, seen_status, text) = error_parts(error.unwrap_err());
        assert_eq!(
            (name, found.as_str(), seen_status),
            (function_error.clone(), code, status)
        );
        assert!(text.contains(message), "{text}");
        assert!(
            text.starts_with(&format!("POST {}/graphql", server.base)),
            "{text}"
        );
    }
}

/// Some services say in other ways than the specification that there is no error.
#[tokio::test]
async fn errors_that_are_none_leave_the_data() {
    for none in [json!(null), json!([]), json!(false), json!(""), json!({})] {
        let answer = json(200, &json!({"errors": none, "data": {"pet": 1}}));
        let server = without_introspection(answer).await;
        let get = function(&server, "query#pet");
        let result = get.select(data!({"id": 1}), "{ id }").await;
        assert_eq!(result.unwrap(), data!({"pet": 1}), "{none}");
    }
}

#[tokio::test]
async fn values_from_expressions_cannot_change_the_query() {
    let server = without_introspection(json(200, &json!({"data": {}}))).await;
    let get = function(&server, "query#pet");
    for (selection, arguments, message) in [
        (
            "{ id } secrets { all }",
            data!({}),
            "the selection set: it continues",
        ),
        ("{ id", data!({}), "the selection set: at its end"),
        (
            "{ id }",
            data!({"a: 1) { id } b(c": 1}),
            "cannot be the name of an argument",
        ),
        (
            "{ id }",
            data!({"a": {"b: 1}) {": 1}}),
            "cannot be written in a query",
        ),
    ] {
        let error = get.select(arguments, selection).await.unwrap_err();
        let (_, code, _, text) = error_parts(error);
        assert_eq!(code, "arguments", "{text}");
        assert!(text.contains(message), "{text}");
    }
    assert!(server.seen().iter().all(is_introspection));
}

#[tokio::test]
async fn credentials_are_sent_and_not_shown() {
    let server = Server::start(|seen| {
        let got = seen.header("authorization").to_owned();
        json(401, &json!({"errors": [{"message": format!("not with {got}"), "extensions": {"code": got}}]}))
    })
    .await;
    let get = function(&server, "query#pet");
    for auth in [bearer("s3cret-token"), basic("ada", "s3cret-password")] {
        let error = get
            .request(data!({"id": 1}), Some("{ id }"), auth)
            .await
            .unwrap_err();
        let (_, code, status, text) = error_parts(error);
        assert_eq!(status, Some(401));
        assert!(
            text.contains("***") && code.contains("***"),
            "{text} {code}"
        );
        assert!(!text.contains("s3cret"), "{text}");
    }
    let sent: Vec<String> = server
        .seen()
        .iter()
        .map(|seen| seen.header("authorization").to_owned())
        .collect();
    let basic = "Basic YWRhOnMzY3JldC1wYXNzd29yZA==".to_owned();
    let token = "Bearer s3cret-token".to_owned();
    assert_eq!(sent, [token.clone(), token, basic.clone(), basic]);
}

#[tokio::test]
async fn calls_have_limits() {
    let server = Server::start(|seen| match seen.uri.path() {
        "/slow" => (0, "", String::new()),
        _ => json(200, &json!({"data": {"pet": "x".repeat(3000)}})),
    })
    .await;
    let call = async |path: &str, name: &str| {
        let own = config();
        let config = HttpConfig {
            timeout: match path {
                "slow" => Duration::from_millis(300),
                _ => own.timeout,
            },
            response_bytes_max: 1000,
            request_bytes_max: 1000,
            ..own
        };
        let operation = format!("{}/{path}#query#pet", server.base);
        let types = data!({"argumentTypes": {"name": "String"}});
        let get = Callable::with(FunctionKind::Graphql, &operation, types, &[], config).unwrap();
        let error = get
            .select(data!({"name": name}), "{ id }")
            .await
            .unwrap_err();
        let (name, code, _, message) = error_parts(error);
        (name, code, message)
    };
    let (_, code, message) = call("slow", "a").await;
    assert_eq!(code, "timeout");
    assert!(message.contains("no answer within 0.3 s"), "{message}");
    let (name, code, _) = call("large", "a").await;
    assert_eq!((name.as_str(), code.as_str()), ("LimitExceeded", "limit"));
    let (name, _, message) = call("large", &"x".repeat(2000)).await;
    assert_eq!(name, "LimitExceeded");
    assert!(message.contains("at most 1000 are sent"), "{message}");
}

#[tokio::test]
async fn uncallable_functions_are_rejected_at_deployment() {
    for (operation, reason) in [
        (
            "ftp://example.org#query#pet",
            "must be an http or https URL",
        ),
        (
            "http://example.org#query",
            "must be the URL of a GraphQL endpoint",
        ),
        ("http://example.org#subscription#pet", "not `subscription`"),
        (
            "http://example.org#query#pet(id: 1)",
            "cannot be the name of a GraphQL field",
        ),
    ] {
        let made = Callable::with(FunctionKind::Graphql, operation, data!(null), &[], config());
        let error = made.err().unwrap();
        assert!(error.contains(reason), "{operation}: {error}");
    }
}
