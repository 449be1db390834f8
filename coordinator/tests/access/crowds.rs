//! Many connections: a client that holds many doesn't keep others from being served.

use std::sync::Arc;
use std::time::Duration;

use swirl_coordinator::access::Access;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use swirl_runtime::StartLimits;

use crate::running::{Reads, Setup, client};

const LONG: Duration = swirl_servers::PATIENCE;

/// Waits until the other end closes the connection.
async fn closed(mut stream: TcpStream) {
    let mut byte = [0];
    let read = timeout(LONG, stream.read(&mut byte)).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_an_address_are_limited_and_health_is_served_separately() {
    let health = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = health.local_addr().unwrap();
    let setup = Setup {
        first_byte_max: LONG,
        address_max: 3,
        health: Some(health),
        ..Setup::new(Access::open("default"))
    };
    let running = setup.start().await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(TcpStream::connect(running.address).await.unwrap());
    }
    // The fourth connection is closed at once.
    closed(TcpStream::connect(running.address).await.unwrap()).await;
    for path in ["healthz", "readyz"] {
        let answer = client().get(format!("http://{at}/{path}")).send().await;
        assert_eq!(answer.unwrap().status(), 200, "{path}");
    }
    let answer = client().get(format!("http://{at}/api/v1/instances")).send();
    assert_eq!(answer.await.unwrap().status(), 404);
    held.pop();
    // As soon as the server notices that one has closed.
    let answered = timeout(LONG, async {
        while client().get(running.url("/healthz")).send().await.is_err() {
            tokio::task::yield_now().await;
        }
    });
    answered.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_client_is_disconnected() {
    let setup = Setup {
        first_byte_max: Duration::from_millis(1_500),
        address_max: 2,
        ..Setup::new(Access::open("default"))
    };
    let running = setup.start().await;
    for _ in 0..3 {
        closed(TcpStream::connect(running.address).await.unwrap()).await;
    }
    // A client that has sent a request may be idle for longer.
    let client = client();
    for _ in 0..2 {
        let answer = client.get(running.url("/healthz")).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_above_the_rate_are_refused_with_a_time_to_retry() {
    let setup = Setup {
        reader: Arc::new(Reads),
        starts: StartLimits {
            workflow: 1,
            ..StartLimits::default()
        },
        ..Setup::new(Access::open("default"))
    };
    let running = setup.start().await;
    let client = client();
    let definition = "id: w\nversion: '1'\nspecVersion: '0.8'\nname: w\nstart: a\nstates:\n  - \
                      {name: a, type: inject, data: {}, end: true}\n";
    let deployed = client.post(running.url("/api/v1/definitions"));
    let deployed = deployed.body(definition).send().await.unwrap();
    assert_eq!(deployed.status(), 201);
    let mut started = 0;
    // The limit is ten at once and then one per second. A slow machine lets more pass, one for each second that it
    // took.
    let refused = loop {
        let url = running.url("/api/v1/workflows/w/instances");
        let answer = client.post(url).body("{}").send().await.unwrap();
        if answer.status() != 201 {
            break answer;
        }
        started += 1;
        assert!(started < 10_000);
    };
    assert!(started >= 10, "{started}");
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    assert!(refused.text().await.unwrap().contains("too-many-starts"));
}
