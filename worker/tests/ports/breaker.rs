//! A host that is away is left alone for a while, and found again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use swirl_model::time::IsoDuration;
use swirl_model::workflow::Function;
use swirl_model::{Data, data};
use swirl_ports::FunctionCaller;
use swirl_worker::Caller;
use swirl_worker::breaker::{BreakerConfig, Circuits};
use swirl_worker::http::{Http, HttpConfig};

use crate::calls::{definition, request, rest, workflow};
use crate::serve;

const PAUSE: Duration = Duration::from_millis(300);
const TIMEOUT: Duration = Duration::from_millis(150);

/// Answers with the status that it is told; 0: not at all.
#[derive(Default)]
struct Host {
    status: AtomicU16,
    asked: AtomicUsize,
}

struct Fixture {
    host: Arc<Host>,
    caller: Caller,
    function: Function,
}

impl Fixture {
    async fn new(timeout: Option<IsoDuration>) -> Fixture {
        let host = Arc::new(Host::default());
        let own = host.clone();
        let base = serve(Router::new().route("/x", get(async move || own.answer().await))).await;
        Fixture::calling(host, &base, timeout)
    }

    fn calling(host: Arc<Host>, base: &str, timeout: Option<IsoDuration>) -> Fixture {
        let config = HttpConfig {
            timeout: TIMEOUT,
            proxy_from_env: false,
            breaker: Some(BreakerConfig {
                failures: 3,
                window: Duration::from_secs(60),
                pause: PAUSE,
                pause_max: PAUSE,
            }),
            ..HttpConfig::default()
        };
        let caller = Caller::new(Http::new(config).unwrap());
        let function = rest("x", "api.yaml#op");
        let workflow = workflow(vec![function.clone()], timeout);
        let document = format!(
            "openapi: 3.0.3\nservers: [{{url: '{base}'}}]\npaths: {{/x: {{get: {{operationId: op}}}}}}"
        );
        let resources = [("api.yaml".to_owned(), document)];
        caller
            .prepare(&definition(), &workflow, &resources)
            .unwrap();
        Fixture {
            host,
            caller,
            function,
        }
    }

    /// The code of the error, if there is one.
    async fn call(&self) -> Option<String> {
        let called = self
            .caller
            .call(request(&self.function, Data::object()))
            .await;
        called
            .err()
            .map(|error| match error.message.contains("not called") {
                true => format!("not called: {}", error.code.unwrap()),
                false => error.code.unwrap(),
            })
    }

    fn answers(&self, status: u16) {
        self.host.status.store(status, Ordering::Relaxed);
    }

    fn asked(&self) -> usize {
        self.host.asked.load(Ordering::Relaxed)
    }

    fn circuits(&self) -> Circuits {
        self.caller.breakers().unwrap().circuits()
    }
}

impl Host {
    async fn answer(&self) -> Response {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match self.status.load(Ordering::Relaxed) {
            0 => std::future::pending().await,
            200 => axum::Json(serde_json::json!({"ok": true})).into_response(),
            status => StatusCode::from_u16(status).unwrap().into_response(),
        }
    }
}

#[tokio::test]
async fn a_host_is_left_alone_and_tried_until_it_answers() {
    let fixture = Fixture::new(None).await;
    for status in [502, 503, 504] {
        fixture.answers(status);
        assert_eq!(fixture.call().await, Some(status.to_string()));
    }
    fixture.answers(503);
    assert_eq!(
        fixture.call().await.as_deref(),
        Some("not called: connection")
    );
    assert_eq!((fixture.asked(), fixture.circuits().open), (3, 1));
    tokio::time::sleep(PAUSE).await;
    // One call tries it, and fails.
    assert_eq!(fixture.call().await.as_deref(), Some("503"));
    assert_eq!(
        fixture.call().await.as_deref(),
        Some("not called: connection")
    );
    assert_eq!(fixture.asked(), 4);
    fixture.answers(200);
    tokio::time::sleep(PAUSE).await;
    let answer = fixture
        .caller
        .call(request(&fixture.function, Data::object()))
        .await;
    assert_eq!(answer.unwrap(), data!({"ok": true}));
    assert_eq!(fixture.call().await, None);
    assert_eq!(fixture.circuits(), Circuits::default());
}

#[tokio::test]
async fn answers_that_say_somebody_is_there_close_it() {
    let fixture = Fixture::new(None).await;
    for status in [500, 429, 404, 401, 501] {
        fixture.answers(status);
        for _ in 0..4 {
            assert_eq!(fixture.call().await, Some(status.to_string()));
        }
    }
    for status in [503, 503, 500, 503, 503] {
        fixture.answers(status);
        assert_eq!(fixture.call().await, Some(status.to_string()));
    }
    assert_eq!(fixture.asked(), 25);
}

#[tokio::test]
async fn a_host_that_says_nothing_is_away() {
    let fixture = Fixture::new(None).await;
    for _ in 0..3 {
        assert_eq!(fixture.call().await.as_deref(), Some("timeout"));
    }
    let begun = Instant::now();
    assert_eq!(
        fixture.call().await.as_deref(),
        Some("not called: connection")
    );
    assert!(begun.elapsed() < TIMEOUT, "it fails at once");
}

#[tokio::test]
async fn a_port_that_nobody_listens_at_is_a_host_that_is_away() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let fixture = Fixture::calling(Arc::default(), &base, None);
    for _ in 0..3 {
        assert_eq!(fixture.call().await.as_deref(), Some("connection"));
    }
    assert_eq!(
        fixture.call().await.as_deref(),
        Some("not called: connection")
    );
}

/// The engine gives a call up after the action's own time, which is before the client's.
#[tokio::test]
async fn what_is_given_up_in_time_says_nothing_of_the_host() {
    let own = IsoDuration {
        months: 0,
        millis: 100,
    };
    let fixture = Fixture::new(Some(own)).await;
    for _ in 0..5 {
        let early = tokio::time::timeout(Duration::from_millis(20), fixture.call()).await;
        assert!(early.is_err());
    }
    assert_eq!(fixture.circuits(), Circuits::default());
    for _ in 0..3 {
        let late = tokio::time::timeout(Duration::from_millis(120), fixture.call()).await;
        assert!(late.is_err());
    }
    assert_eq!(fixture.circuits().open, 1);
    assert_eq!(fixture.asked(), 8);
}
