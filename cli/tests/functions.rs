//! Functions of types that the operator configures, through the command line.

use std::path::Path;
use std::process::{Command, Output};

fn swirl(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_swirl"))
        .current_dir(folder)
        .args(arguments)
        .envs(environment.iter().copied())
        .env_remove("NO_COLOR")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn definition(function: &str) -> String {
    format!(
        "id: w\nversion: 1.0.0\nspecVersion: '0.8'\nfunctions: [{{name: f, {function}}}]\nstates:\n  \
         - name: A\n    type: operation\n    actions: [{{functionRef: {{refName: f, arguments: {{a: 1}}}}}}]\n    \
         stateDataFilter: {{output: .arguments}}\n    end: true\n"
    )
}

#[test]
#[cfg(unix)]
fn a_custom_type_uses_the_connector_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("w.sw.yaml");
    std::fs::write(file, definition("type: echo, operation: x")).unwrap();
    let run = |environment: &[(&str, &str)], more: &[&str]| {
        swirl(
            folder.path(),
            environment,
            &[&["run", "w.sw.yaml"], more].concat(),
        )
    };
    let valid = swirl(folder.path(), &[], &["validate", "w.sw.yaml"]);
    assert_eq!(valid.status.code(), Some(0), "{valid:?}");
    let refused = run(&[], &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("--connector echo=http://host/path"),
        "{refused:?}"
    );
    for done in [
        run(&[], &["--connector", "echo=exec:cat"]),
        run(
            &[(
                "SWIRL_FUNCTIONS_CONNECTORS",
                " other=exec:false , echo=exec:cat",
            )],
            &[],
        ),
    ] {
        assert_eq!(text(&done.stdout), "{\n  \"a\": 1\n}\n", "{done:?}");
        assert_eq!(done.status.code(), Some(0));
    }
    let wrong = run(&[], &["--connector", "rest=exec:cat"]);
    assert!(
        text(&wrong.stderr).contains("function type of the language"),
        "{wrong:?}"
    );
}

/// The proto file and its imports are read, although nothing listens at the address.
#[test]
fn a_proto_file_is_read_with_its_imports() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    write(
        "w.sw.yaml",
        &definition(
            "type: rpc, operation: 'file://acme/v1/s.proto#S#M', metadata: {server: 'grpc://127.0.0.1:1'}",
        ),
    );
    write(
        "acme/v1/s.proto",
        "syntax = \"proto3\"; package acme.v1; import \"acme/v1/m.proto\"; service S { rpc M(A) returns (A); }",
    );
    let run = |more: &[&str]| swirl(folder.path(), &[], &[&["run", "w.sw.yaml"], more].concat());
    let missing = run(&[]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        text(&missing.stderr).contains("acme/v1/m.proto"),
        "{missing:?}"
    );
    write(
        "acme/v1/m.proto",
        "syntax = \"proto3\"; package acme.v1; message A { int32 a = 1; }",
    );
    for more in [&[][..], &["--rpc-server", "S=grpc://127.0.0.1:2"]] {
        let failed = run(more);
        assert_eq!(failed.status.code(), Some(1), "{failed:?}");
        let port = if more.is_empty() { 1 } else { 2 };
        let expected = format!("no connection to grpc://127.0.0.1:{port}");
        assert!(text(&failed.stderr).contains(&expected), "{failed:?}");
    }
    let wrong = run(&["--rpc-server", "S=127.0.0.1:2"]);
    assert!(
        text(&wrong.stderr).contains("is not a URL with a host"),
        "{wrong:?}"
    );
}

const OPENAPI: &str = "openapi: 3.0.3
paths:
  /orders/{id}:
    put:
      operationId: putOrder
      parameters: [{$ref: 'parts.yaml#/parameters/id'}, {name: sentAt, in: query, schema: {type: string, format: date-time}}]
      requestBody: {content: {application/json: {schema: {$ref: 'parts.yaml#/schemas/order'}}}}
      responses: {'200': {content: {application/json: {schema: {type: object, required: [id]}}}}}
";
const PARTS: &str = "parameters: {id: {name: id, in: path, required: true, schema: {type: integer}}}
schemas: {order: {type: object, required: [customer], properties: {customer: {type: string}, urgent: {type: boolean}}}}
";

fn order(arguments: &str, metadata: &str) -> String {
    definition(&format!(
        "type: rest, operation: 'openapi.yaml#putOrder'{metadata}"
    ))
    .replace("{a: 1}", arguments)
}

fn services(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// The document is a file that refers to another one, and the function has the service's address.
#[test]
fn arguments_are_checked_before_anything_runs() {
    const SERVER: &str = ", metadata: {server: 'http://127.0.0.1:1'}";
    let folder = services(&[("openapi.yaml", OPENAPI), ("parts.yaml", PARTS)]);
    let all = |command: &str, arguments: &str, metadata: &str| {
        std::fs::write(folder.path().join("w.sw.yaml"), order(arguments, metadata)).unwrap();
        let done = swirl(folder.path(), &[], &[command, "w.sw.yaml"]);
        let text = format!("{}{}", text(&done.stdout), text(&done.stderr));
        (done.status.code(), text)
    };
    let good = "{id: '${ .a // 7 }', customer: Ada, urgent: true, sentAt: '${ now | todate }'}";
    let (code, text) = all("validate", good, SERVER);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("note:"), "{text}");
    // Nothing listens there.
    let (code, text) = all("run", good, SERVER);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("PUT http://127.0.0.1:1/orders/"), "{text}");
    for (arguments, expected) in [
        (
            "{ID: 1, customer: Ada}",
            "the argument `id` is missing, and `ID` is there; did you mean `id`?",
        ),
        (
            "{id: one, customer: Ada}",
            "the argument `id` must be a whole number, and isn't one",
        ),
        (
            "{id: 1, custmer: Ada}",
            "the argument `customer` is missing, and `custmer` is there; did you mean `customer`?",
        ),
        (
            "{id: 1, customer: 5}",
            "the argument `customer` must be a string, but is a number",
        ),
        (
            "{id: 1, customer: Ada, sentAt: '${ now }'}",
            "write `${ now | todate }` for the present",
        ),
    ] {
        for command in ["validate", "run"] {
            let (code, text) = all(command, arguments, SERVER);
            assert_eq!(code, Some(if command == "run" { 2 } else { 1 }), "{text}");
            assert!(text.contains(expected), "{command} {arguments}: {text}");
            if command == "validate" {
                assert!(
                    text.contains("w.sw.yaml:8:") && text.contains("function-arguments"),
                    "{text}"
                );
            }
        }
    }
    let unchecked = ", metadata: {server: 'http://127.0.0.1:1', checkArguments: false}";
    assert_eq!(all("validate", "{id: one}", unchecked).0, Some(0));
    // The service's address may be given where the definition runs.
    let (code, text) = all("validate", good, "");
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("function-without-address") && text.contains("metadata: {server:"),
        "{text}"
    );
    // A file that cannot be read is reported, but isn't an error.
    std::fs::remove_file(folder.path().join("parts.yaml")).unwrap();
    let (code, text) = all("validate", "{ID: 1}", SERVER);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("note: the document of a function is unavailable")
            && text.contains("parts.yaml"),
        "{text}"
    );
    let offline = swirl(folder.path(), &[], &["validate", "--offline", "w.sw.yaml"]);
    assert_eq!(offline.status.code(), Some(0));
    assert!(
        !self::text(&offline.stdout).contains("note:"),
        "{offline:?}"
    );
}

#[test]
fn scenarios_check_calls_and_answers_against_documents() {
    let folder = services(&[("openapi.yaml", OPENAPI), ("parts.yaml", PARTS)]);
    let test = |arguments: &str, answer: &str| {
        let metadata = ", metadata: {server: 'http://127.0.0.1:1'}";
        std::fs::write(folder.path().join("w.sw.yaml"), order(arguments, metadata)).unwrap();
        let scenario = format!(
            "workflows: [w.sw.yaml]\ninput: {{id: one}}\nfunctions: {{f: {{return: {answer}}}}}\nexpect: {{status: completed}}\n"
        );
        std::fs::write(folder.path().join("w.scenario.yaml"), scenario).unwrap();
        let done = swirl(folder.path(), &[], &["test", "w.scenario.yaml"]);
        (done.status.code(), text(&done.stdout).to_owned())
    };
    let (code, text) = test("{id: 1, customer: Ada}", "{id: 1}");
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = test("{id: '${ .id }', customer: Ada}", "{id: 1}");
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("a call of 'f' doesn't fit the document")
            && text.contains("`id` must be a whole number"),
        "{text}"
    );
    let (code, text) = test("{id: 1, customer: Ada}", "{number: 1}");
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("the answer of 'f' doesn't fit") && text.contains("`id` is missing"),
        "{text}"
    );
    // Without a document, nothing is checked against it.
    std::fs::remove_file(folder.path().join("openapi.yaml")).unwrap();
    assert_eq!(test("{id: '${ .id }'}", "{number: 1}").0, Some(0));
}

/// A document that requires a token, which is a secret.
#[tokio::test(flavor = "multi_thread")]
async fn documents_are_fetched_with_credentials_from_secrets() {
    use axum::http::HeaderMap;
    use axum::routing::get;
    let guarded = |content: &'static str| {
        get(move |headers: HeaderMap| async move {
            let given = headers
                .get("authorization")
                .map(|value| value.to_str().unwrap().to_owned());
            match given.as_deref() {
                Some("Bearer t-0ps3cret") => Ok(content),
                _ => Err(axum::http::StatusCode::UNAUTHORIZED),
            }
        })
    };
    let router = axum::Router::new()
        .route("/openapi.yaml", guarded(OPENAPI))
        .route("/parts.yaml", guarded(PARTS))
        .route(
            "/orders/7",
            axum::routing::put(async || axum::Json(serde_json::json!({"id": 7}))),
        );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let folder = tempfile::tempdir().unwrap();
    let function = format!(
        "type: rest, operation: '{base}/openapi.yaml#putOrder', authRef: {{resource: docs}}"
    );
    let text_of = definition(&function)
        .replace("{a: 1}", "{id: 7, customer: Ada}")
        .replace("{output: .arguments}", "{output: '{id}'}")
        .replace(
            "states:",
            "secrets: [TOKEN]\nauth: [{name: docs, scheme: bearer, properties: {token: '${ \"t-\" + $SECRETS.TOKEN }'}}]\nstates:",
        );
    std::fs::write(folder.path().join("w.sw.yaml"), text_of).unwrap();
    let path = folder.path().to_owned();
    let run = move |more: &[&str]| swirl(&path, &[], &[&["run", "w.sw.yaml"], more].concat());
    tokio::task::spawn_blocking(move || {
        let done = run(&["--secret", "TOKEN=0ps3cret"]);
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        assert_eq!(text(&done.stdout), "{\n  \"id\": 7\n}\n", "{done:?}");
        let refused = run(&[]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let output = text(&refused.stderr);
        assert!(
            output.contains("the auth definition 'docs'")
                && output.contains("the secret 'TOKEN' has no value"),
            "{output}"
        );
        let wrong = run(&["--secret", "TOKEN=0therwise"]);
        let output = text(&wrong.stderr);
        assert!(
            output.contains("answered 401") && !output.contains("0therwise"),
            "{output}"
        );
    })
    .await
    .unwrap();
}

/// Findings about calls of types other than `rest`, by the documents next to the definition.
#[test]
fn arguments_of_all_types_are_checked() {
    const ASYNCAPI: &str = "asyncapi: 2.6.0
info: {title: t, version: 1.0.0}
servers: {broker: {url: 'nats://127.0.0.1:1', protocol: nats}}
channels:
  light/{lamp}:
    parameters: {lamp: {schema: {type: string}}}
    publish: {operationId: send, message: {payload: {type: object, required: [lumens], properties: {lumens: {type: integer}, sentAt: {type: string, format: date-time}}}}}
";
    const PROTO: &str = "syntax = \"proto3\"; service S { rpc M(A) returns (A); } message A { int32 count = 1; bool on = 2; }";
    let folder = services(&[("a.yaml", ASYNCAPI), ("s.proto", PROTO)]);
    let asyncapi = "type: asyncapi, operation: 'a.yaml#send'";
    let graphql =
        "type: graphql, operation: 'http://h/g#query#pet', metadata: {argumentTypes: {id: 'ID!'}}";
    let http = "type: http, operation: {method: GET, uri: 'http://h/{id}'}";
    for (function, arguments, expected) in [
        (
            "type: rpc, operation: 's.proto#S#M'",
            "{count: '${ .n }'}",
            None,
        ),
        (
            "type: rpc, operation: 's.proto#S#M'",
            "{cuont: '${ .n }'}",
            Some("no field `cuont`; did you mean `count`?"),
        ),
        (
            "type: rpc, operation: 's.proto#S#M'",
            "{count: 1.5}",
            Some("`count`"),
        ),
        (
            "type: rpc, operation: 's.proto#S#N'",
            "{count: 1}",
            Some("has no method `N`"),
        ),
        (
            asyncapi,
            "{lamp: '${ .n }', lumens: 5, sentAt: '${ now | todate }'}",
            None,
        ),
        (
            asyncapi,
            "{lmp: x, lumens: 5}",
            Some(
                "the parameter `lamp` of the channel is missing, and `lmp` is there; did you mean `lamp`?",
            ),
        ),
        (
            asyncapi,
            "{lamp: x, lumens: 5, sentAt: '${ now }'}",
            Some("write `${ now | todate }`"),
        ),
        (asyncapi, "{lamp: x, lumns: 5}", Some("`lumens` is missing")),
        (graphql, "{id: '${ .n }'}", None),
        (graphql, "{}", Some("the argument `id` is missing")),
        (http, "{id: '${ .n }'}", None),
        (http, "{id: 1, more: 1}", Some("`more` has no place")),
    ] {
        let mut text = definition(function).replace("{a: 1}", arguments);
        if function == graphql {
            let call = format!("arguments: {arguments}");
            text = text.replace(&call, &format!("{call}, selectionSet: '{{ id }}'"));
        }
        if function == http {
            text = text
                .replace("id: w\n", "name: w\n")
                .replace("'0.8'", "'0.9'")
                .replace("name: A", "name: a")
                .replace("[{functionRef", "[{name: ask, functionRef");
        }
        std::fs::write(folder.path().join("w.sw.yaml"), text).unwrap();
        let done = swirl(folder.path(), &[], &["validate", "w.sw.yaml"]);
        let output = format!("{}{}", self::text(&done.stdout), self::text(&done.stderr));
        match expected {
            None => assert_eq!(
                done.status.code(),
                Some(0),
                "{function} {arguments}: {output}"
            ),
            Some(expected) => {
                assert_eq!(
                    done.status.code(),
                    Some(1),
                    "{function} {arguments}: {output}"
                );
                assert!(
                    output.contains(expected),
                    "{function} {arguments}: {output}"
                );
            }
        }
    }
}

/// A GraphQL service that reveals its schema only to clients with a token.
#[tokio::test(flavor = "multi_thread")]
async fn graphql_calls_are_checked_against_the_services_schema() {
    use axum::Json;
    use axum::http::{HeaderMap, StatusCode};
    use serde_json::{Value, json};
    let id = json!({"kind": "NON_NULL", "name": null, "ofType": {"kind": "SCALAR", "name": "ID"}});
    let arguments = json!([{"name": "id", "type": id, "defaultValue": null}]);
    let pet = json!({"kind": "OBJECT", "name": "Pet"});
    let fields = json!([{"name": "pet", "args": arguments, "type": pet}]);
    let schema = json!({"data": {"__schema": {
        "queryType": {"name": "Query", "fields": fields},
        "mutationType": null,
        "types": [
            {"kind": "OBJECT", "name": "Query", "fields": fields},
            {"kind": "OBJECT", "name": "Pet", "fields": [{"name": "name", "args": [], "type": {"kind": "SCALAR", "name": "String"}}]},
            {"kind": "SCALAR", "name": "ID"}, {"kind": "SCALAR", "name": "String"},
        ],
    }}});
    let output = schema.to_string();
    let answer = async move |headers: HeaderMap, Json(asked): Json<Value>| {
        let given = headers.get("authorization").map(|value| value.as_bytes());
        if given != Some(b"Bearer 0ps3cret") {
            return Err(StatusCode::UNAUTHORIZED);
        }
        let query = asked["query"].as_str().unwrap();
        let is_question = query.contains("__schema");
        let pet = json!({"data": {"pet": {"name": "Snuffles"}}});
        Ok(Json(if is_question { schema.clone() } else { pet }))
    };
    let router = axum::Router::new().route("/graphql", axum::routing::post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}/graphql", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let at = endpoint.clone();
    let all = move |commands: &[&str], field: &str, call: &str| {
        let function = format!("type: graphql, operation: '{at}#query#{field}', authRef: token");
        let document = definition(&function)
            .replace("arguments: {a: 1}", call)
            .replace("{output: .arguments}", "{output: .pet}")
            .replace(
                "states:",
                "secrets: [TOKEN]\nauth: [{name: token, scheme: bearer, properties: {token: '${ $SECRETS.TOKEN }'}}]\nstates:",
            );
        std::fs::write(path.join("w.sw.yaml"), document).unwrap();
        let secret = [("SWIRL_SECRET_TOKEN", "0ps3cret")];
        let done = swirl(&path, &secret, &[commands, &["w.sw.yaml"]].concat());
        let text = format!("{}{}", text(&done.stdout), text(&done.stderr));
        (done.status.code(), text)
    };
    tokio::task::spawn_blocking(move || {
        let good = "arguments: {id: 7}, selectionSet: '{ name }'";
        let (code, text) = all(&["validate"], "pet", good);
        assert_eq!(code, Some(0), "{text}");
        assert!(!text.contains("note:"), "{text}");
        let (code, text) = all(&["run"], "pet", good);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("Snuffles"), "{text}");
        for (field, call, expected) in [
            (
                "pets",
                good,
                "the service has no query `pets`; did you mean `pet`?",
            ),
            (
                "pet",
                "arguments: {iD: 7}, selectionSet: '{ name }'",
                "the argument `id` is missing, and `iD` is there; did you mean `id`?",
            ),
            (
                "pet",
                "arguments: {id: 7, age: 1}, selectionSet: '{ name }'",
                "the argument `age` is unknown to the service",
            ),
            (
                "pet",
                "arguments: {id: 7}, selectionSet: '{ nmae }'",
                "the selection set: `Pet` has no field `nmae`; did you mean `name`?",
            ),
            (
                "pet",
                "arguments: {id: 7}, selectionSet: '{ }'",
                "`pet` is `Pet`, of which fields must be selected",
            ),
        ] {
            for (command, refused) in [("validate", 1), ("run", 2)] {
                let (code, text) = all(&[command], field, call);
                assert_eq!(code, Some(refused), "{command}: {text}");
                assert!(text.contains(expected), "{command}: {text}");
            }
            assert_eq!(all(&["validate", "--offline"], field, call).0, Some(0));
        }

        // A service without introspection doesn't prevent a deployment, but `validate` reports it.
        let dead = definition("type: graphql, operation: 'http://127.0.0.1:1/graphql#query#pet'")
            .replace("arguments: {a: 1}", good);
        std::fs::write(path_of(&folder, "dead.sw.yaml"), &dead).unwrap();
        let done = swirl(folder.path(), &[], &["validate", "dead.sw.yaml"]);
        let printed = self::text(&done.stdout);
        assert_eq!(done.status.code(), Some(0), "{printed}");
        assert!(
            printed.contains("note: the document of a function is unavailable")
                && printed.contains("http://127.0.0.1:1/graphql"),
            "{printed}"
        );
        let run = swirl(folder.path(), &[], &["run", "dead.sw.yaml"]);
        assert_eq!(run.status.code(), Some(1), "{run:?}");

        // A scenario may contain the schema in the form that the service returns.
        let document = definition(&format!("type: graphql, operation: '{endpoint}#query#pet'"));
        let document = document.replace(
            "arguments: {a: 1}",
            "arguments: {id: '${ .id }'}, selectionSet: '{ name }'",
        );
        std::fs::write(path_of(&folder, "w.sw.yaml"), document).unwrap();
        for (id, code) in [("1", 0), ("true", 1), ("{}", 1)] {
            let scenario = format!(
                "workflows: [w.sw.yaml]\ninput: {{id: {id}}}\nresources: {{'{endpoint}': {output}}}\n\
                 functions: {{f: {{return: {{pet: null}}}}}}\nexpect: {{status: completed}}\n"
            );
            std::fs::write(path_of(&folder, "w.scenario.yaml"), scenario).unwrap();
            let done = swirl(folder.path(), &[], &["test", "w.scenario.yaml"]);
            assert_eq!(done.status.code(), Some(code), "{id}: {done:?}");
        }
    })
    .await
    .unwrap();
}

fn path_of(folder: &tempfile::TempDir, name: &str) -> std::path::PathBuf {
    folder.path().join(name)
}

/// A `resource` of an early edition that is a URL is called with `POST`, with the parameters as JSON. None of their names has
/// a meaning of its own there.
#[tokio::test(flavor = "multi_thread")]
async fn a_resource_that_is_a_url_is_called_with_post() {
    use axum::extract::Json;
    use axum::routing::post;
    use serde_json::Value;
    let add = async |Json(asked): Json<Value>| {
        let sum = asked["to"].as_i64().map(|to| to + 1);
        Json(serde_json::json!({"sum": sum}))
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let echo = async |Json(asked): Json<Value>| Json(serde_json::json!({"got": asked}));
    let router = axum::Router::new()
        .route("/add", post(add))
        .route("/echo", post(echo));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let folder = tempfile::tempdir().unwrap();
    let document = format!(
        "id: t\nname: t\nversion: 1.0.0\nfunctions: [{{name: add, resource: 'http://{address}/add'}}, \
         {{name: echo, resource: 'http://{address}/echo', type: rest}}]\n\
         states: [{{name: A, type: OPERATION, actionMode: SEQUENTIAL, start: {{kind: DEFAULT}}, \
         actions: [{{functionRef: {{refName: add, parameters: {{to: $.n}}}}}}, \
         {{functionRef: {{refName: echo, parameters: {{body: x, HEADER_a: $.n}}}}}}], end: {{kind: DEFAULT}}}}]\n"
    );
    std::fs::write(folder.path().join("t.sw.yaml"), document).unwrap();
    let run = move || {
        let arguments = ["run", "t.sw.yaml", "--input", "{\"n\": 4}"];
        swirl(folder.path(), &[], &arguments)
    };
    let done = tokio::task::spawn_blocking(run).await.unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let output: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(output["sum"], 5, "{output}");
    let got = serde_json::json!({"body": "x", "HEADER_a": 4});
    assert_eq!(output["got"], got, "{output}");
}
