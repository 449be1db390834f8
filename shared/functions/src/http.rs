//! The HTTP client that all function types share: one connection pool with limits.
//!
//! It knows nothing about operations: it sends a request, returns an answer of bounded size, and reports any failure as
//! a [`CallError`] without the URL's query. It follows redirects within one origin, and only if the caller asks for
//! that (`Http::send_on`). It keeps no cookies. It never repeats a request by itself, because that is the workflow's
//! decision, with one exception: a service may close a kept connection while a request is on its way, so a request
//! that broke on such a connection before the head of an answer came is sent once more, on a new connection. Answers
//! may be compressed; the size limit applies to the decoded bytes. Dropping a call's future closes its connection.
//! `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` are honoured.

use std::borrow::Cow;
use std::error::Error as _;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};

use reqwest::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION,
};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Request, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use swirl_content::CodingError;
use swirl_model::redact::CUT;
use url::Url;

use crate::breaker::{self, BreakerConfig, Breakers};
use crate::egress::{Egress, Gate};
use crate::event_stream::{MEDIA_TYPE, last_end};
use crate::servers::Servers;
pub(crate) use crate::shown::shown;
use crate::simulated::{self, Asked};
pub use crate::tls::tls;
use crate::watch::{self, Content, Sending};
use crate::{CallError, CallErrorKind};
use crate::{exchange, fresh, redirect, socket};

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
    /// Makes a new connection for each request.
    fresh: Client,
    config: HttpConfig,
    breakers: Option<Arc<Breakers>>,
    gate: Gate,
    /// Other addresses for origins.
    servers: Servers,
    /// Answers in place of the network.
    simulated: bool,
    /// Its requests are for tokens.
    for_tokens: bool,
    /// A stream of events is read only until this holds for some of its events.
    is_enough: Option<fn(&[u8]) -> bool>,
}

/// The beginning of [`Http::now`].
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// An answer with any status.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// Decompressed, unless `coding_error` says why not.
    pub(crate) body: Vec<u8>,
    pub(crate) coding_error: Option<CodingError>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as text, in the character set that the service names.
    ///
    /// # Errors
    /// The reason why it isn't one.
    pub(crate) fn text(&self) -> Result<Cow<'_, str>, String> {
        self.decoded()?;
        swirl_content::text(&self.body, self.header("content-type"))
            .map_err(|error| error.to_string())
    }

    /// The body as JSON, whatever its media type is; null if it isn't JSON.
    pub(crate) fn json(&self) -> Value {
        let text = self.text().ok();
        text.and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    /// # Errors
    /// The reason why the body could not be decompressed.
    pub(crate) fn decoded(&self) -> Result<&[u8], String> {
        match &self.coding_error {
            None => Ok(&self.body),
            Some(error) => Err(error.to_string()),
        }
    }

    /// The pause that the service asks for: a number of seconds, or the time from the answer's `Date` to the given one
    /// (RFC 9110, section 10.2.3). Our own clock may differ from the service's.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let text = self.header("retry-after")?.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            // A number that doesn't fit is still a long time.
            return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
        }
        let at = httpdate::parse_http_date(text).ok()?;
        let date = self
            .header("date")
            .and_then(|date| httpdate::parse_http_date(date).ok());
        Some(
            at.duration_since(date.unwrap_or_else(SystemTime::now))
                .unwrap_or_default(),
        )
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
        let tls = tls()?;
        let client = |idle_per_host_max| {
            let builder = Client::builder()
                .dns_resolver(gate.clone())
                .user_agent(concat!("swirl/", env!("CARGO_PKG_VERSION")))
                .tls_backend_preconfigured(tls.clone())
                .redirect(Policy::none())
                .retry(reqwest::retry::never())
                .connect_timeout(config.connect_timeout)
                .connector_layer(fresh::Noting)
                .tcp_keepalive(socket::KEEPALIVE)
                .tcp_keepalive_interval(socket::KEEPALIVE_INTERVAL)
                .tcp_keepalive_retries(socket::KEEPALIVE_RETRIES)
                .pool_max_idle_per_host(idle_per_host_max);
            #[cfg(target_os = "linux")]
            let builder = builder.tcp_user_timeout(socket::UNACKNOWLEDGED_MAX);
            match config.proxy_from_env {
                true => builder.build(),
                false => builder.no_proxy().build(),
            }
        };
        Ok(Http {
            client: client(config.idle_per_host_max)?,
            fresh: client(0)?,
            breakers: config
                .breaker
                .clone()
                .map(|config| Arc::new(Breakers::new(config))),
            config,
            gate,
            servers: Servers::default(),
            simulated: false,
            for_tokens: false,
            is_enough: None,
        })
    }

    /// The same client without a network: each call has a simulation that answers.
    #[must_use]
    pub fn simulating(mut self) -> Http {
        self.simulated = true;
        self
    }

    /// The same client, for requests of tokens.
    #[must_use]
    pub(crate) fn for_tokens(mut self) -> Http {
        self.for_tokens = true;
        self
    }

    /// The same client, which reads a stream of events only until this holds for events that came together.
    #[must_use]
    pub(crate) fn until(mut self, is_enough: fn(&[u8]) -> bool) -> Http {
        self.is_enough = Some(is_enough);
        self
    }

    /// The time since some instant. It only moves on.
    pub(crate) fn now(&self) -> Duration {
        if !self.simulated {
            return BEGAN.elapsed();
        }
        let now_ms = simulated::of_call().map_or(0, |simulation| simulation.now_ms());
        Duration::from_millis(now_ms.max(0) as u64)
    }

    /// The same client, with other addresses for origins.
    #[must_use]
    pub(crate) fn redirecting(mut self, servers: &Servers) -> Http {
        self.servers = servers.clone();
        self
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

    /// Sends the request that `make` creates and reads the whole answer. `what` names it in errors: `GET
    /// http://host/path`.
    pub(crate) async fn send(
        &self,
        url: &Url,
        what: &str,
        make: impl Fn() -> Result<RequestBuilder, CallError>,
    ) -> Result<Answer, CallError> {
        if self.simulated {
            let request = make()?.build();
            let request = request.map_err(|error| self.failed(error, url, what))?;
            return self.simulate(&request, what).await;
        }
        self.gate
            .check_url(url)
            .await
            .map_err(|refused| CallError::arguments(format!("{what}: {refused}")))?;
        let Some(breakers) = &self.breakers else {
            return self.exchange(url, what, make).await;
        };
        let (host, port) = (url.host_str().unwrap_or("?"), url.port_or_known_default());
        let host = format!("{host}:{}", port.unwrap_or(0));
        let pass = breakers
            .enter(&host)
            .map_err(|wait| breaker::refusal(what, &host, wait))?;
        let result = self.exchange(url, what, make).await;
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

    /// As [`Http::send`], for a request whose body isn't a stream.
    pub(crate) async fn send_one(
        &self,
        request: RequestBuilder,
        url: &Url,
        what: &str,
    ) -> Result<Answer, CallError> {
        let again = || {
            let copy = request.try_clone();
            copy.ok_or_else(|| CallError::arguments(format!("{what}: its body is a stream")))
        };
        self.send(url, what, again).await
    }

    /// As [`Http::send`], but follows redirects within the same origin (`redirect.rs`). `make` creates the request for a
    /// URL. A redirect to another origin, or beyond the maximum number, is returned unchanged.
    pub(crate) async fn send_on(
        &self,
        method: &Method,
        url: &Url,
        what: &str,
        make: impl Fn(Url) -> Result<RequestBuilder, CallError>,
    ) -> Result<Answer, CallError> {
        let mut at = self.servers.redirected(url).unwrap_or_else(|| url.clone());
        let mut left = REDIRECTS_MAX;
        loop {
            let answer = self.send(&at, what, || make(at.clone())).await?;
            let location = answer.header(LOCATION.as_str());
            match redirect::onward(method, &at, answer.status, location) {
                Some(target) if left > 0 => at = target,
                _ => return Ok(answer),
            }
            left -= 1;
        }
    }

    /// As [`Http::send_on`], but follows no redirect.
    pub(crate) async fn send_as_is(
        &self,
        url: &Url,
        what: &str,
        make: impl Fn(Url) -> Result<RequestBuilder, CallError>,
    ) -> Result<Answer, CallError> {
        let at = self.servers.redirected(url);
        let at = at.as_ref().unwrap_or(url);
        self.send(at, what, || make(at.clone())).await
    }

    /// Sends a request whose answer is read as it comes.
    pub(crate) async fn open(
        &self,
        request: RequestBuilder,
        url: &Url,
        what: &str,
    ) -> Result<Response, CallError> {
        let answer = request.send().await;
        answer.map_err(|error| self.failed(error, url, what))
    }

    async fn simulate(&self, request: &Request, what: &str) -> Result<Answer, CallError> {
        exchange::note_credentials_of(request, self.for_tokens);
        let asked = Asked::of(request, self.for_tokens);
        let given = match simulated::of_call() {
            Some(simulation) => simulation.answer(asked).await,
            None => None,
        };
        let given = given.ok_or_else(|| {
            CallError::new(CallErrorKind::Connection, format!("{what}: no answer"))
        })?;
        Ok(Answer {
            status: given.status,
            headers: given.header_map(),
            body: given.body,
            coding_error: None,
        })
    }

    async fn exchange(
        &self,
        url: &Url,
        what: &str,
        make: impl Fn() -> Result<RequestBuilder, CallError>,
    ) -> Result<Answer, CallError> {
        let failed = |error| self.failed(error, url, what);
        let build = || -> Result<Request, CallError> {
            let mut request = make()?.build().map_err(failed)?;
            let accepted = HeaderValue::from_static(swirl_content::ACCEPTED);
            let headers = request.headers_mut();
            headers.entry(ACCEPT_ENCODING).or_insert(accepted);
            Ok(request)
        };
        let request = build()?;
        exchange::note_credentials_of(&request, self.for_tokens);
        let method = request.method().clone();
        watch::sending(|| sending(&request)).await;
        exchange::note(&method, url, None);
        let (first, is_fresh) = fresh::noted(self.client.execute(request)).await;
        let response = match first {
            result if is_fresh || !is_unprocessed(&result) => result,
            _ => self.fresh.execute(build()?).await,
        };
        let response = response.map_err(failed)?;
        exchange::note(&method, url, Some(response.status().as_u16()));
        self.read(response, url, what).await
    }

    async fn read(
        &self,
        mut response: Response,
        url: &Url,
        what: &str,
    ) -> Result<Answer, CallError> {
        let failed = |error| self.failed(error, url, what);
        let limit = self.config.response_bytes_max;
        let too_large = || {
            let message = format!("{what}: the answer is larger than {limit} bytes");
            CallError::new(CallErrorKind::Limit, message)
        };
        let announced = response.content_length().unwrap_or(0);
        if announced > limit as u64 {
            return Err(too_large());
        }
        let media = response.headers().get(CONTENT_TYPE);
        let is_stream =
            media.is_some_and(|media| media.as_bytes().starts_with(MEDIA_TYPE.as_bytes()));
        let is_enough = self.is_enough.filter(|_| is_stream);
        let mut body = Vec::with_capacity(announced as usize);
        // Each event is looked at once: a service may send millions.
        let mut seen = 0;
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > limit {
                return Err(too_large());
            }
            let known = body.len();
            body.extend_from_slice(&chunk);
            if let Some(is_enough) = is_enough
                && let Some(end) = last_end(&body, known)
            {
                if is_enough(&body[seen..end]) {
                    break;
                }
                seen = end;
            }
            // The next chunk may be there already, and the time limit of the call needs its turn.
            tokio::task::coop::consume_budget().await;
        }
        let headers = response.headers().clone();
        let codings = headers.get_all(CONTENT_ENCODING).into_iter();
        let codings = codings.map(|value| value.to_str().unwrap_or("?"));
        let (body, coding_error) = match swirl_content::decode(codings, body, limit) {
            Ok(body) => (body, None),
            Err(CodingError::TooLarge(_)) => return Err(too_large()),
            Err(error) => (Vec::new(), Some(error)),
        };
        Ok(Answer {
            status: response.status().as_u16(),
            headers,
            body,
            coding_error,
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

/// Whether a request on a kept connection was not processed: the connection broke before the whole head of an answer
/// came, or the service closed it as unused (RFC 9110, section 15.5.9).
fn is_unprocessed(result: &reqwest::Result<Response>) -> bool {
    match result {
        Ok(response) => {
            let closing = response.headers().get(CONNECTION);
            let closing = closing.and_then(|value| value.to_str().ok());
            response.status() == StatusCode::REQUEST_TIMEOUT
                && closing.is_some_and(|value| value.eq_ignore_ascii_case("close"))
        }
        Err(error) => !error.is_connect() && is_broken(error),
    }
}

fn is_broken(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(at) = cause {
        if let Some(error) = at.downcast_ref::<hyper::Error>()
            && (error.is_incomplete_message() || error.is_canceled() || error.is_closed())
        {
            return true;
        }
        if let Some(error) = at.downcast_ref::<io::Error>() {
            return socket::is_broken(error.kind());
        }
        cause = at.source();
    }
    false
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_given_in_seconds_or_as_a_date() {
        const NOW: &str = "Sun, 29 Nov 2026 10:00:00 GMT";
        let pause = |text: &'static str, date: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert("retry-after", HeaderValue::from_static(text));
            if let Some(date) = date {
                headers.insert("date", HeaderValue::from_static(date));
            }
            let answer = Answer {
                status: 503,
                headers,
                body: Vec::new(),
                coding_error: None,
            };
            answer.retry_after().map(|pause| pause.as_secs())
        };
        for (text, expected) in [
            ("5", Some(5)),
            (" 0 ", Some(0)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Sun, 29 Nov 2026 10:00:07 GMT", Some(7)),
            ("Sunday, 29-Nov-26 10:01:00 GMT", Some(60)),
            ("Sun, 29 Nov 2026 09:00:00 GMT", Some(0)),
            ("soon", None),
            ("-5", None),
            ("1.5", None),
            ("", None),
        ] {
            assert_eq!(pause(text, Some(NOW)), expected, "{text}");
        }
        // Without a date of the service, our own clock counts.
        assert_eq!(pause("Sun, 06 Nov 1994 08:49:37 GMT", None), Some(0));
        assert!(pause("Fri, 01 Jan 2100 00:00:00 GMT", None) > Some(3600));
    }
}
