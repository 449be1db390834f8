//! A server that stops: running requests are finished, within the limit.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use swirl_coordinator::access::Access;
use swirl_servers::{PATIENCE, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use crate::running::{Held, Reads, Running, Setup, client};

/// Also returns a receiver that reports when a document is being read, and a sender that lets reading continue.
fn held(stop_max: Duration) -> (Setup, UnboundedReceiver<()>, Sender<()>) {
    let (reader, begun, go_on) = Held::new();
    let setup = Setup {
        reader: Arc::new(reader),
        stop_max,
        ..Setup::new(Access::open("default"))
    };
    (setup, begun, go_on)
}

async fn ended(running: Running) {
    let ended = timeout(PATIENCE, running.ended());
    ended.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_request_is_finished_and_no_new_one_is_accepted() {
    let (setup, mut begun, go_on) = held(PATIENCE);
    let mut running = setup.start().await;
    // An idle connection doesn't delay the stop.
    let _idle = TcpStream::connect(running.address).await.unwrap();
    let client = client();
    let under_way = client
        .post(running.url("/api/v1/definitions"))
        .body("id: x")
        .send();
    let under_way = tokio::spawn(under_way);
    begun.recv().await.unwrap();
    running.stop();
    eventually("a refusal", async || {
        let refused = TcpStream::connect(running.address).await.is_err();
        refused.then_some(())
    })
    .await;
    go_on.send(()).unwrap();
    let answer = under_way.await.unwrap().unwrap();
    assert_eq!(answer.status(), 422);
    ended(running).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_takes_too_long_is_cut_off() {
    let stop_max = Duration::from_millis(300);
    let (setup, mut begun, _goes_on) = held(stop_max);
    let mut running = setup.start().await;
    let client = client();
    let under_way = client
        .post(running.url("/api/v1/definitions"))
        .body("id: x")
        .send();
    let under_way = tokio::spawn(under_way);
    begun.recv().await.unwrap();
    let stopped = Instant::now();
    running.stop();
    ended(running).await;
    assert!(stopped.elapsed() >= stop_max);
    assert!(under_way.await.unwrap().is_err());
}

/// No driver runs the instance here, so it doesn't end.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_an_instance_ends_with_its_current_status() {
    let setup = Setup {
        reader: Arc::new(Reads),
        // Less than the time for which the client would wait.
        stop_max: Duration::from_secs(40),
        ..Setup::new(Access::open("default"))
    };
    let mut running = setup.start().await;
    let definition = "id: w\nversion: '1'\nspecVersion: '0.8'\nname: w\nstart: a\nstates:\n  - \
                      {name: a, type: inject, data: {}, end: true}\n";
    let client = client();
    let request = client.post(running.url("/api/v1/definitions"));
    let deployed = request.body(definition).send().await.unwrap();
    assert_eq!(deployed.status(), 201);
    let path = "/api/v1/workflows/w/instances?wait=PT60S";
    let waiting = tokio::spawn(client.post(running.url(path)).send());
    eventually("the instance", async || {
        let list = client.get(running.url("/api/v1/instances")).send().await;
        let list: serde_json::Value = list.unwrap().json().await.unwrap();
        (list["instances"].as_array()?.len() == 1).then_some(())
    })
    .await;
    assert!(!waiting.is_finished());
    running.stop();
    let answer = waiting.await.unwrap().unwrap();
    assert_eq!(answer.status(), 202);
    let body: serde_json::Value = answer.json().await.unwrap();
    assert_eq!(body["status"], "running");
    ended(running).await;
}

#[tokio::test]
async fn requests_that_are_not_http_are_refused() {
    let running = Setup::new(Access::open("default")).start().await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let long = format!(
        "GET / HTTP/1.1\r\nhost: h\r\nx: {}\r\n\r\n",
        "y".repeat(100_000)
    );
    let _ = stream.write_all(long.as_bytes()).await;
    let mut answer = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    assert!(read.is_ok(), "the connection is closed");
    let answer = String::from_utf8_lossy(&answer);
    assert!(!answer.contains("200 OK"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_answered_while_draining() {
    let setup = Setup {
        drain: PATIENCE,
        ..Setup::new(Access::open("default"))
    };
    let mut running = setup.start().await;
    let client = client();
    let kept = client.get(running.url("/readyz")).send().await.unwrap();
    assert_eq!(kept.status(), 200);
    assert!(!kept.headers().contains_key("connection"));
    running.stop();
    let ready = eventually("its end", async || {
        let ready = client.get(running.url("/readyz")).send().await.unwrap();
        (ready.status() != 200).then_some(ready)
    })
    .await;
    assert_eq!(ready.status(), 503);
    assert_eq!(ready.headers()["connection"], "close");
    // On another connection.
    let answer = client.get(running.url("/api/v1/instances")).send().await;
    let answer = answer.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["connection"], "close");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_draining_no_request_is_answered() {
    let drain = Duration::from_millis(300);
    let setup = Setup {
        drain,
        ..Setup::new(Access::open("default"))
    };
    let mut running = setup.start().await;
    let address = running.address;
    let stopped = Instant::now();
    running.stop();
    ended(running).await;
    assert!(stopped.elapsed() >= drain);
    assert!(TcpStream::connect(address).await.is_err());
}

/// Requests more than the buffers in between hold, and reads none of the responses.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_never_reads_is_disconnected() {
    const REQUESTS: usize = 500;
    let setup = Setup {
        write_max: Duration::from_millis(300),
        ..Setup::new(Access::open("default"))
    };
    let running = setup.start().await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let requests = "GET /api/v1/openapi.json HTTP/1.1\r\nhost: h\r\n\r\n".repeat(REQUESTS);
    stream.write_all(requests.as_bytes()).await.unwrap();
    // Reads nothing until the server has closed the connection, so that writing fails.
    eventually("the end of the connection", async || {
        match stream.try_write(b"GET ") {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Some(()),
            _ => None,
        }
    })
    .await;
    let mut answers = Vec::new();
    let read = timeout(PATIENCE, stream.read_to_end(&mut answers)).await;
    assert!(read.is_ok(), "the connection is closed");
    let answers = String::from_utf8_lossy(&answers);
    let count = answers.matches("HTTP/1.1 200 OK").count();
    assert!(count > 0 && count < REQUESTS, "{count}");
}
