//! An HTTP exchange with credentials, for function types whose services don't describe how to send credentials.

use std::future::Future;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use crate::auth::{Auth, Authorization, Tokens};
use crate::http::{Answer, Http};
use crate::{CallError, CallErrorKind};

/// The header by which a receiver recognises repeated calls.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The header that passes the caller's span to the receiver.
pub(crate) const TRACEPARENT: &str = "traceparent";

/// Sends requests over a shared client, and caches OAuth2 tokens.
#[derive(Debug)]
pub(crate) struct Services {
    http: Http,
    tokens: Tokens,
}

/// A request without credentials.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    pub(crate) url: &'a Url,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: Option<&'a [u8]>,
    /// The request's name in errors.
    pub(crate) what: &'a str,
    /// These are removed from the kept or shown parts of the answer, in addition to the credentials.
    pub(crate) secrets: &'a [String],
}

/// An answer with any status.
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    /// These are removed from the shown parts.
    pub(crate) secrets: Vec<String>,
    /// The secrets that were sent as credentials. They are removed from names and codes too, which otherwise stay as
    /// the service sent them, because handlers match by them.
    pub(crate) credentials: Vec<String>,
}

impl Services {
    pub(crate) fn new(http: Http) -> Services {
        Services {
            tokens: Tokens::new(http.clone()),
            http,
        }
    }

    pub(crate) fn http(&self) -> &Http {
        &self.http
    }

    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Sends a request. If the service refuses a renewable token, sends it again with a fresh one.
    ///
    /// # Errors
    /// [`CallError`] if there is no answer; an answer of any status is not an error.
    pub(crate) async fn ask(&self, ask: &Ask<'_>, auth: Option<&Auth>) -> Result<Reply, CallError> {
        let (size, limit) = (
            ask.body.map_or(0, <[u8]>::len),
            self.http.config().request_bytes_max,
        );
        if size > limit {
            let message = format!(
                "{}: the request has {size} bytes; at most {limit} are sent",
                ask.what
            );
            return Err(CallError::new(CallErrorKind::Limit, message));
        }
        let Some(auth) = auth else {
            let answer = self.send(ask, None).await?;
            return Ok(Reply {
                answer,
                secrets: ask.secrets.to_vec(),
                credentials: Vec::new(),
            });
        };
        let mut authorization = Authorization::of(auth, &self.tokens, None).await?;
        let mut answer = self.send(ask, Some(&authorization)).await?;
        if answer.status == 401 && authorization.can_renew() {
            authorization = Authorization::of(auth, &self.tokens, Some(&authorization)).await?;
            answer = self.send(ask, Some(&authorization)).await?;
        }
        Ok(Reply {
            answer,
            secrets: [&authorization.secrets[..], ask.secrets].concat(),
            credentials: authorization.secrets,
        })
    }

    async fn send(
        &self,
        ask: &Ask<'_>,
        authorization: Option<&Authorization>,
    ) -> Result<Answer, CallError> {
        let mut headers = HeaderMap::new();
        for (name, value) in ask.headers {
            let field = HeaderName::from_bytes(name.as_bytes());
            let (Ok(field), Ok(value)) = (field, HeaderValue::from_str(value)) else {
                let message = format!("{}: the header `{name}` cannot be sent", ask.what);
                return Err(CallError::arguments(message));
            };
            headers.append(field, value);
        }
        if let Some(authorization) = authorization {
            headers.append(AUTHORIZATION, authorization.header()?);
        }
        let make = |url| {
            let request = self.http.request(ask.method.clone(), url);
            let request = request.headers(headers.clone());
            Ok(match ask.body {
                Some(body) => request.body(body.to_vec()),
                None => request,
            })
        };
        self.http
            .send_on(&ask.method, ask.url, ask.what, make)
            .await
    }
}

/// Applies the time limit of a whole call.
pub(crate) async fn in_time<T>(
    limit: Duration,
    what: &str,
    call: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(limit, call).await {
        Ok(result) => result,
        Err(_) => {
            let message = format!("{what}: no answer within {} s", limit.as_secs_f64());
            Err(CallError::new(CallErrorKind::Timeout, message))
        }
    }
}

/// Parses a service's URL in an operation; errors call it `what`.
pub(crate) fn service_url(text: &str, what: &str) -> Result<Url, String> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        Ok(_) => Err(format!("{what} `{text}` must be an http or https URL")),
        Err(error) => Err(format!("{what} `{text}` is not a valid URL: {error}")),
    }
}
