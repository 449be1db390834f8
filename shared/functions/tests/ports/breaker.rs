//! Circuit breakers: an unreachable host isn't called for a while, and is called again when it recovers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use swirl_functions::Caller;
use swirl_functions::breaker::{BreakerConfig, Circuits};
use swirl_functions::http::{Http, HttpConfig};
use swirl_model::time::IsoDuration;
use swirl_model::workflow::Function;
use swirl_model::{Data, data};
use swirl_ports::FunctionCaller;
use swirl_servers::eventually;

use crate::ports::calls::{definition, request, rest, workflow};
use crate::ports::serve;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60 * 60);

/// How long a host may stay silent, and how long it isn't called afterwards.
#[derive(Clone, Copy)]
struct Limits {
    timeout: Duration,
    pause: Duration,
}

const PATIENT: Limits = Limits {
    timeout: LONG,
    pause: LONG,
};

/// Answers with this status; with 0 it doesn't answer.
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
    /// `timeout` is the action's own timeout.
    async fn new(limits: Limits, timeout: Option<IsoDuration>) -> Fixture {
        let host = Arc::new(Host::default());
        let own = host.clone();
        let base = serve(Router::new().route("/x", get(async move || own.answer().await))).await;
        Fixture::calling(limits, host, &base, timeout)
    }

    fn calling(
        limits: Limits,
        host: Arc<Host>,
        base: &str,
        timeout: Option<IsoDuration>,
    ) -> Fixture {
        let config = HttpConfig {
            timeout: limits.timeout,
            proxy_from_env: false,
            breaker: Some(BreakerConfig {
                failures: 3,
                window: LONG,
                pause: limits.pause,
                pause_max: limits.pause,
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

    /// The code of the error, if the call failed.
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

    /// Makes a call, and drops it once the host has received `count` requests and `time` has passed.
    async fn drop_call_after(&self, count: usize, time: Duration) {
        let asked = async {
            eventually("the request", async || {
                (self.asked() == count).then_some(())
            })
            .await;
            // Time has to pass: the breaker measures it.
            tokio::time::sleep(time).await;
        };
        tokio::select! {
            code = self.call() => panic!("{code:?}"),
            () = asked => {}
        }
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
async fn a_failing_host_is_not_called() {
    let fixture = Fixture::new(PATIENT, None).await;
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
}

#[tokio::test]
async fn a_host_is_probed_until_it_answers() {
    let limits = Limits {
        pause: Duration::from_millis(1),
        ..PATIENT
    };
    let fixture = Fixture::new(limits, None).await;
    fixture.answers(503);
    // Some calls probe the host and fail. The calls between them are not made.
    eventually("some tries", async || {
        let code = fixture.call().await.unwrap();
        assert!(
            ["503", "not called: connection"].contains(&&*code),
            "{code}"
        );
        (fixture.asked() > 4).then_some(())
    })
    .await;
    fixture.answers(200);
    let answer = eventually("an answer", async || {
        let called = request(&fixture.function, Data::object());
        fixture.caller.call(called).await.ok()
    });
    assert_eq!(answer.await, data!({"ok": true}));
    assert_eq!(fixture.call().await, None);
    assert_eq!(fixture.circuits(), Circuits::default());
}

#[tokio::test]
async fn error_answers_close_the_circuit() {
    let fixture = Fixture::new(PATIENT, None).await;
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
async fn a_silent_host_opens_the_circuit() {
    let limits = Limits {
        timeout: Duration::from_millis(150),
        ..PATIENT
    };
    let fixture = Fixture::new(limits, None).await;
    for _ in 0..3 {
        assert_eq!(fixture.call().await.as_deref(), Some("timeout"));
    }
    let asked = fixture.asked();
    assert_eq!(
        fixture.call().await.as_deref(),
        Some("not called: connection")
    );
    assert_eq!(fixture.asked(), asked);
}

#[tokio::test]
async fn a_closed_port_opens_the_circuit() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let fixture = Fixture::calling(PATIENT, Arc::default(), &base, None);
    for _ in 0..3 {
        assert_eq!(fixture.call().await.as_deref(), Some("connection"));
    }
    assert_eq!(
        fixture.call().await.as_deref(),
        Some("not called: connection")
    );
}

/// The engine drops a call after the action's own timeout, which comes before the client's.
#[tokio::test]
async fn calls_dropped_in_time_do_not_count() {
    let fixture = Fixture::new(PATIENT, Some(IsoDuration::from_secs(60 * 60))).await;
    for count in 1..=5 {
        fixture.drop_call_after(count, Duration::ZERO).await;
    }
    assert_eq!(fixture.circuits(), Circuits::default());
    let own = IsoDuration {
        months: 0,
        millis: 100,
    };
    let fixture = Fixture::new(PATIENT, Some(own)).await;
    for count in 1..=3 {
        fixture
            .drop_call_after(count, Duration::from_millis(120))
            .await;
    }
    assert_eq!(fixture.circuits().open, 1);
}
