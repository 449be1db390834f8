//! Bodies that never become complete: nobody waits for them, and they keep nobody else from being served.

use std::time::Duration;

use swirl_coordinator::access::Access;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::console::Browser;
use crate::running::{Running, Setup, client, guarded};

const LONG: Duration = swirl_servers::PATIENCE;
const LARGE: usize = 3 << 20;

/// A request that says how large its body is, and sends only the beginning.
async fn begin(
    running: &Running,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    (length, sent): (usize, &str),
) -> TcpStream {
    let mut stream = TcpStream::connect(running.address).await.unwrap();
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: {length}\r\n",
        running.address
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let whole = format!("{head}\r\n{sent}");
    stream.write_all(whole.as_bytes()).await.unwrap();
    stream
}

/// The status of the answer, and all of its text.
async fn answer(mut stream: TcpStream) -> (u16, String) {
    let mut text = Vec::new();
    // The connection may be reset, since the body was not read.
    let _ = timeout(LONG, stream.read_to_end(&mut text)).await.unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    let status = text
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (
        status.unwrap_or_else(|| panic!("no answer: {text:?}")),
        text,
    )
}

fn operations() -> Vec<(String, String)> {
    let document: serde_json::Value = serde_json::from_str(swirl_api::OPENAPI).unwrap();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in ["post", "delete"] {
            if item.get(method).is_some() {
                all.push((method.to_uppercase(), path.replace(['{', '}'], "")));
            }
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_reads_no_body_of_a_stranger() {
    let running = Setup::new(guarded(None)).start().await;
    let all = operations();
    assert!(all.len() > 20, "{all:?}");
    for (method, path) in all {
        let begun = begin(&running, &method, &path, &[], (LARGE, "{")).await;
        let (status, text) = answer(begun).await;
        assert_eq!(status, 401, "{method} {path}: {text}");
    }
    // A body that says that it is too large is not waited for either.
    let token = [("authorization", "Bearer admin-token")];
    let path = "/api/v1/workflows/w/instances";
    let begun = begin(&running, "POST", path, &token, (LARGE, "{")).await;
    assert_eq!(answer(begun).await.0, 413);
}

const FORMS: &[&str] = &[
    "/console/batches",
    "/console/batches/x/pause",
    "/console/dead-letters/1/retry",
    "/console/definitions",
    "/console/definitions/w/1/delete",
    "/console/deploy/findings",
    "/console/events",
    "/console/instances/x/cancel",
    "/console/schedules/w/fire",
    "/console/start/w/1",
    "/console/views",
    "/console/views/remove",
];

#[tokio::test(flavor = "multi_thread")]
async fn the_console_reads_no_form_of_a_stranger() {
    let running = Setup::new(guarded(None)).start().await;
    let mut browser = Browser::new(&running);
    // The token of a form is known to everybody who has loaded the page to sign in.
    let csrf = browser.csrf("/console/sign-in").await;
    let known = format!("csrf={csrf}&token=");
    let cookie = browser.cookie.clone();
    let cookie = [("cookie", cookie.as_str())];
    for path in FORMS {
        let begun = begin(&running, "POST", path, &cookie, (200_000, &known)).await;
        let (status, text) = answer(begun).await;
        assert_eq!(status, 303, "{path}: {text}");
        assert!(text.contains("/console/sign-in?next="), "{path}: {text}");
    }
    for path in ["/console/sign-in", "/console/sign-out"] {
        let begun = begin(&running, "POST", path, &cookie, (LARGE, &known)).await;
        assert_eq!(answer(begun).await.0, 413, "{path}");
        let forged = format!("csrf={}&token=", "0".repeat(csrf.len()));
        let begun = begin(&running, "POST", path, &cookie, (10_000, &forged)).await;
        assert_eq!(answer(begun).await.0, 403, "{path}");
    }
    // With a session, the token of the form is checked before the rest.
    browser.sign_in("admin", "/console/").await;
    let cookie = [("cookie", browser.cookie.as_str())];
    for path in FORMS {
        let forged = format!("csrf={csrf}&document=");
        let begun = begin(&running, "POST", path, &cookie, (200_000, &forged)).await;
        assert_eq!(answer(begun).await.0, 403, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn incomplete_bodies_make_room_for_others() {
    let setup = Setup {
        incomplete_bodies: 100_000,
        ..Setup::new(Access::open("default"))
    };
    let running = setup.start().await;
    let (path, half) = ("/api/v1/definitions", " ".repeat(60_000));
    let first = begin(&running, "POST", path, &[], (100_000, &half)).await;
    let first = tokio::spawn(answer(first));
    // It keeps its room for a second, and loses it to whoever comes then.
    let refused = timeout(LONG, async {
        loop {
            let whole = client().post(running.url(path)).body(half.clone());
            let answer = whole.send().await.unwrap();
            let (status, text) = (answer.status(), answer.text().await.unwrap());
            if status != 503 {
                break (status, text);
            }
            assert!(text.contains("too-many-bodies"), "{text}");
        }
    });
    let (status, text) = refused.await.unwrap();
    assert_eq!(status, 422, "an empty document: {text}");
    let (status, text) = first.await.unwrap();
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("too-many-bodies"), "{text}");
}
