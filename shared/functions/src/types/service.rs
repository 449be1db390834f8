//! An HTTP exchange with credentials, for function types whose services don't describe how to send credentials.

use std::future::Future;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use swirl_model::workflow::Function;
use url::Url;

use crate::auth::{Auth, Authorization, Secret, Tokens, digest_answer};
use crate::http::{Answer, Http};
use crate::servers::unknown;
use crate::types::{Documents, NOWHERE};
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
    /// Redirects within the same origin are followed.
    pub(crate) follows: bool,
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

    /// The same client, which reads a stream of events only until this holds for events that came together.
    pub(crate) fn until(&self, is_enough: fn(&[u8]) -> bool) -> Services {
        Services {
            http: self.http.clone().until(is_enough),
            tokens: self.tokens.clone(),
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
            let answer = self.send(ask, |_| Ok(None)).await?;
            return Ok(Reply {
                answer,
                secrets: ask.secrets.to_vec(),
                credentials: Vec::new(),
            });
        };
        if let Auth::Digest { username, password } = auth {
            return self.ask_with_digest(ask, (username, password)).await;
        }
        let mut authorization = Authorization::of(auth, &self.tokens, None).await?;
        let mut header = authorization.header()?;
        let mut answer = self.send(ask, |_| Ok(Some(header.clone()))).await?;
        if answer.status == 401 && authorization.can_renew() {
            authorization = Authorization::of(auth, &self.tokens, Some(&authorization)).await?;
            header = authorization.header()?;
            answer = self.send(ask, |_| Ok(Some(header.clone()))).await?;
        }
        Ok(Reply {
            answer,
            secrets: [&authorization.secrets[..], ask.secrets].concat(),
            credentials: authorization.secrets,
        })
    }

    /// Sends a request, and again with an answer to the service's challenge.
    async fn ask_with_digest(
        &self,
        ask: &Ask<'_>,
        (username, password): (&str, &Secret),
    ) -> Result<Reply, CallError> {
        let mut answer = self.send(ask, |_| Ok(None)).await?;
        if answer.status == 401 {
            let challenge = answer.headers.clone();
            // It is made for an address, and a redirect leads to another one.
            let own = |url: &Url| {
                let sent = (ask.method.as_str(), url, ask.body);
                digest_answer(&challenge, (username, password), sent)
            };
            if own(ask.url)?.is_some() {
                answer = self.send(ask, own).await?;
            }
        }
        let credentials = vec![password.expose().to_owned()];
        Ok(Reply {
            answer,
            secrets: [&credentials[..], ask.secrets].concat(),
            credentials,
        })
    }

    async fn send(
        &self,
        ask: &Ask<'_>,
        authorization: impl Fn(&Url) -> Result<Option<HeaderValue>, CallError>,
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
        let make = |url| {
            let mut headers = headers.clone();
            if let Some(authorization) = authorization(&url)? {
                headers.append(AUTHORIZATION, authorization);
            }
            let request = self.http.request(ask.method.clone(), url);
            let request = request.headers(headers);
            Ok(match ask.body {
                Some(body) => request.body(body.to_vec()),
                None => request,
            })
        };
        if !ask.follows {
            return self.http.send_as_is(ask.url, ask.what, make).await;
        }
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

/// The address of a service whose URL is in an operation: the operator's, or the URL itself, which may be relative to
/// the address in the function's metadata. Also the reason why it cannot be called, if nothing says where it is.
pub(crate) fn addressed(
    function: &Function,
    documents: &Documents<'_>,
    text: &str,
    what: &str,
) -> Result<(Url, Option<String>), String> {
    if let Some(server) = documents.server(function, Some(text)) {
        return Ok((server.clone(), None));
    }
    if Url::parse(text) != Err(url::ParseError::RelativeUrlWithoutBase)
        && swirl_spec::resource::classpath(text).is_none()
    {
        return Ok((service_url(text, what)?, None));
    }
    let path = swirl_spec::resource::plain_name(text);
    let join = |server: &Url| {
        let base = server.path().trim_end_matches('/');
        let mut url = server.clone();
        url.set_path(&format!("{base}/{}", path.trim_start_matches('/')));
        url
    };
    if let Some(server) = documents.server_or_own(function, Some(text))? {
        return Ok((join(&server), None));
    }
    let service = format!("the service `{text}`");
    let reason = unknown(&function.name, &service, "https://host");
    let nowhere = service_url(NOWHERE, what)?;
    Ok((join(&nowhere), Some(reason)))
}

/// Parses a service's URL in an operation; errors call it `what`.
pub(crate) fn service_url(text: &str, what: &str) -> Result<Url, String> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        Ok(_) => Err(format!("{what} `{text}` must be an http or https URL")),
        Err(_) if text.is_empty() => Err(format!("{what} is empty: its expression gave no string")),
        Err(error) => Err(format!("{what} `{text}` is not a valid URL: {error}")),
    }
}
