//! Connectors that are commands.

use std::path::Path;
use std::time::Duration;

use swirl_functions::http::HttpConfig;
use swirl_model::{Data, WorkflowError, data};
use swirl_servers::{PATIENCE, eventually};

use crate::custom::fixture::{as_sent, call, caller, config, function, prepare};

/// A connector that is a shell script.
fn shell(script: &str) -> String {
    format!("mail=exec:/bin/sh -c '{script}' script")
}

async fn run(script: &str, arguments: Data) -> Result<Data, WorkflowError> {
    call(&caller(&shell(script), config()), arguments, None).await
}

#[tokio::test]
async fn the_call_is_on_stdin_and_the_result_on_stdout() {
    let arguments = data!({"to": "ada"});
    let seen = run("cat", arguments.clone()).await.unwrap();
    assert_eq!(seen, as_sent(arguments));
    assert_eq!(
        run("exec cat > /dev/null", data!({})).await.unwrap(),
        Data::NULL
    );
    // It need not read its input, however long it is.
    let long = data!({"long": "x".repeat(1_000_000)});
    assert_eq!(
        run("echo 7; exec <&-", long.clone()).await.unwrap(),
        data!(7)
    );
    assert_eq!(run("cat", long.clone()).await.unwrap(), as_sent(long));
}

#[tokio::test]
async fn words_are_not_expanded() {
    let connector = "mail=exec:/bin/echo '\"a  $HOME *\"'";
    let answer = call(&caller(connector, config()), data!({}), None)
        .await
        .unwrap();
    assert_eq!(answer, data!("a  $HOME *"));
}

#[tokio::test]
async fn a_command_that_fails_is_an_error() {
    let given =
        "echo \"{\\\"error\\\": {\\\"name\\\": \\\"Full\\\", \\\"message\\\": \\\"no room\\\"}}\"";
    for (script, name, code, message) in [
        (
            "echo one >&2; echo two >&2; exit 3",
            "FunctionError",
            "3",
            "exit status: 3: one; two",
        ),
        ("kill -9 $$", "FunctionError", "signal", "signal: 9"),
        (&format!("{given}; exit 1"), "Full", "1", "no room"),
        (given, "Full", "failed", "no room"),
        (
            "echo hello",
            "FunctionError",
            "response",
            "its standard output is not valid JSON",
        ),
    ] {
        let error = run(script, data!({})).await.unwrap_err();
        assert_eq!((error.name.as_str(), error.status), (name, None), "{error}");
        assert_eq!(error.code.as_deref(), Some(code), "{error}");
        assert!(
            error
                .message
                .starts_with("connector `mail`: command `/bin/sh`: "),
            "{error}"
        );
        assert!(error.message.contains(message), "{error}");
    }
    let nothing = caller("mail=exec:/nowhere/at/all", config());
    let error = call(&nothing, data!({}), None).await.unwrap_err();
    assert_eq!(error.code.as_deref(), Some("connection"));
    assert!(error.message.contains("it cannot be started"), "{error}");
}

#[tokio::test]
async fn output_is_bounded() {
    let small = HttpConfig {
        response_bytes_max: 10_000,
        ..config()
    };
    let endless = caller(&shell("while :; do echo xxxxxxxxxxxxxxxxxxxx; done"), small);
    let error = call(&endless, data!({}), None).await.unwrap_err();
    assert_eq!(
        (error.name.as_str(), error.code.as_deref()),
        ("LimitExceeded", Some("limit"))
    );
    // Only the end of stderr is kept.
    let error = run(
        "i=0; while [ $i -lt 5000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1",
        data!({}),
    );
    let error = error.await.unwrap_err();
    assert!(error.message.ends_with("line 4998; line 4999"), "{error}");
}

/// Whether a process with this id exists and isn't a zombie.
pub fn is_alive(id: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

/// The text that a script has written, once the line is complete.
pub fn written(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    text.ends_with('\n').then(|| text.trim().to_owned())
}

/// The command is killed together with all processes that it started.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_call_that_ends_early_kills_its_command() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ids");
    let script = format!("sleep 600 & echo $$ $! > {}; wait", file.display());
    let slow = |timeout| {
        let config = HttpConfig {
            timeout,
            ..config()
        };
        caller(&shell(&script), config)
    };
    let gone = async |ids: String| {
        std::fs::remove_file(&file).unwrap();
        eventually("their end", async || {
            (!ids.split(' ').any(is_alive)).then_some(())
        })
        .await;
    };
    // On a slow machine, the command may not have started when its time is over. Then it gets more time.
    let mut limit = Duration::from_millis(500);
    let ids = loop {
        let error = call(&slow(limit), data!({}), None).await.unwrap_err();
        assert_eq!(error.code.as_deref(), Some("timeout"));
        if let Some(ids) = written(&file) {
            break ids;
        }
        limit *= 2;
    };
    gone(ids).await;
    let slow = slow(PATIENCE);
    let ids = tokio::select! {
        ids = eventually("its line", async || written(&file)) => ids,
        result = call(&slow, data!({}), None) => panic!("{result:?}"),
    };
    gone(ids).await;
}

#[tokio::test]
async fn a_command_takes_no_auth() {
    let caller = caller("mail=exec:/bin/cat", config());
    let problems = prepare(&caller, &function("mail", true)).unwrap_err();
    assert!(
        problems[0].message.contains("takes no `authRef`"),
        "{}",
        problems[0]
    );
}

/// The command doesn't get this process's own environment; here these are the variables that cargo sets for its tests.
#[tokio::test]
async fn a_command_gets_a_clean_environment() {
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let answer = run(
        "echo \"[\\\"$CARGO_MANIFEST_DIR\\\", ${PATH:+1}]\"",
        data!({}),
    )
    .await;
    assert_eq!(answer.unwrap(), data!(["", 1]));
}
