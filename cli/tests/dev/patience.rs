//! A client that waits for the end of an instance continues to wait when the server is replaced.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::dev::http::JSON;
use crate::dev::process::Dev;

const SLEEPER: &str = "id: sleeper\nversion: '1'\nspecVersion: '0.8'\nstates:\n  \
                       - {name: A, type: sleep, duration: PT1H, end: true}\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_start_survives_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("sleeper.sw.yaml"), SLEEPER).unwrap();
    let dev = Dev::start(path).await;
    let url = dev.url.clone();
    let mut waiting = Command::new(env!("CARGO_BIN_EXE_swirl"))
        .args(["start", "sleeper", "--wait", "--server", &url])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let line = said.next().unwrap().unwrap();
    let id = line.strip_prefix("instance ").unwrap();
    let id = id.strip_suffix(" is started").unwrap().to_owned();
    dev.kill();
    let line = said.next().unwrap().unwrap();
    assert_eq!(line, "the connection is lost: trying again");

    let mut again = Command::new(env!("CARGO_BIN_EXE_swirl"));
    again
        .args(["dev", "--listen", url.strip_prefix("http://").unwrap()])
        .args(["--color", "never"])
        .arg(path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let dev = Dev::of(again).await;
    let cancel = format!("/api/v1/instances/{id}/cancel");
    dev.post(&cancel, &[JSON], "").await.is(202);
    let line = said.next().unwrap().unwrap();
    assert!(
        line.contains(&id) && line.contains("is cancelled"),
        "{line}"
    );
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"");
}
