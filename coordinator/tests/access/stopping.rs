//! The end of a server: what is under way is finished, within the limit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use swirl_coordinator::access::Access;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::running::{Reads, Setup, Slow, client};

fn slow(time: Duration, stop_max: Duration) -> Setup {
    Setup {
        reader: Arc::new(Slow(time)),
        stop_max,
        ..Setup::new(Access::open("default"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_request_is_finished_and_no_other_is_taken() {
    let setup = slow(Duration::from_millis(800), Duration::from_secs(20));
    let mut running = setup.start().await;
    // An idle connection holds nobody up.
    let _idle = TcpStream::connect(running.address).await.unwrap();
    let client = client();
    let under_way = client
        .post(running.url("/api/v1/definitions"))
        .body("id: x")
        .send();
    let under_way = tokio::spawn(under_way);
    sleep(Duration::from_millis(200)).await;
    running.stop();
    sleep(Duration::from_millis(100)).await;
    assert!(TcpStream::connect(running.address).await.is_err());
    let answer = under_way.await.unwrap().unwrap();
    assert_eq!(answer.status(), 422);
    let begun = Instant::now();
    timeout(Duration::from_secs(10), running.ended())
        .await
        .unwrap()
        .unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_takes_too_long_is_cut_off() {
    let setup = slow(Duration::from_secs(4), Duration::from_millis(300));
    let mut running = setup.start().await;
    let client = client();
    let under_way = client
        .post(running.url("/api/v1/definitions"))
        .body("id: x")
        .send();
    let under_way = tokio::spawn(under_way);
    sleep(Duration::from_millis(300)).await;
    let begun = Instant::now();
    running.stop();
    timeout(Duration::from_secs(10), running.ended())
        .await
        .unwrap()
        .unwrap();
    let elapsed = begun.elapsed();
    assert!(elapsed >= Duration::from_millis(300), "{elapsed:?}");
    assert!(elapsed < Duration::from_secs(3), "{elapsed:?}");
    assert!(under_way.await.unwrap().is_err());
}

/// Nothing drives the instance here, so that it doesn't end.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_an_instance_is_told_how_it_stands() {
    let setup = Setup {
        reader: Arc::new(Reads),
        stop_max: Duration::from_secs(20),
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
    sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished());
    let begun = Instant::now();
    running.stop();
    let answer = waiting.await.unwrap().unwrap();
    assert_eq!(answer.status(), 202);
    let body: serde_json::Value = answer.json().await.unwrap();
    assert_eq!(body["status"], "running");
    running.ended().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn what_is_no_http_is_refused() {
    let running = Setup::new(Access::open("default")).start().await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let long = format!(
        "GET / HTTP/1.1\r\nhost: h\r\nx: {}\r\n\r\n",
        "y".repeat(100_000)
    );
    let _ = stream.write_all(long.as_bytes()).await;
    let mut answer = Vec::new();
    let read = timeout(Duration::from_secs(10), stream.read_to_end(&mut answer)).await;
    assert!(read.is_ok(), "the connection is closed");
    let answer = String::from_utf8_lossy(&answer);
    assert!(!answer.contains("200 OK"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_answered_until_nobody_sends_any() {
    let setup = Setup {
        drain: Duration::from_millis(800),
        ..Setup::new(Access::open("default"))
    };
    let mut running = setup.start().await;
    let client = client();
    let kept = client.get(running.url("/readyz")).send().await.unwrap();
    assert_eq!(kept.status(), 200);
    assert!(!kept.headers().contains_key("connection"));
    running.stop();
    sleep(Duration::from_millis(100)).await;
    let ready = client.get(running.url("/readyz")).send().await.unwrap();
    assert_eq!(ready.status(), 503);
    assert_eq!(ready.headers()["connection"], "close");
    // On a connection of its own.
    let answer = client.get(running.url("/api/v1/instances")).send().await;
    let answer = answer.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["connection"], "close");
    let address = running.address;
    running.ended().await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

/// Asks for more than fits on the way, and reads nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn who_never_reads_loses_the_connection() {
    const REQUESTS: usize = 500;
    let setup = Setup {
        write_max: Duration::from_millis(300),
        ..Setup::new(Access::open("default"))
    };
    let running = setup.start().await;
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let requests = "GET /api/v1/openapi.json HTTP/1.1\r\nhost: h\r\n\r\n".repeat(REQUESTS);
    stream.write_all(requests.as_bytes()).await.unwrap();
    sleep(Duration::from_secs(2)).await;
    let mut answers = Vec::new();
    let read = timeout(Duration::from_secs(10), stream.read_to_end(&mut answers)).await;
    assert!(read.is_ok(), "the connection is closed");
    let answers = String::from_utf8_lossy(&answers);
    let count = answers.matches("HTTP/1.1 200 OK").count();
    assert!(count > 0 && count < REQUESTS, "{count}");
}
