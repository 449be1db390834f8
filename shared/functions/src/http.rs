//! The HTTP client that all function types share: one connection pool with limits.
//!
//! It knows nothing about operations: it sends a request, returns an answer of bounded size, and reports any failure as
//! a [`CallError`] without the URL's query. It follows redirects within one origin, and only if the caller asks for
//! that (`Http::send_on`). It keeps no cookies and never repeats a request by itself, because that is the workflow's
//! decision. Answers may be compressed; the size limit applies to the decoded bytes. Dropping a call's future closes
//! its connection. `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` are honoured.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder};
use swirl_model::redact::CUT;
use url::Url;

use crate::breaker::{self, BreakerConfig, Breakers};
use crate::egress::{Egress, Gate};
use crate::exchange;
pub(crate) use crate::shown::shown;
use crate::watch::{self, Content, Sending};
use crate::{CallError, CallErrorKind};

/// How many redirects one request may follow.
const REDIRECTS_MAX: u32 = 5;

/// The limits of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// The limit for connecting. Default: 5 s.
    pub connect_timeout: Duration,
    /// The limit for a whole call, including connection, token and answer, if the call has none of its own. Default: 60
    /// s.
    pub timeout: Duration,
    /// The largest answer, in bytes. Default: 8 MiB.
    pub response_bytes_max: usize,
    /// The largest request body, in bytes. Default: 8 MiB.
    pub request_bytes_max: usize,
    /// The number of idle connections kept for each host. Default: 256. If more calls than this are in flight, answers
    /// that arrive together close connections, and the next calls open new ones, which costs more than the call.
    pub idle_per_host_max: usize,
    /// Whether the proxy variables of the environment are honoured. Default: yes.
    pub proxy_from_env: bool,
    /// The circuit breaker for failing hosts. Default: none.
    pub breaker: Option<BreakerConfig>,
    /// The rules for addresses that may be called. Default: no link-local ones.
    pub egress: Egress,
}

impl Default for HttpConfig {
    fn default() -> HttpConfig {
        HttpConfig {
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(60),
            response_bytes_max: 8 * 1024 * 1024,
            request_bytes_max: 8 * 1024 * 1024,
            idle_per_host_max: 256,
            proxy_from_env: true,
            breaker: None,
            egress: Egress::default(),
        }
    }
}

/// The reason why the client cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("the TLS configuration was refused: {0}")]
    Tls(#[from] rustls::Error),
    #[error("the HTTP client cannot be created: {0}")]
    Client(#[from] reqwest::Error),
}

/// The shared client. A clone uses the same connections.
#[derive(Debug, Clone)]
pub struct Http {
    client: Client,
    config: HttpConfig,
    breakers: Option<Arc<Breakers>>,
    gate: Gate,
}

/// An answer with any status.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The target of a redirect, without its query.
    pub(crate) fn location(&self) -> Option<&str> {
        let location = self.headers.get(LOCATION)?.to_str().ok()?;
        location.split(['?', '#']).next()
    }
}

impl Http {
    /// # Errors
    /// [`HttpError`] if the TLS library refuses its configuration. Missing CA certificates aren't an error: calls over
    /// plain HTTP work, and others fail with a certificate error.
    pub fn new(config: HttpConfig) -> Result<Http, HttpError> {
        let gate = Gate::new(config.egress.clone());
        let mut builder = Client::builder()
            .dns_resolver(gate.clone())
            .user_agent(concat!("swirl/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(tls()?)
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(config.connect_timeout)
            .pool_max_idle_per_host(config.idle_per_host_max);
        if !config.proxy_from_env {
            builder = builder.no_proxy();
        }
        Ok(Http {
            client: builder.build()?,
            breakers: config
                .breaker
                .clone()
                .map(|config| Arc::new(Breakers::new(config))),
            config,
            gate,
        })
    }

    pub(crate) fn config(&self) -> &HttpConfig {
        &self.config
    }

    /// The circuits of the hosts that are called, or `None` if circuit breakers are off.
    pub fn breakers(&self) -> Option<&Arc<Breakers>> {
        self.breakers.as_ref()
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(crate) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.client.request(method, url)
    }

    /// Sends a request and reads the whole answer. `what` names it in errors: `GET http://host/path`.
    pub(crate) async fn send(
        &self,
        request: RequestBuilder,
        url: &Url,
        what: &str,
    ) -> Result<Answer, CallError> {
        self.gate
            .check_url(url)
            .await
            .map_err(|refused| CallError::arguments(format!("{what}: {refused}")))?;
        let Some(breakers) = &self.breakers else {
            return self.exchange(request, url, what).await;
        };
        let (host, port) = (url.host_str().unwrap_or("?"), url.port_or_known_default());
        let host = format!("{host}:{}", port.unwrap_or(0));
        let pass = breakers
            .enter(&host)
            .map_err(|wait| breaker::refusal(what, &host, wait))?;
        let result = self.exchange(request, url, what).await;
        match &result {
            Ok(answer) => pass.over(breaker::is_gateways(answer.status)),
            // The request was not sent.
            Err(error) if error.kind == CallErrorKind::Arguments => drop(pass),
            Err(error) => pass.over(matches!(
                error.kind,
                CallErrorKind::Connection | CallErrorKind::Timeout
            )),
        }
        result
    }

    /// As [`Http::send`], but follows redirects within the same origin: for GET and HEAD, and for any method with its
    /// body for 307 and 308. `make` creates the request for a URL. A redirect to another origin, or beyond the maximum
    /// number, is returned unchanged.
    pub(crate) async fn send_on(
        &self,
        method: &Method,
        url: &Url,
        what: &str,
        make: impl Fn(Url) -> Result<RequestBuilder, CallError>,
    ) -> Result<Answer, CallError> {
        let mut at = url.clone();
        let mut left = REDIRECTS_MAX;
        loop {
            let answer = self.send(make(at.clone())?, &at, what).await?;
            match onward(method, &at, &answer) {
                Some(target) if left > 0 => at = target,
                _ => return Ok(answer),
            }
            left -= 1;
        }
    }

    async fn exchange(
        &self,
        request: RequestBuilder,
        url: &Url,
        what: &str,
    ) -> Result<Answer, CallError> {
        let failed = |error| self.failed(error, url, what);
        let (client, request) = request.build_split();
        let request = request.map_err(failed)?;
        let method = request.method().clone();
        watch::sending(|| sending(&request)).await;
        exchange::note(&method, url, None);
        let mut response = client.execute(request).await.map_err(failed)?;
        exchange::note(&method, url, Some(response.status().as_u16()));
        let limit = self.config.response_bytes_max;
        let too_large = || {
            let message = format!("{what}: the answer is larger than {limit} bytes");
            CallError::new(CallErrorKind::Limit, message)
        };
        let announced = response.content_length().unwrap_or(0);
        if announced > limit as u64 {
            return Err(too_large());
        }
        let mut body = Vec::with_capacity(announced as usize);
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body,
        })
    }

    fn failed(&self, error: reqwest::Error, url: &Url, what: &str) -> CallError {
        let host = url.host_str().unwrap_or("?");
        let port = url.port_or_known_default().unwrap_or(0);
        let cause = root_cause(&error);
        if error.is_connect() && error.is_timeout() {
            let seconds = self.config.connect_timeout.as_secs_f64();
            let message = format!("{what}: no connection to {host} port {port} within {seconds} s");
            return CallError::new(CallErrorKind::Connection, message);
        }
        if error.is_timeout() {
            return CallError::new(CallErrorKind::Timeout, format!("{what}: {cause}"));
        }
        if error.is_builder() {
            return CallError::arguments(format!("{what}: the request cannot be made: {cause}"));
        }
        let message = if error.is_connect() {
            format!("{what}: no connection to {host} port {port}: {cause}")
        } else {
            format!("{what}: the connection to {host} port {port} broke: {cause}")
        };
        CallError::new(CallErrorKind::Connection, message)
    }
}

/// Describes the request as it is sent. A multipart body is a stream, so the code that creates it describes it.
fn sending(request: &reqwest::Request) -> Sending {
    let mut url = request.url().clone();
    // Neither call fails for a URL with a host, and a URL without one has no user either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let text = |value: &HeaderValue| match value.is_sensitive() {
        true => CUT.to_owned(),
        false => String::from_utf8_lossy(value.as_bytes()).into_owned(),
    };
    let headers = request.headers().iter();
    Sending {
        protocol: "http",
        target: format!("{} {url}", request.method()),
        headers: headers
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect(),
        body: match request.body() {
            None => Content::None,
            Some(body) => match body.as_bytes() {
                Some(bytes) => Content::Bytes(bytes.to_vec()),
                None => Content::Parts(watch::parts()),
            },
        },
    }
}

/// The target of a redirect, if it is followed.
fn onward(method: &Method, from: &Url, answer: &Answer) -> Option<Url> {
    let follows = match answer.status {
        301..=303 => matches!(*method, Method::GET | Method::HEAD),
        307 | 308 => true,
        _ => false,
    };
    let location = answer.header(LOCATION.as_str()).filter(|_| follows)?;
    let target = from.join(location).ok()?;
    (target.origin() == from.origin()).then_some(target)
}

/// The innermost cause. The outer ones repeat our own message, and the URL with its query.
fn root_cause(error: &reqwest::Error) -> String {
    let Some(mut cause) = error.source() else {
        return "unknown reason".to_owned();
    };
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// TLS 1.2 and 1.3 with the host's CA certificates (`SSL_CERT_FILE` and `SSL_CERT_DIR` override).
///
/// # Errors
/// The TLS library refuses its configuration.
pub fn tls() -> Result<rustls::ClientConfig, rustls::Error> {
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "some CA certificates cannot be read");
    }
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        tracing::warn!("no CA certificates found: HTTPS calls will fail; set SSL_CERT_FILE");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
