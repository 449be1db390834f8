//! Clients that take their time, over sockets.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use swirl_http_server::{Connections, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(120);
const NEVER: Duration = Duration::from_secs(3600);
/// More than the buffers of sockets take.
const LARGE: usize = 32 << 20;

async fn serve(limits: Limits) -> SocketAddr {
    let router = Router::new()
        .route("/", get(async || "here"))
        .route("/large", get(async || vec![b'x'; LARGE]))
        .route("/echo", post(async |body: Bytes| body));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        Connections::new(router, limits, None)
            .accept(&listener)
            .await;
    });
    address
}

/// Reads until this has arrived, or until the other end closes.
async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut all = Vec::new();
    let read = timeout(LONG, async {
        let mut some = [0; 1024];
        while !String::from_utf8_lossy(&all).contains(wanted) {
            match stream.read(&mut some).await {
                Ok(0) | Err(_) => break,
                Ok(count) => all.extend_from_slice(&some[..count]),
            }
        }
    });
    read.await.unwrap();
    String::from_utf8(all).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_do_not_come_end_a_connection() {
    let limits = Limits {
        first_byte: NEVER,
        headers: Duration::from_millis(100),
        idle: NEVER,
        write: NEVER,
        ..Limits::default()
    };
    let address = serve(limits).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\nx: ")
        .await
        .unwrap();
    assert_eq!(read_until(&mut stream, "never").await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_follow_each_other_and_bodies_take_their_time() {
    let limits = Limits {
        first_byte: NEVER,
        headers: LONG,
        idle: NEVER,
        write: NEVER,
        ..Limits::default()
    };
    let address = serve(limits).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    for _ in 0..3 {
        stream
            .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            .await
            .unwrap();
        assert!(
            read_until(&mut stream, "here")
                .await
                .starts_with("HTTP/1.1 200")
        );
        let head =
            b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 8\r\nexpect: 100-continue\r\n\r\n";
        stream.write_all(head).await.unwrap();
        assert!(
            read_until(&mut stream, "100 Continue\r\n\r\n")
                .await
                .starts_with("HTTP/1.1 100")
        );
        stream.write_all(b"half").await.unwrap();
        stream.write_all(b"rest").await.unwrap();
        read_until(&mut stream, "halfrest").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_its_share() {
    let limits = Limits {
        connections: 8,
        of_address: 1,
        first_byte: NEVER,
        ..Limits::default()
    };
    let address = serve(limits).await;
    let mut first = TcpStream::connect(address).await.unwrap();
    first
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    read_until(&mut first, "here").await;
    let mut second = TcpStream::connect(address).await.unwrap();
    assert_eq!(read_until(&mut second, "never").await, "");
}

async fn asks_for_much(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = b"GET /large HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    stream
}

/// How much arrives before the other end closes.
async fn taken(mut stream: TcpStream) -> usize {
    let (mut all, mut some) = (0, vec![0; 1 << 20]);
    let read = timeout(LONG, async {
        while let Ok(count @ 1..) = stream.read(&mut some).await {
            all += count;
        }
    });
    read.await.unwrap();
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_takes_make_room_for_others() {
    let limits = Limits {
        first_byte: NEVER,
        idle: NEVER,
        write: NEVER,
        answers: LARGE + LARGE / 2,
        ..Limits::default()
    };
    let address = serve(limits).await;
    let untaken = asks_for_much(address).await;
    let begun = untaken.readable();
    timeout(LONG, begun).await.unwrap().unwrap();
    // Time has to pass: so that it is old.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert!(taken(asks_for_much(address).await).await > LARGE);
    assert!(taken(untaken).await < LARGE);
    // A client that reads leaves nothing behind.
    for _ in 0..3 {
        assert!(taken(asks_for_much(address).await).await > LARGE);
    }
}
