//! The command line: exit codes, and the outputs on stdout and stderr.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const GOOD: &str = "id: w\nversion: 1.0.0\nspecVersion: '0.8'\nstates:\n  - {name: A, type: inject, data: {a: 1}, end: true}\n";

fn swirl(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_swirl"));
    command
        .current_dir(folder)
        .args(arguments)
        .env_remove("NO_COLOR");
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("w")).unwrap();
    std::fs::write(folder.path().join("w/good.sw.yaml"), GOOD).unwrap();
    std::fs::write(
        folder.path().join("bad.sw.yaml"),
        GOOD.replace("end:", "edn:"),
    )
    .unwrap();
    folder
}

#[test]
fn validates_exit_code_shows_the_outcome() {
    let folder = folder();
    for (arguments, code) in [
        (&["validate", "w"][..], 0),
        (&["validate", "w/good.sw.yaml", "bad.sw.yaml"], 1),
        (&["validate", "--output", "json", "."], 1),
        (&["validate", "missing.sw.yaml", "w"], 2),
        (&["validate"], 2),
        (&["vaildate", "w"], 2),
    ] {
        assert_eq!(
            swirl(folder.path(), arguments).status.code(),
            Some(code),
            "{arguments:?}"
        );
    }
}

#[test]
fn warnings_can_be_denied() {
    let folder = folder();
    let loose = GOOD.replace("version: 1.0.0", "version: '1'");
    std::fs::write(folder.path().join("loose.sw.yaml"), loose).unwrap();
    for (arguments, code) in [
        (&["validate", "loose.sw.yaml"][..], 0),
        (&["validate", "--deny-warnings", "loose.sw.yaml"], 1),
        (&["validate", "--deny-warnings", "w/good.sw.yaml"], 0),
    ] {
        let output = swirl(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn findings_go_to_stdout_and_errors_to_stderr() {
    let folder = folder();
    let output = swirl(
        folder.path(),
        &["validate", "bad.sw.yaml", "missing.sw.yaml"],
    );
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(
        out.contains("bad.sw.yaml:5:") && out.contains("unknown-property"),
        "{out}"
    );
    assert!(out.contains("edition 0.8, because"), "{out}");
    assert!(
        !out.contains("missing.sw.yaml") && err.contains("missing.sw.yaml"),
        "{err}"
    );
    assert!(!out.contains('\x1b'), "no colours but to a terminal");
    let output = swirl(
        folder.path(),
        &["validate", "bad.sw.yaml", "--color", "always"],
    );
    assert!(text(&output.stdout).contains('\x1b'));
}

#[test]
fn json_output_contains_only_json() {
    let folder = folder();
    for format in ["json", "sarif"] {
        let output = swirl(folder.path(), &["--output", format, "validate", "."]);
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(value.is_object() && output.stderr.is_empty(), "{format}");
    }
    let output = swirl(folder.path(), &["explain", "--list", "--output", "sarif"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("swirl validate"));
}

/// A failure of any command is a result, too.
#[test]
fn failures_are_json() {
    let folder = folder();
    let commands: [(&[&str], i32, &str); 5] = [
        (&["diagram", "bad.sw.yaml"], 1, "unknown-property"),
        (&["run", "bad.sw.yaml"], 2, "unknown-property"),
        (&["migrate", "w/good.sw.yaml"], 1, "already"),
        (
            &["config", "check", "--config", "nosuch.toml"],
            2,
            "cannot be read",
        ),
        (&["config", "check", "--config", "."], 2, "cannot be read"),
    ];
    for (arguments, code, expected) in commands {
        let output = swirl(folder.path(), &[arguments, &["--output", "json"]].concat());
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {output:?}"
        );
        let value: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {output:?}"));
        assert!(value.to_string().contains(expected), "{value}");
        assert_eq!(
            value["code"] == "command-failed",
            arguments[0] != "config",
            "{value}"
        );
    }
}

#[test]
fn a_dead_letter_is_named_by_its_number() {
    let output = swirl(folder().path(), &["dead-letters", "show", "abc"]);
    let told = text(&output.stderr);
    assert!(
        told.contains("expected the number of a dead letter"),
        "{told}"
    );
}

#[test]
fn diagrams_go_to_stdout_or_into_a_file() {
    let folder = folder();
    let output = swirl(folder.path(), &["diagram", "w/good.sw.yaml"]);
    assert!(text(&output.stdout).starts_with("<svg "));
    let output = swirl(folder.path(), &["diagram", "w/good.sw.yaml", "-o", "a.mmd"]);
    assert!(output.status.success() && output.stdout.is_empty());
    let written = std::fs::read_to_string(folder.path().join("a.mmd")).unwrap();
    assert!(written.contains("stateDiagram-v2"), "{written}");
    let output = swirl(folder.path(), &["diagram", "bad.sw.yaml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty() && text(&output.stderr).contains("unknown-property"));
}

/// Writes more than a pipe holds to a reader that stops after one byte.
#[test]
fn a_closed_pipe_is_not_an_error() {
    let folder = folder();
    let states: String = (0..2000)
        .map(|n| {
            format!(
                "  - {{name: S{n}, type: inject, data: {{}}, transition: S{}}}\n",
                n + 1
            )
        })
        .collect();
    let head = GOOD.split("  - ").next().unwrap();
    let long = format!("{head}{states}  - {{name: S2000, type: inject, data: {{}}, end: true}}\n");
    std::fs::write(folder.path().join("long.sw.yaml"), long).unwrap();
    let mut child = command(folder.path(), &["diagram", "long.sw.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdout.take().unwrap();
    pipe.read_exact(&mut [0]).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn completions_contain_the_commands() {
    let folder = folder();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = swirl(folder.path(), &["completions", shell]);
        assert!(text(&output.stdout).contains("demo-service"), "{shell}");
    }
}

/// A server that answers each request with the next of these answers, and then no more. Returns its address.
fn server(answers: &'static [(&'static str, &'static str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (status, body) in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut stream = BufReader::new(stream);
            let (mut length, mut line) = (0, String::new());
            while line != "\r\n" {
                line.clear();
                stream.read_line(&mut line).unwrap();
                let header = line.to_ascii_lowercase();
                if let Some(value) = header.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            stream.read_exact(&mut vec![0; length]).unwrap();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}", body.len());
            let answer = format!("{head}\r\nConnection: close\r\n\r\n{body}");
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    address
}

#[test]
fn a_deployment_that_stops_says_how_far_it_came() {
    const DONE: (&str, &str) = (
        "201 Created",
        r#"{"id": "w", "version": "1.0.0", "outcome": "new", "dryRun": false}"#,
    );
    const REFUSED: (&str, &str) = (
        "409 Conflict",
        r#"{"status": 409, "code": "definition-conflict", "title": "no", "detail": "raise the version"}"#,
    );
    const FAILED: (&str, &str) = ("500 Internal Server Error", "no JSON");
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c", "d"] {
        std::fs::write(folder.path().join(format!("{name}.sw.yaml")), GOOD).unwrap();
    }
    let all = ["a.sw.yaml", "b.sw.yaml", "c.sw.yaml", "d.sw.yaml"];
    let deploy = |address: &str, more: &[&str]| {
        let arguments = [&["deploy", "--server", address], &all[..], more].concat();
        swirl(folder.path(), &arguments)
    };
    let output = deploy(&server(&[DONE, REFUSED, FAILED]), &[]);
    assert!(!output.status.success());
    assert_eq!(text(&output.stdout), "a.sw.yaml: w:1.0.0 is deployed\n");
    let told = "1 of 4 are deployed\n  refused: b.sw.yaml\n  unknown, because the server failed: c.sw.yaml\n  \
                not tried: d.sw.yaml\n";
    assert!(text(&output.stderr).contains(told), "{output:?}");

    let output = deploy(&server(&[DONE, FAILED]), &["--output", "json"]);
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let done: Vec<_> = rows
        .iter()
        .map(|row| row["done"].as_str().unwrap())
        .collect();
    assert_eq!(done, ["deployed", "unknown", "not-tried", "not-tried"]);
    assert_eq!(rows[0]["status"], 201);

    // Nothing is deployed if a file can't be read.
    let output = deploy(&server(&[]), &["missing.sw.yaml"]);
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("missing.sw.yaml cannot be read"));
    let output = deploy(&server(&[DONE, DONE, DONE, DONE]), &[]);
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
}
