//! Static tokens: how they are created, and what they permit.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use swirl_servers::until;

use crate::access::process::{Coordinator, Files, command, stderr, stdout, swirl};

#[test]
fn tokens_open_a_coordinator_over_tls() {
    let files = Files::new();
    let (admin, viewer) = (files.token("admin"), files.token("viewer"));
    let tokens = files.text("tokens.toml");
    let mut coordinator = Coordinator::start(&files, &["--auth-tokens-file", &tokens]);
    let (url, ca) = (coordinator.url(), files.text("ca.pem"));
    let definition = files.text("hello.sw.yaml");
    let text = "id: hello\nversion: '1'\nspecVersion: '0.8'\nname: hello\nstart: a\nstates:\n  - \
                {name: a, type: inject, data: {}, end: true}\n";
    std::fs::write(&definition, text).unwrap();
    let ask = |arguments: &[&str], token: Option<&str>| {
        let mut arguments = arguments.to_vec();
        arguments.extend(["--server", &url, "--ca-file", &ca]);
        arguments.extend(token.into_iter().flat_map(|token| ["--token-file", token]));
        swirl(&arguments)
    };

    let deployed = ask(&["deploy", &definition], Some(&admin));
    assert_eq!(deployed.status.code(), Some(0), "{}", stderr(&deployed));
    let started = ask(&["start", "hello"], Some(&admin));
    assert_eq!(started.status.code(), Some(0), "{}", stderr(&started));
    let listed = ask(&["list", "--namespace", "shop"], Some(&viewer));
    assert!(stdout(&listed).contains("hello:1"), "{}", stderr(&listed));

    // Each refusal includes a remedy.
    for (arguments, token, code, parts) in [
        (
            vec!["list"],
            None,
            1,
            ["error[unauthenticated]", "SWIRL_TOKEN"],
        ),
        (
            vec!["deploy", &definition],
            Some(&viewer),
            1,
            ["deployer", "'viewer' has viewer"],
        ),
        (
            vec!["start", "hello"],
            Some(&viewer),
            1,
            ["operator", "error[forbidden]"],
        ),
        (
            vec!["list", "--namespace", "bank"],
            Some(&viewer),
            1,
            ["error[unknown-namespace]", "'shop'"],
        ),
    ] {
        let refused = ask(&arguments, token.map(String::as_str));
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
    let plain = url.replace("https", "http");
    for (arguments, part) in [
        (vec!["list", "--server", &url], "--ca-file"),
        (vec!["list", "--server", &plain], "https://"),
        (
            vec!["list", "--server", &url, "--ca-file", &definition],
            "no PEM certificate",
        ),
    ] {
        let refused = swirl(&arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&refused).contains(part), "{}", stderr(&refused));
    }

    // A token that is added later works without a restart.
    let late = files.token("deployer");
    until("its effect", || {
        ask(&["list"], Some(&late)).status.success().then_some(())
    });

    // The doctor reports the same with the same settings.
    let settings: Vec<&str> = coordinator.settings.iter().map(String::as_str).collect();
    let examined = |token: &str| {
        let about = ["doctor", "--for", "coordinator", "--output", "json"];
        let examined = ask(&[&about, &settings[..]].concat(), Some(token));
        let report: serde_json::Value = serde_json::from_slice(&examined.stdout).unwrap();
        let of = |name: &str| {
            let checks = report["checks"].as_array().unwrap();
            let found = checks.iter().find(|check| check["check"] == name);
            let status = found.and_then(|check| check["status"].as_str());
            status
                .unwrap_or_else(|| panic!("{name}: {report:#}"))
                .to_owned()
        };
        let names = [
            "api",
            "api-ready",
            "api-access",
            "api-certificate",
            "api-clock",
            "coordinator.tls_cert",
            "auth.tokens",
            "redis-namespace",
            "nats-stream",
        ];
        (
            names.map(of),
            of("redis-persistence"),
            examined.status.code(),
        )
    };
    let (seen, persistence, code) = examined(&viewer);
    assert!(seen.iter().all(|status| status == "ok"), "{seen:?}");
    // This Redis stores nothing on disk.
    assert_eq!((persistence.as_str(), code), ("error", Some(1)));
    let unknown = files.text("unknown.token");
    std::fs::write(&unknown, "swirl_unknown").unwrap();
    assert_eq!(examined(&unknown).0[2], "error");

    assert_eq!(coordinator.stop(), Some(0));
    let log = coordinator.log.lock().unwrap();
    assert!(
        log.contains("deployer") && log.contains("by=\"admin\""),
        "{log}"
    );
    for token in [&admin, &viewer, &late] {
        let token = std::fs::read_to_string(token).unwrap();
        assert!(token.starts_with("swirl_") && !log.contains(token.trim()));
    }
}

#[test]
fn tokens_are_created() {
    let folder = tempfile::tempdir().unwrap();
    let made = swirl(&[
        "token", "create", "--name", "ops", "--role", "admin", "--output", "json",
    ]);
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let token = made["token"].as_str().unwrap();
    assert_eq!(made["entry"]["roles"][0], "admin");
    let hash = |token: &str| {
        let mut process = command(&["token", "hash"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        process
            .stdin
            .take()
            .unwrap()
            .write_all(token.as_bytes())
            .unwrap();
        process.wait_with_output().unwrap()
    };
    let hashed = hash(&format!("{token}\n"));
    assert_eq!(
        stdout(&hashed).trim(),
        made["entry"]["hash"].as_str().unwrap()
    );
    for thought_out in ["", "password", "a token with blanks in it, which is long"] {
        let refused = hash(thought_out);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains("generated at random"));
    }

    let file = folder.path().join("t");
    let write = |file: &Path| {
        let file = file.display().to_string();
        swirl(&[
            "token",
            "create",
            "--name",
            "ci",
            "--role",
            "viewer",
            "--role",
            "deployer",
            "--namespace",
            "shop",
            "--expires",
            "2030-01-31T09:00:00Z",
            "--write",
            &file,
        ])
    };
    let written = write(&file);
    let token = std::fs::read_to_string(&file).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert!(
        !stdout(&written).contains(token.trim()),
        "it is in the file"
    );
    let entry: toml::Table = toml::from_str(&stdout(&written)).unwrap();
    let entry = &entry["tokens"][0];
    assert_eq!(entry["name"].as_str(), Some("ci"));
    assert_eq!(entry["roles"].as_array().unwrap().len(), 2);
    assert_eq!(entry["namespaces"][0].as_str(), Some("shop"));
    let again = write(&file);
    assert_eq!(
        again.status.code(),
        Some(2),
        "what is there isn't written over"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), token);

    for wrong in [
        ["--role", "root", "--name", "x"],
        ["--role", "admin", "--name", ""],
    ] {
        let refused = swirl(&[&["token", "create"], &wrong[..]].concat());
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}");
    }
    let when = ["--role", "admin", "--name", "x", "--expires", "tomorrow"];
    let refused = swirl(&[&["token", "create"], &when[..]].concat());
    assert!(stderr(&refused).contains("2030-01-31T09:00:00Z"));
}

#[test]
fn invalid_access_settings_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let dev = folder.path().display().to_string();
    let refused = swirl(&["dev", &dev, "--memory", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--no-auth"));
    let servers = [
        "--redis-url",
        "redis://127.0.0.1:1",
        "--nats-url",
        "nats://127.0.0.1:1",
    ];
    let coordinator = |more: &[&str]| {
        let refused = swirl(&[&["coordinator"], &servers[..], more].concat());
        assert_eq!(refused.status.code(), Some(2));
        stderr(&refused)
    };
    assert!(coordinator(&[]).contains("nobody can log in"));
    let none = coordinator(&["--auth-tokens-file", "/no/such/file"]);
    assert!(none.contains("/no/such/file cannot be read"), "{none}");
    let wrong = r#"[{"name": "ci", "hash": "blake3:00", "roles": ["root"]}]"#;
    let wrong = coordinator(&["--auth-tokens", wrong]);
    assert!(wrong.contains("'ci' needs a 'hash'"), "{wrong}");
}
