//! Requests to the API within the process, without a socket.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use swirl_api::{Call, Client, Page, Problem, Reply, Text};
use tower::ServiceExt;
use url::form_urlencoded::Serializer;

/// The largest answer, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The largest number of requests for the pages of a listing. Nobody reads more on one page.
const PAGES_MAX: usize = 20;

/// The characters that RFC 3986 allows in a segment of a path.
const KEPT: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A text as a segment of a path.
pub fn segment(text: &str) -> String {
    utf8_percent_encode(text, &KEPT).to_string()
}

/// Sends requests on behalf of a visitor.
#[derive(Clone)]
pub struct Asking {
    pub router: Router,
    pub token: Option<String>,
    /// The address of the visitor.
    pub from: Option<CameFrom>,
    /// The hint that made the page load itself.
    pub follows: Option<Follows>,
}

/// The address of a visitor, set by the server that mounts the console, and passed on with each request to the API.
#[derive(Debug, Clone, Copy)]
pub struct CameFrom(pub IpAddr);

/// An answer may be shared with all requests that follow the same hint: it isn't older than that hint. It is an extension
/// of requests, which no client outside of the process can set.
#[derive(Debug, Clone)]
pub struct Follows(pub Arc<str>);

/// The API refused the request, or failed.
#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    pub problem: Problem,
}

impl Asking {
    /// An answer that isn't JSON.
    pub async fn text<Q, B>(&self, call: Call<Q, B, Text>) -> Result<String, Refusal>
    where
        Q: Serialize,
    {
        let reply = self.send(call.request()).await?;
        match reply.status {
            0..400 => Ok(String::from_utf8_lossy(&reply.body).into_owned()),
            _ => {
                let problem: Problem = serde_json::from_slice(&reply.body).unwrap_or_default();
                Err(Refusal::from(problem))
            }
        }
    }

    /// Asks as the visitor. A refusal is an error here, since the page shows it.
    pub async fn ask<Q, B, A>(&self, call: Call<Q, B, A>) -> Result<A, Refusal>
    where
        Q: Serialize + Send + Sync,
        A: DeserializeOwned,
    {
        let answer = Client::ask(self, call).await?;
        answer.map_err(Refusal::from)
    }

    /// As [`Asking::ask`], for a listing with its pages.
    pub async fn ask_pages<B, A>(&self, call: Call<A::Query, B, A>) -> Result<A, Refusal>
    where
        A: Page + DeserializeOwned + Send,
        A::Query: Serialize + Send + Sync,
    {
        let answer = Client::ask_pages(self, call, PAGES_MAX).await?;
        answer.map_err(Refusal::from)
    }
}

impl Client for Asking {
    type Error = Refusal;

    async fn send(&self, asked: swirl_api::Request) -> Result<Reply, Refusal> {
        let mut uri = match &asked.path[..] {
            // A path outside the API.
            [one] if one.starts_with('/') => one.clone(),
            path => path.iter().fold("/api/v1".to_owned(), |uri, part| {
                format!("{uri}/{}", segment(part))
            }),
        };
        if !asked.query.is_empty() {
            let query = Serializer::new(String::new())
                .extend_pairs(&asked.query)
                .finish();
            uri = format!("{uri}?{query}");
        }
        let mut request = Request::builder().method(asked.method.as_str()).uri(uri);
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in &asked.headers {
            request = request.header(*name, value);
        }
        let broken =
            |detail: String| Refusal::new(StatusCode::BAD_REQUEST, "invalid-request", detail);
        let request = request.body(Body::from(asked.body));
        let mut request = request.map_err(|error| broken(error.to_string()))?;
        if let Some(from) = self.from {
            request.extensions_mut().insert(from);
        }
        if let Some(follows) = &self.follows {
            request.extensions_mut().insert(follows.clone());
        }
        let Ok(response) = self.router.clone().oneshot(request).await;
        let status = response.status().as_u16();
        let bytes = to_bytes(response.into_body(), ANSWER_BYTES_MAX).await;
        let body = bytes.map_err(|error| broken(error.to_string()))?.to_vec();
        Ok(Reply { status, body })
    }

    fn unreadable(_: u16, error: &serde_json::Error) -> Refusal {
        let detail = format!("the answer of the API is not what its contract says: {error}");
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }
}

impl Refusal {
    fn new(status: StatusCode, code: &str, detail: String) -> Refusal {
        Refusal::from(Problem {
            status: status.as_u16(),
            code: code.to_owned(),
            detail,
            ..Problem::default()
        })
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Refusal {
        let status = StatusCode::from_u16(problem.status);
        Refusal {
            status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            problem,
        }
    }
}
