//! `swirl call` against a service that echoes the request.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use axum::Json;
use axum::extract::Request;
use axum::response::IntoResponse;
use serde_json::{Value, json};

/// Echoes the content of each request, and counts requests.
struct Service {
    base: String,
    requests: Arc<AtomicUsize>,
    /// Keeps the service alive.
    _runtime: tokio::runtime::Runtime,
}

impl Service {
    fn start() -> Service {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let (count, own) = (requests.clone(), base.clone());
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let answer = move |request: Request| answer(request, count.clone(), own.clone());
            let router = axum::Router::new().fallback(answer);
            axum::serve(listener, router).await
        });
        Service {
            base,
            requests,
            _runtime: runtime,
        }
    }

    fn count(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn answer(request: Request, count: Arc<AtomicUsize>, base: String) -> impl IntoResponse {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let body = String::from_utf8(body.to_vec()).unwrap();
    let path = parts.uri.path();
    if path == "/openapi.yaml" {
        return openapi(&base).into_response();
    }
    if body.contains("__type") || body.contains("__schema") {
        // It rejects introspection.
        return Json(json!({"errors": [{"message": "no"}]})).into_response();
    }
    count.fetch_add(1, Ordering::SeqCst);
    let header = |name: &str| {
        let value = parts.headers.get(name);
        value.map(|value| value.to_str().unwrap().to_owned())
    };
    match path {
        "/slow" => std::future::pending::<()>().await,
        "/token" => return Json(json!({"access_token": "0pen-sesame"})).into_response(),
        _ => {}
    }
    let seen = json!({
        "method": parts.method.as_str(),
        "uri": parts.uri.to_string(),
        "authorization": header("authorization"),
        "key": header("idempotency-key"),
        "body": body,
    });
    match path {
        "/missing" => (axum::http::StatusCode::NOT_FOUND, Json(seen)).into_response(),
        "/graphql" => Json(json!({"data": {"pet": seen}})).into_response(),
        _ => Json(seen).into_response(),
    }
}

fn openapi(base: &str) -> String {
    format!(
        "openapi: 3.0.3\nservers: [{{url: '{base}'}}]\npaths:\n  /orders/{{id}}:\n    put:\n      operationId: putOrder\n      \
         parameters: [{{name: id, in: path, required: true, schema: {{type: integer}}}}]\n      \
         requestBody: {{content: {{application/json: {{schema: {{type: object}}}}}}}}\n      \
         responses: {{'200': {{description: ok}}}}\n"
    )
}

fn service() -> &'static Service {
    static SERVICE: OnceLock<Service> = OnceLock::new();
    SERVICE.get_or_init(Service::start)
}

/// A definition with one function and an action that calls it.
fn definition(more: &str, function: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let selected = match function.contains("graphql") {
        true => ", selectionSet: '{ name }'",
        false => "",
    };
    let text = format!(
        "id: w\nversion: 1.0.0\nspecVersion: '0.8'\n{more}functions:\n- {{name: f, {function}}}\n- {{name: e, type: expression, operation: .a}}\nstates:\n\
         - name: A\n  type: operation\n  actions: [{{functionRef: {{refName: f, arguments: '${{ . }}'{selected}}}}}]\n  end: true\n"
    );
    std::fs::write(folder.path().join("w.sw.yaml"), text).unwrap();
    folder
}

fn call(folder: &Path, arguments: &[&str]) -> Output {
    let arguments = [&["call", "w.sw.yaml"], arguments].concat();
    Command::new(env!("CARGO_BIN_EXE_swirl"))
        .current_dir(folder)
        .args(arguments)
        .env_remove("NO_COLOR")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn as_json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn request_answer_and_time_are_shown() {
    let base = &service().base;
    let function = format!("type: rest, operation: '{base}/openapi.yaml#putOrder'");
    let folder = definition("", &function);
    let arguments = ["f", "--args", "{\"id\": 7, \"customer\": \"Ada\"}"];
    let done = call(folder.path(), &arguments);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let answer = as_json(&done);
    assert_eq!(
        (&answer["method"], &answer["uri"]),
        (&json!("PUT"), &json!("/orders/7"))
    );
    let shown = text(&done.stderr);
    assert!(
        shown.starts_with(&format!("PUT {base}/orders/7\n")),
        "{shown}"
    );
    assert!(shown.contains("\"customer\": \"Ada\""), "{shown}");
    let key = answer["key"].as_str().unwrap();
    assert!(
        shown.contains(&format!("idempotency-key: {key}\n")),
        "{shown}"
    );
    assert!(
        shown.contains("\nanswer: 200 after ") && shown.ends_with(" ms\n"),
        "{shown}"
    );

    let dry = call(folder.path(), &[&arguments[..], &["--dry-run"]].concat());
    assert_eq!(dry.status.code(), Some(0), "{dry:?}");
    let shown = text(&dry.stdout);
    assert!(
        shown.starts_with(&format!("PUT {base}/orders/7\n")),
        "{shown}"
    );
    assert!(text(&dry.stderr).is_empty(), "{dry:?}");

    let json = [&arguments[..], &["--dry-run", "--output", "json"]].concat();
    let dry = as_json(&call(folder.path(), &json));
    assert_eq!(
        (&dry["function"], &dry["type"]),
        (&json!("f"), &json!("rest"))
    );
    assert_eq!(dry["requests"][0]["body"]["text"], "{\"customer\":\"Ada\"}");
    assert!(
        dry.get("answer").is_none() && dry.get("milliseconds").is_none(),
        "{dry}"
    );

    let done = as_json(&call(
        folder.path(),
        &[&arguments[..], &["--output", "json"]].concat(),
    ));
    assert_eq!(
        (&done["status"], &done["answer"]["method"]),
        (&json!(200), &json!("PUT"))
    );
    assert!(done["milliseconds"].as_f64().unwrap() > 0.0, "{done}");
}

#[test]
fn a_task_describes_its_request() {
    let base = &service().base;
    let folder = tempfile::tempdir().unwrap();
    let document = format!(
        "document: {{dsl: 1.0.3, namespace: a, name: w, version: 1.0.0}}\ndo:\n  - pay:\n      call: http\n      with:\n        \
         method: post\n        endpoint: {base}/charge\n        body: {{order: '${{ .order }}', of: '${{ $input.order }}'}}\n"
    );
    std::fs::write(folder.path().join("w.sw.yaml"), document).unwrap();
    let arguments = [
        "pay",
        "--args",
        "{\"order\": 7}",
        "--dry-run",
        "--output",
        "json",
    ];
    let dry = as_json(&call(folder.path(), &arguments));
    let request = &dry["requests"][0];
    assert_eq!(request["target"], format!("POST {base}/charge"), "{dry}");
    let body: Value = serde_json::from_str(request["body"]["text"].as_str().unwrap()).unwrap();
    assert_eq!(body, json!({"order": 7, "of": 7}), "{dry}");
    let wrong = call(folder.path(), &["pay", "--args", "7"]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    assert!(
        text(&wrong.stderr).contains("pass the task's input with '--args'"),
        "{wrong:?}"
    );
}

#[test]
fn a_dry_run_sends_nothing() {
    let service = Service::start();
    let base = &service.base;
    for (more, function) in [
        (
            String::new(),
            format!("type: rest, operation: '{base}/openapi.yaml#putOrder'"),
        ),
        (
            String::new(),
            format!("type: odata, operation: '{base}/odata#Persons'"),
        ),
        (
            String::new(),
            format!("type: custom, operation: 'rest:POST:{base}/direct'"),
        ),
        (
            format!(
                "auth: [{{name: a, scheme: oauth2, properties: {{authority: '{base}/token', grantType: clientCredentials, clientId: me, clientSecret: hidden-well}}}}]\n"
            ),
            format!(
                "type: graphql, operation: '{base}/graphql#query#pet', authRef: a, metadata: {{argumentTypes: {{id: Int!}}}}"
            ),
        ),
    ] {
        let folder = definition(&more, &function);
        let arguments = match function.contains("odata") {
            true => "{}",
            false => "{\"id\": 7}",
        };
        let mut given = vec!["f", "--args", arguments, "--dry-run"];
        if function.contains("graphql") {
            given.extend(["--selection-set", "{ name }"]);
        }
        let dry = call(folder.path(), &given);
        assert_eq!(dry.status.code(), Some(0), "{function}: {dry:?}");
        assert!(
            text(&dry.stdout).contains(base.as_str()),
            "{function}: {dry:?}"
        );
        assert_eq!(service.count(), 0, "{function}");
    }
}

#[test]
fn every_function_type_can_be_called() {
    let base = &service().base;
    for (function, arguments, expected) in [
        (
            format!("type: odata, operation: '{base}/odata#Persons'"),
            "{}",
            "/odata/Persons",
        ),
        (
            format!(
                "type: graphql, operation: '{base}/graphql#query#pet', metadata: {{argumentTypes: {{id: Int!}}}}"
            ),
            "{\"id\": 1}",
            "/graphql",
        ),
        (
            format!("type: custom, operation: 'rest:POST:{base}/direct'"),
            "{\"a\": 1}",
            "/direct",
        ),
    ] {
        let folder = definition("", &function);
        let selected = ["f", "--args", arguments, "--selection-set", "{ uri }"];
        let given: &[&str] = match function.contains("graphql") {
            true => &selected,
            false => &selected[..3],
        };
        let done = call(folder.path(), given);
        assert_eq!(done.status.code(), Some(0), "{function}: {done:?}");
        let mut answer = as_json(&done);
        if answer.get("pet").is_some() {
            answer = answer["pet"].take();
        }
        assert_eq!(answer["uri"], expected, "{function}");
        assert!(
            text(&done.stderr).contains(&format!("{base}{expected}")),
            "{function}: {done:?}"
        );
    }
    // A user-defined connector, and a request that edition 0.9 describes inline.
    let folder = definition("", "type: mine, operation: x");
    let connector = format!("mine={base}/mine");
    let done = call(folder.path(), &["f", "--connector", &connector]);
    assert_eq!(as_json(&done)["uri"], "/mine", "{done:?}");
    let done = call(
        folder.path(),
        &[
            "f",
            "--args",
            "[1]",
            "--connector",
            "mine=exec:cat",
            "--output",
            "json",
        ],
    );
    assert_eq!(
        as_json(&done)["answer"]["arguments"],
        json!([1]),
        "{done:?}"
    );
    let text_of = format!(
        "name: w\nversion: 1.0.0\nspecVersion: '0.9'\nfunctions: [{{name: f, type: http, operation: {{uri: '{base}/in-place', method: POST}}}}]\nstates:\n\
         - name: a\n  type: operation\n  actions: [{{name: b, functionRef: f}}]\n  end: true\n"
    );
    std::fs::write(folder.path().join("w.sw.yaml"), text_of).unwrap();
    let done = call(folder.path(), &["f"]);
    assert_eq!(as_json(&done)["uri"], "/in-place", "{done:?}");
}

/// Nothing listens at these addresses. Only the requests that would be sent are checked.
#[test]
fn dry_runs_show_messages_and_rpc_calls() {
    const ASYNCAPI: &str = "asyncapi: 2.6.0
info: {title: t, version: 1.0.0}
servers: {broker: {url: 'nats://127.0.0.1:1', protocol: nats}}
channels:
  light/{lamp}:
    parameters: {lamp: {schema: {type: string}}}
    publish: {operationId: send, message: {payload: {type: object, properties: {lumens: {type: integer}}}}}
";
    const PROTO: &str =
        "syntax = \"proto3\"; service S { rpc M(A) returns (A); } message A { int32 count = 1; }";
    let folder = definition("", "type: asyncapi, operation: 'a.yaml#send'");
    std::fs::write(folder.path().join("a.yaml"), ASYNCAPI).unwrap();
    let given = [
        "f",
        "--args",
        "{\"lamp\": \"l1\", \"lumens\": 3}",
        "--dry-run",
    ];
    let dry = call(folder.path(), &given);
    let shown = text(&dry.stdout);
    assert_eq!(dry.status.code(), Some(0), "{dry:?}");
    assert!(
        shown.starts_with("nats: message to `light/l1` at 127.0.0.1:1"),
        "{shown}"
    );
    assert!(shown.contains("\"lumens\": 3"), "{shown}");

    let folder = definition(
        "",
        "type: rpc, operation: 's.proto#S#M', metadata: {server: 'grpc://127.0.0.1:1'}",
    );
    std::fs::write(folder.path().join("s.proto"), PROTO).unwrap();
    let dry = call(
        folder.path(),
        &["f", "--args", "{\"count\": 3}", "--dry-run"],
    );
    let shown = text(&dry.stdout);
    assert!(shown.starts_with("grpc://127.0.0.1:1/S/M\n"), "{dry:?}");
    assert!(shown.contains("\"count\": 3"), "{shown}");
    let failed = call(folder.path(), &["f", "--args", "{\"count\": 3}"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert!(
        text(&failed.stderr).contains("no connection to grpc://127.0.0.1:1"),
        "{failed:?}"
    );
}

#[test]
fn secrets_are_not_shown() {
    let base = &service().base;
    let function = format!("type: custom, operation: 'rest:POST:{base}/direct', authRef: a");
    let bearer = "secrets: [TOKEN]\nauth: [{name: a, scheme: bearer, properties: {token: '${ $SECRETS.TOKEN }'}}]\n";
    let oauth2 = format!(
        "auth: [{{name: a, scheme: oauth2, properties: {{authority: '{base}/token', grantType: clientCredentials, clientId: me, clientSecret: hidden-well}}}}]\n"
    );
    for (more, secrets) in [
        (bearer.to_owned(), &["s3cret-word"][..]),
        (oauth2, &["hidden-well", "0pen-sesame"][..]),
    ] {
        let folder = definition(&more, &function);
        for output in ["text", "json"] {
            // The service echoes the request including the credentials.
            let given = [
                "f",
                "--args",
                &format!("{{\"a\": \"{}\"}}", secrets[0]),
                "--secret",
                "TOKEN=s3cret-word",
                "--output",
                output,
            ];
            let done = call(folder.path(), &given);
            assert_eq!(done.status.code(), Some(0), "{done:?}");
            let shown = format!("{}{}", text(&done.stdout), text(&done.stderr));
            assert!(shown.contains("***"), "{shown}");
            for secret in secrets {
                assert!(!shown.contains(secret), "{shown}");
            }
        }
    }
    let folder = definition(bearer, &function);
    let without = call(folder.path(), &["f"]);
    assert_eq!(without.status.code(), Some(2), "{without:?}");
    assert!(text(&without.stderr).contains("TOKEN"), "{without:?}");
}

#[test]
fn errors_are_reported() {
    let base = &service().base;
    let direct = |path: &str| {
        definition(
            "",
            &format!("type: custom, operation: 'rest:GET:{base}{path}'"),
        )
    };
    let failed = call(direct("/missing").path(), &["f"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let output = text(&failed.stderr);
    assert!(
        output.contains("error: 404 after ") && failed.stdout.is_empty(),
        "{output}"
    );
    let failed = as_json(&call(direct("/missing").path(), &["f", "--output", "json"]));
    assert_eq!(
        (&failed["status"], &failed["error"]["status"]),
        (&json!(404), &json!(404))
    );

    let late = call(direct("/slow").path(), &["f", "--timeout", "200ms"]);
    assert_eq!(late.status.code(), Some(1), "{late:?}");
    assert!(
        text(&late.stderr).contains("no answer within 0.2 s"),
        "{late:?}"
    );

    let folder = direct("/x");
    for (given, expected) in [
        (&["g"][..], "the definition has no function 'g'"),
        (&["e"], "the function 'e' is an expression"),
        (&["f", "--args", "{"], "--args"),
        (
            &["f", "--selection-set", "{ a }"],
            "only for functions of type 'graphql'",
        ),
        (&["f", "--timeout", "soon"], "--timeout"),
    ] {
        let refused = call(folder.path(), given);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(text(&refused.stderr).contains(expected), "{refused:?}");
    }
    let noted = call(folder.path(), &["f", "--args", "{\"a\": \"${ .b }\"}"]);
    assert!(
        text(&noted.stderr).contains("are not evaluated"),
        "{noted:?}"
    );
}
