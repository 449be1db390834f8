//! A small HTTP service for the examples and tests to call.
//!
//! It simulates a shop: orders with items, prices, a reservation, a payment, a shipment. For tests of
//! callers it also has an echo, answers that are slow or fail at first, and jobs to
//! poll. Its OpenAPI document is at `/openapi.json`.
//!
//! It is deterministic: ids are counted from 1, prices are fixed, nothing depends on the clock.
//! Every call except those to `/openapi.json`, `/calls` and `/health` is kept in a log with its
//! `Idempotency-Key` (`GET /calls`; `DELETE /calls` clears it), so that a test can count repeats. A
//! call, other than a GET, that repeats a key on the same method and path gets the first answer
//! again, without the work being done again, if that answer was a success; the log marks it.
//!
//! All state is in memory and bounded: of each kind the newest [`KEPT_MAX`] entries are kept.

mod api;
mod calls;
mod shop;

use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::middleware::from_fn_with_state;
use tokio::net::TcpListener;

/// How many calls, answers, orders and jobs are kept, each; older ones are forgotten.
pub const KEPT_MAX: usize = 10_000;

/// The largest request body, in bytes.
pub const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Serves until the future is dropped or the listener fails.
///
/// # Errors
/// The listener's error when it can accept no more connections.
pub async fn serve(listener: TcpListener) -> std::io::Result<()> {
    axum::serve(listener, router()).await
}

/// The service's OpenAPI 3.0 document. Its server is `/`: relative to where it was read from.
pub fn openapi() -> serde_json::Value {
    api::document()
}

/// The service as a router with fresh state.
pub fn router() -> Router {
    let service = Service::default();
    api::routes()
        .layer(from_fn_with_state(service.clone(), calls::record))
        .merge(calls::routes())
        .with_state(service)
}

/// The service's memory, shared by all connections.
#[derive(Clone, Default)]
pub(crate) struct Service {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) calls: calls::Log,
    pub(crate) shop: shop::Shop,
}

impl Service {
    /// A handler that panicked leaves state that is still good enough for a demo.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use reqwest::{Client, Method};
    use serde_json::{Value, json};

    use super::*;

    struct Demo {
        base: String,
        client: Client,
    }

    impl Demo {
        async fn start() -> Demo {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let base = format!("http://{}", listener.local_addr().unwrap());
            tokio::spawn(serve(listener));
            Demo {
                base,
                client: {
                    // Other crates may have switched TLS on, which then needs a provider.
                    let _ = rustls::crypto::ring::default_provider().install_default();
                    Client::builder().no_proxy().build().unwrap()
                },
            }
        }

        async fn call(&self, method: Method, path: &str, key: &str, body: Value) -> (u16, Value) {
            let request = self.client.request(method, format!("{}{path}", self.base));
            let request = if key.is_empty() {
                request
            } else {
                request.header("idempotency-key", key)
            };
            let response = request.json(&body).send().await.unwrap();
            let status = response.status().as_u16();
            (status, response.json().await.unwrap_or_default())
        }

        async fn post(&self, path: &str, key: &str, body: Value) -> (u16, Value) {
            self.call(Method::POST, path, key, body).await
        }

        async fn get(&self, path: &str) -> (u16, Value) {
            self.call(Method::GET, path, "", Value::Null).await
        }
    }

    #[tokio::test]
    async fn a_repeated_key_gets_the_first_answer_and_is_counted() {
        let demo = Demo::start().await;
        for _ in 0..2 {
            let (status, answer) = demo
                .post("/orders/7/payment", "a", json!({"amount": 5}))
                .await;
            assert_eq!((status, answer["payment"].as_u64()), (200, Some(1)));
        }
        let (_, other) = demo
            .post("/orders/7/payment", "b", json!({"amount": 5}))
            .await;
        assert_eq!(other["payment"], 2);

        let (_, calls) = demo.get("/calls").await;
        let seen: Vec<_> = calls
            .as_array()
            .unwrap()
            .iter()
            .map(|c| (&c["idempotencyKey"], &c["repeat"]))
            .collect();
        let [a, b, yes, no] = [json!("a"), json!("b"), json!(true), json!(false)];
        assert_eq!(seen, [(&a, &no), (&a, &yes), (&b, &no)]);

        demo.call(Method::DELETE, "/calls", "", Value::Null).await;
        assert_eq!(demo.get("/calls").await.1, json!([]));
    }

    #[tokio::test]
    async fn a_failure_is_not_remembered() {
        let demo = Demo::start().await;
        let mut statuses = Vec::new();
        for _ in 0..3 {
            statuses.push(
                demo.post("/flaky?key=k&failures=2", "a", Value::Null)
                    .await
                    .0,
            );
        }
        assert_eq!(statuses, [503, 503, 200]);
    }

    #[tokio::test]
    async fn a_job_is_done_after_the_polls_it_asked_for() {
        let demo = Demo::start().await;
        let (status, job) = demo.post("/jobs", "", json!({"polls": 1})).await;
        assert_eq!((status, &job["id"]), (202, &json!(1)));
        assert_eq!(demo.get("/jobs/1").await.1["status"], "running");
        assert_eq!(demo.get("/jobs/1").await.1["status"], "done");
        assert_eq!(demo.get("/jobs/2").await.0, 404);
    }

    #[tokio::test]
    async fn the_shop_refuses_what_it_cannot_do() {
        let demo = Demo::start().await;
        for (path, body, status) in [
            (
                "/orders/1/reservation",
                json!({"item": "unicorn", "quantity": 1}),
                409,
            ),
            ("/orders/1/reservation", json!({"item": "apple"}), 400),
            ("/orders/1/payment", json!({"amount": 100_001}), 402),
            ("/orders/1/shipment", json!({}), 200),
            ("/greet", json!({}), 400),
        ] {
            assert_eq!(
                demo.post(path, "", body.clone()).await.0,
                status,
                "{path} {body}"
            );
        }
        assert_eq!(
            demo.get("/items/lamp/price?quantity=2").await.1["total"],
            7980
        );
    }

    /// Each operation of the document is served: none answers "no such route" or "no such method".
    #[tokio::test]
    async fn the_document_describes_what_is_served() {
        let demo = Demo::start().await;
        let document = openapi();
        for (path, item) in document["paths"].as_object().unwrap() {
            let url = path
                .replace("{item}", "apple")
                .replace("{order}", "1")
                .replace("{id}", "1");
            let url = if url == "/slow" {
                "/slow?ms=1".to_owned()
            } else {
                url
            };
            demo.post("/jobs", "", json!({})).await;
            for method in item.as_object().unwrap().keys() {
                let method: Method = method.to_uppercase().parse().unwrap();
                let (status, _) = demo.call(method.clone(), &url, "", json!({})).await;
                assert!(![404, 405].contains(&status), "{method} {url}: {status}");
            }
        }
    }
}
