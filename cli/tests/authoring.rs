//! The tools for authors, run as commands.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn swirl(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_swirl"));
    command
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

const LOOSE: &str = "# kept\nid:   w # and this\nspecVersion: '0.8'\n";
const TIDY: &str = "# kept\nid: w # and this\nspecVersion: \"0.8\"\n";

#[test]
fn fmt_formats_files_in_place_and_lists_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("w.sw.yaml");
    std::fs::write(&file, LOOSE).unwrap();
    std::fs::write(folder.path().join("tidy.scenario.yaml"), TIDY).unwrap();
    std::fs::write(folder.path().join("other.yaml"), LOOSE).unwrap();

    let checked = swirl(folder.path(), &["fmt", "--check", "."]);
    assert_eq!(checked.status.code(), Some(1));
    assert_eq!(text(&checked.stdout).trim(), "./w.sw.yaml");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), LOOSE);

    let done = swirl(folder.path(), &["fmt", "."]);
    assert_eq!(done.status.code(), Some(0));
    assert_eq!(text(&done.stderr).trim(), "1 of 2 files formatted");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), TIDY);
    let other = std::fs::read_to_string(folder.path().join("other.yaml"));
    assert_eq!(other.unwrap(), LOOSE);

    assert_eq!(
        swirl(folder.path(), &["fmt", "--check", "."]).status.code(),
        Some(0)
    );
    let json = swirl(folder.path(), &["fmt", "--output", "json", "other.yaml"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["files"][0]["changed"], true);
}

#[test]
fn fmt_leaves_invalid_files_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.sw.yaml");
    std::fs::write(&file, "a: [1\n").unwrap();
    let done = swirl(folder.path(), &["fmt", "bad.sw.yaml"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(
        text(&done.stderr).starts_with("bad.sw.yaml:1:4: error: "),
        "{done:?}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "a: [1\n");
    assert_eq!(
        swirl(folder.path(), &["fmt", "missing.sw.yaml"])
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn fmt_formats_stdin() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_swirl"))
        .args(["fmt", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(LOOSE.as_bytes())
        .unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), text(&done.stdout)), (Some(0), TIDY));
}

const WAITING: &str = "id: w\nversion: 1.0.0\nspecVersion: '0.8'\nevents: [{name: E, type: t}]\nstates: [{name: A, type: switch, eventConditions: [{eventRef: E, end: true}], defaultCondition: {end: true}}]\n";

#[test]
fn lints_exit_code_shows_whether_something_was_found() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("w.sw.yaml"), WAITING).unwrap();
    std::fs::write(folder.path().join("bad.sw.yaml"), LOOSE).unwrap();
    for (arguments, code) in [
        (&["lint", "w.sw.yaml"][..], 1),
        (&["lint", "--allow", "wait-without-timeout", "w.sw.yaml"], 0),
        (&["lint", "bad.sw.yaml"], 1),
        (&["lint", "missing.sw.yaml"], 2),
        (&["lint", "--allow", "wait-without-time", "w.sw.yaml"], 2),
        (&["lint", "--rules"], 0),
        (&["explain", "wait-without-timeout"], 0),
    ] {
        let done = swirl(folder.path(), arguments);
        assert_eq!(done.status.code(), Some(code), "{arguments:?} {done:?}");
    }
    let done = swirl(folder.path(), &["lint", "w.sw.yaml"]);
    let shown = text(&done.stdout);
    assert!(
        shown.starts_with("w.sw.yaml:5:10: warning[wait-without-timeout]: the state 'A'"),
        "{shown}"
    );
    let json = swirl(folder.path(), &["lint", "--output", "json", "."]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        json["files"][1]["findings"][0]["rule"],
        "wait-without-timeout"
    );
    assert_eq!(json["files"][0]["valid"], false);
}

#[test]
fn each_template_has_a_passing_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let listed = swirl(folder.path(), &["new", "--list", "--output", "json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let names: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["template"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 6);
    for edition in ["1.0", "0.8"] {
        for name in &names {
            let arguments = [
                "new",
                name,
                "--template",
                name,
                "--folder",
                edition,
                "--edition",
                edition,
            ];
            let done = swirl(folder.path(), &arguments);
            assert_eq!(done.status.code(), Some(0), "{done:?}");
        }
        let tested = swirl(folder.path(), &["test", edition]);
        assert!(
            text(&tested.stdout).contains("6 passed, 0 failed"),
            "{tested:?}"
        );
        let checked = swirl(folder.path(), &["validate", "--deny-warnings", edition]);
        assert_eq!(checked.status.code(), Some(0), "{checked:?}");
        let shown = text(&checked.stdout);
        let of_edition = shown.matches(&format!("valid (edition {edition},")).count();
        assert_eq!(of_edition, 6, "{shown}");
    }
}

/// Answers each request as all services of the templates would.
async fn service() -> String {
    let answer = async || {
        axum::Json(
            json!({"id": "j-1", "state": "done", "name": "Ada", "booking": "F1", "price": 1, "sent": true}),
        )
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://localhost:8080=http://{address}")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_template_runs() {
    let folder = tempfile::tempdir().unwrap();
    let server = service().await;
    let event = |file: &str, kind: &str, source: &str, data: Value| {
        let event = json!({"specversion": "1.0", "id": file, "type": kind, "source": source,
            "order": "7", "request": "7", "data": data});
        std::fs::write(folder.path().join(file), event.to_string()).unwrap();
    };
    event(
        "decided.json",
        "org.example.decided",
        "/approvals",
        json!({"approved": true}),
    );
    event(
        "placed.json",
        "org.example.placed",
        "/shop",
        json!({"item": "book"}),
    );
    event(
        "paid.json",
        "org.example.paid",
        "/bank",
        json!({"amount": 3}),
    );
    let all = [
        (
            "aggregation",
            &["placed.json", "paid.json"][..],
            r#""item""#,
        ),
        ("approval", &["decided.json"], r#""status": "approved""#),
        ("polling", &[], r#""state": "done""#),
        ("request-response", &[], r#""status": "done""#),
        ("saga", &[], r#""status": "booked""#),
        ("scheduled", &[], r#""sent": true"#),
    ];
    let all = all.iter();
    for ((name, events, output), edition) in all.flat_map(|it| [(it, "1.0"), (it, "0.8")]) {
        let id = format!("{name}-{}", edition.replace('.', "-"));
        let arguments = ["new", &id, "--template", name, "--edition", edition];
        let made = swirl(folder.path(), &arguments);
        assert_eq!(made.status.code(), Some(0), "{made:?}");
        let file = format!("{id}.sw.yaml");
        let path = folder.path().join(&file);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("PT30S", "PT0.1S")).unwrap();
        let input =
            r#"{"id": "7", "request": "7", "trip": "Paris", "amount": 3, "what": "report"}"#;
        let mut arguments = vec!["run", &file, "--function-server", &server];
        if *name != "aggregation" {
            arguments.extend(["--input", input]);
        }
        arguments.extend(events.iter().flat_map(|event| ["--event", event]));
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        let folder = folder.path().to_owned();
        let run = move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            swirl(&folder, &arguments)
        };
        let done = tokio::task::spawn_blocking(run).await.unwrap();
        assert_eq!(done.status.code(), Some(0), "{id}: {done:?}");
        let shown = self::text(&done.stdout);
        assert!(shown.contains(output), "{id}: {shown}");
    }
}

#[test]
fn new_overwrites_nothing_and_calls_each_operation() {
    let folder = tempfile::tempdir().unwrap();
    let document = "openapi: 3.0.0\ninfo: {title: t, version: '1'}\nservers: [{url: 'http://localhost'}]\npaths:\n  /a: {get: {operationId: getA, responses: {'200': {description: d}}}}\n";
    std::fs::write(folder.path().join("shop.yaml"), document).unwrap();
    let arguments = ["new", "order", "--openapi", "shop.yaml"];
    assert_eq!(swirl(folder.path(), &arguments).status.code(), Some(0));
    let again = swirl(folder.path(), &arguments);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("already exists"), "{again:?}");
    let done = swirl(
        folder.path(),
        &["new", "old", "--openapi", "shop.yaml", "--edition", "0.8"],
    );
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    for (name, part) in [
        ("order", "operationId: getA\n"),
        ("old", "{name: getA, operation: \"shop.yaml#getA\"}"),
    ] {
        let file = format!("{name}.sw.yaml");
        let written = std::fs::read_to_string(folder.path().join(&file)).unwrap();
        assert!(written.contains(part), "{written}");
        let checked = swirl(folder.path(), &["validate", "--deny-warnings", &file]);
        assert_eq!(checked.status.code(), Some(0), "{checked:?}");
        let tested = swirl(folder.path(), &["test", &format!("{name}.scenario.yaml")]);
        assert_eq!(tested.status.code(), Some(0), "{tested:?}");
    }
    // With a document beside its folder, it can be moved.
    let arguments = [
        "new",
        "order",
        "--openapi",
        "shop.yaml",
        "--folder",
        "other/new",
    ];
    for (edition, written) in [
        ("1.0", "endpoint: \"../../shop.yaml\""),
        ("0.8", "operation: \"../../shop.yaml#getA\""),
    ] {
        let arguments = [&arguments[..], &["--edition", edition]].concat();
        let done = swirl(folder.path(), &arguments);
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        let new = folder.path().join("other/new");
        let definition = std::fs::read_to_string(new.join("order.sw.yaml")).unwrap();
        assert!(definition.contains(written), "{definition}");
        let tested = swirl(folder.path(), &["test", "other/new/order.scenario.yaml"]);
        assert_eq!(tested.status.code(), Some(0), "{tested:?}");
        std::fs::remove_dir_all(new).unwrap();
    }
    for name in ["a/b", "-x"] {
        assert_eq!(
            swirl(folder.path(), &["new", "--", name]).status.code(),
            Some(2),
            "{name}"
        );
    }
}

#[test]
fn test_filters_scenarios_and_shows_coverage() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["saga", "polling"] {
        let arguments = ["new", name, "--template", name, "--edition", "0.8"];
        let done = swirl(folder.path(), &arguments);
        assert_eq!(done.status.code(), Some(0), "{done:?}");
    }
    let done = swirl(
        folder.path(),
        &[
            "test",
            "--filter",
            "BOOKED is cancelled",
            "--coverage",
            "--lcov",
            "c.info",
            "--coverage-html",
            "c.html",
            "--histories",
            "h.jsonl",
            ".",
        ],
    );
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let shown = text(&done.stdout);
    assert!(shown.contains("\nsaga.sw.yaml: states 6 of 7, "), "{shown}");
    assert!(shown.contains("state not run: Booked\n"), "{shown}");
    assert!(shown.ends_with("1 passed, 0 failed\n"), "{shown}");
    let lcov = std::fs::read_to_string(folder.path().join("c.info")).unwrap();
    assert!(lcov.contains("FNF:7\nFNH:6\n"), "{lcov}");
    let histories = std::fs::read_to_string(folder.path().join("h.jsonl")).unwrap();
    let history: Value = serde_json::from_str(histories.lines().next().unwrap()).unwrap();
    assert_eq!(history["status"], "completed", "{history}");
    assert!(
        history["history"]
            .as_array()
            .is_some_and(|all| all.len() > 6)
    );
    let page = std::fs::read_to_string(folder.path().join("c.html")).unwrap();
    for part in [
        ">saga.sw.yaml</a></td><td class=\"no\">6 of 7</td>",
        "class=\"card covered\"",
        "class=\"card uncovered\"",
        "<td>Booked</td><td class=\"no\">not run</td>",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    let folded = swirl(
        folder.path(),
        &["test", "--coverage-html", "not/there.html", "."],
    );
    assert_eq!(folded.status.code(), Some(2), "{folded:?}");
    let done = swirl(
        folder.path(),
        &["test", "--coverage", "--output", "json", "."],
    );
    let json: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(json["coverage"][0]["shares"]["states"]["ran"], 4);
    let none = swirl(folder.path(), &["test", "--filter", "nothing like it", "."]);
    assert_eq!(none.status.code(), Some(2));
}

/// The next line of a process's output that contains a text.
fn line_with(lines: &mut impl Iterator<Item = std::io::Result<String>>, wanted: &str) {
    for line in lines {
        if line.unwrap().contains(wanted) {
            return;
        }
    }
    panic!("the output ended without '{wanted}'");
}

#[test]
fn test_watches_the_documents() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        swirl(folder.path(), &["new", "polling", "--template", "polling"])
            .status
            .code(),
        Some(0)
    );
    let mut child = Command::new(env!("CARGO_BIN_EXE_swirl"))
        .current_dir(folder.path())
        .args(["test", "--watch", "polling.scenario.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    line_with(&mut lines, "1 passed, 0 failed");
    let file = folder.path().join("polling.sw.yaml");
    let definition = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, definition.replace("PT30S", "PT10S")).unwrap();
    line_with(&mut lines, "0 passed, 1 failed");
    std::fs::write(&file, definition).unwrap();
    line_with(&mut lines, "1 passed, 0 failed");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A message as the language server protocol frames it.
fn send(input: &mut impl Write, message: &Value) {
    let body = message.to_string();
    write!(input, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    input.flush().unwrap();
}

fn receive(output: &mut impl BufRead) -> Value {
    let mut length = 0;
    loop {
        let mut line = String::new();
        assert_ne!(
            output.read_line(&mut line).unwrap(),
            0,
            "the server has ended"
        );
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn lsp_serves_an_editor_over_stdio() {
    let folder = tempfile::tempdir().unwrap();
    let uri = format!("file://{}/w.sw.yaml", folder.path().display());
    let mut child = Command::new(env!("CARGO_BIN_EXE_swirl"))
        .arg("lsp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let request = |id: u32, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let notification =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});

    send(
        &mut input,
        &request(1, "initialize", json!({"capabilities": {}})),
    );
    let answer = receive(&mut output);
    assert_eq!(answer["result"]["serverInfo"]["name"], "swirl");
    assert_eq!(answer["result"]["capabilities"]["hoverProvider"], true);
    send(&mut input, &notification("initialized", json!({})));
    let text = WAITING.replace("end: true", "edn: true");
    let document = json!({"uri": uri, "languageId": "yaml", "version": 1, "text": text});
    send(
        &mut input,
        &notification("textDocument/didOpen", json!({"textDocument": document})),
    );
    let published = receive(&mut output);
    assert_eq!(published["method"], "textDocument/publishDiagnostics");
    assert!(
        published.to_string().contains("did you mean 'end'?"),
        "{published}"
    );

    send(
        &mut input,
        &request(
            2,
            "textDocument/documentSymbol",
            json!({"textDocument": {"uri": uri}}),
        ),
    );
    let answer = receive(&mut output);
    assert_eq!(
        (&answer["id"], &answer["result"][0]["name"]),
        (&json!(2), &json!("E"))
    );
    send(
        &mut input,
        &request(
            3,
            "textDocument/foldingRange",
            json!({"textDocument": {"uri": uri}}),
        ),
    );
    assert_eq!(receive(&mut output)["error"]["code"], -32601);

    // Once the finding is fixed, there are no errors, and there is a picture with the state at the cursor.
    let at = WAITING.lines().last().unwrap().find("A,").unwrap();
    let document = json!({"uri": uri, "version": 2});
    send(
        &mut input,
        &notification(
            "textDocument/didChange",
            json!({"textDocument": document, "contentChanges": [{"text": WAITING}]}),
        ),
    );
    let published = receive(&mut output);
    assert_eq!(published["params"]["version"], 2, "{published}");
    let position = json!({"line": 4, "character": at});
    send(
        &mut input,
        &request(
            5,
            "swirl/diagram",
            json!({"textDocument": {"uri": uri}, "position": position}),
        ),
    );
    let drawn = receive(&mut output);
    assert_eq!(drawn["result"]["state"], "A", "{drawn}");
    let picture = drawn["result"]["svg"].as_str().unwrap();
    assert!(picture.contains("card here"), "{picture}");

    send(&mut input, &request(4, "shutdown", Value::Null));
    assert_eq!(receive(&mut output)["id"], 4);
    send(&mut input, &notification("exit", Value::Null));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn schema_prints_a_json_schema() {
    let folder = tempfile::tempdir().unwrap();
    let done = swirl(
        folder.path(),
        &["schema", "--edition", "0.8", "-o", "s.json"],
    );
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let written = std::fs::read(folder.path().join("s.json")).unwrap();
    let schema: Value = serde_json::from_slice(&written).unwrap();
    assert_eq!(schema["title"], "Serverless Workflow 0.8");
    let required = schema["required"].as_array().unwrap();
    assert!(required.contains(&json!("states")), "{required:?}");
    let about = &schema["properties"]["keepActive"]["description"];
    assert!(about.as_str().unwrap().contains("stays active"), "{about}");
    let listed = swirl(folder.path(), &["schema", "--list", "--output", "json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["editions"].as_array().unwrap().len(), 10);
    let refused = swirl(folder.path(), &["schema", "--edition", "0.88"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("did you mean '0.8'?"),
        "{refused:?}"
    );
}
