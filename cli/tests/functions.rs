//! Functions of types that the operator has a say in, by way of the command.

#![allow(clippy::unwrap_used, reason = "a test")]

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
fn a_custom_type_is_carried_out_by_the_connector_of_its_name() {
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

/// The proto file and what it imports are read, and nobody listens at the address.
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
        text(&wrong.stderr).contains("grpc://host:port"),
        "{wrong:?}"
    );
}
