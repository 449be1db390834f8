//! A client that records the answers, so that a test can find out which ones were missing.

use std::sync::Mutex;
use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

/// No request in these tests takes longer.
const TIMEOUT: Duration = swirl_servers::PATIENCE;

pub const JSON: (&str, &str) = ("content-type", "application/json");

pub struct Http {
    client: reqwest::Client,
    seen: Mutex<Vec<Seen>>,
}

/// An answered request.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub status: u16,
    /// The code of a refusal.
    pub code: Option<String>,
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub text: String,
    /// Null if it is not valid JSON.
    pub body: Value,
}

impl Answer {
    #[track_caller]
    pub fn is(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:#?}");
        self.body
    }

    /// Checks a refusal: it has the media type of problems, and status and code in the body.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Value {
        assert_eq!(
            (self.status, &self.body["code"]),
            (status, &code.into()),
            "{self:#?}"
        );
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.body["status"], status, "{self:#?}");
        let detail = self.body["detail"].as_str().unwrap_or_default();
        assert!(
            !detail.is_empty() && self.body["title"].is_string(),
            "{self:#?}"
        );
        self.body
    }
}

impl Http {
    pub fn new() -> Http {
        Http {
            client: reqwest::Client::builder()
                .tls_backend_preconfigured(swirl_functions::http::tls().unwrap())
                .timeout(TIMEOUT)
                // A server closes a connection after ten seconds without a request.
                .pool_idle_timeout(Duration::from_secs(5))
                .no_proxy()
                .build()
                .unwrap(),
            seen: Mutex::default(),
        }
    }

    pub async fn send(
        &self,
        method: Method,
        base: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> reqwest::Result<Answer> {
        let mut request = self.client.request(method.clone(), format!("{base}{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.body(body).send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await?;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        self.note(Seen {
            method: method.as_str().to_lowercase(),
            path: path.split('?').next().unwrap_or_default().to_owned(),
            status,
            code: body["code"].as_str().map(str::to_owned),
        });
        Ok(Answer {
            status,
            headers,
            text,
            body,
        })
    }

    pub fn note(&self, seen: Seen) {
        self.seen.lock().unwrap().push(seen);
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}
