//! The client of the HTTP API.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Url};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use swirl_api::{Call, Page, Problem, Reply, Request};
use swirl_connections::tls::{self, root_cause};
use swirl_presentation::timeline::clean;

use super::findings;
use super::servers::{Failure, Repeat, Servers};
use super::target::Target;
use crate::terminal::{Output, Terminal};

/// Longer than a server waits for the end of an instance.
const TIMEOUT: Duration = Duration::from_secs(100);
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Shorter than the time for which servers keep an idle connection. If a request were sent just as its connection is
/// closed, it would be unknown whether it was carried out.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// hyper's wording for a connection that ends before the answer.
const CLOSED: &str = "connection closed before";

pub struct Client {
    http: reqwest::Client,
    servers: Servers,
    namespace: Option<String>,
}

/// An answer whose contract is known.
pub struct Answered<A>(pub swirl_api::Answer<A>);

/// A failed attempt: it has no usable answer.
struct Failed {
    failure: Failure,
    /// The result of the request if this is the last attempt. A refusal is an answer, too.
    result: anyhow::Result<Reply>,
}

impl Client {
    /// # Errors
    /// A URL is not valid, or a file cannot be used.
    pub fn new(target: &Target) -> anyhow::Result<Client> {
        let servers = Servers::new(&target.urls)?;
        let mut headers = HeaderMap::new();
        if let Some(token) = &target.token {
            let mut header = HeaderValue::try_from(format!("Bearer {}", token.expose()))
                .ok()
                .context("the token contains invalid characters")?;
            header.set_sensitive(true);
            headers.insert(AUTHORIZATION, header);
        }
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("swirl/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            // The token must not reach any other server.
            .redirect(reqwest::redirect::Policy::none())
            .tls_backend_preconfigured(tls::config(target.ca.as_deref())?)
            .tls_info(true)
            .connect_timeout(CONNECT_MAX)
            .pool_idle_timeout(IDLE_MAX)
            .timeout(TIMEOUT);
        // A proxy would connect to its own machine for localhost.
        let is_here =
            |url: &Url| matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        if servers.all().iter().all(is_here) {
            builder = builder.no_proxy();
        }
        Ok(Client {
            http: builder.build()?,
            servers,
            namespace: target.namespace.clone(),
        })
    }

    /// Turns retries off.
    #[must_use]
    pub fn once(mut self) -> Client {
        self.servers.once();
        self
    }

    /// The response to a `GET` of a path below the server's address, with its headers. The request isn't retried.
    ///
    /// # Errors
    /// No server answers.
    pub async fn look(&self, path: &str) -> anyhow::Result<reqwest::Response> {
        let attempts = self.servers.attempts(Repeat::Never);
        let base = attempts.server();
        let root = base.as_str().trim_end_matches('/');
        let url = Url::parse(&format!("{root}{path}"))?;
        let sent = self.http.get(url).send().await;
        sent.map_err(|error| failed(base, &error).1)
    }

    /// # Errors
    /// No server answers, or the answer is not JSON. A refusal is not an error.
    pub async fn ask<Q, B, A>(&self, call: Call<Q, B, A>) -> anyhow::Result<Answered<A>>
    where
        Q: Serialize + Send + Sync,
        A: DeserializeOwned,
    {
        swirl_api::Client::ask(self, call).await.map(Answered)
    }

    /// As [`Client::ask`], for all pages of a listing as one answer.
    ///
    /// # Errors
    /// As for [`Client::ask`].
    pub async fn ask_pages<B, A>(&self, call: Call<A::Query, B, A>) -> anyhow::Result<Answered<A>>
    where
        A: Page + DeserializeOwned + Send,
        A::Query: Serialize + Send + Sync,
    {
        let all = swirl_api::Client::ask_pages(self, call, usize::MAX);
        all.await.map(Answered)
    }

    fn url(&self, base: &Url, request: &Request) -> anyhow::Result<Url> {
        let mut url = base.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => {
                segments.pop_if_empty().extend(["api", "v1"]);
                if let Some(namespace) = &self.namespace {
                    segments.extend(["namespaces", namespace]);
                }
                segments.extend(&request.path);
            }
            Err(()) => bail!("'{base}' cannot have a path"),
        };
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        Ok(url)
    }

    async fn attempt(&self, base: &Url, request: &Request) -> Result<Reply, Failed> {
        let given_up = |error: anyhow::Error| Failed {
            failure: Failure::Hopeless,
            result: Err(error),
        };
        let url = self.url(base, request).map_err(given_up)?;
        let method = Method::from_bytes(request.method.as_str().as_bytes())
            .map_err(|error| given_up(error.into()))?;
        let mut sent = self.http.request(method, url).body(request.body.clone());
        for (name, value) in &request.headers {
            sent = sent.header(*name, value);
        }
        let sent = sent.send().await;
        let response = sent.map_err(|error| {
            let (failure, error) = failed(base, &error);
            Failed {
                failure,
                result: Err(error),
            }
        })?;
        let status = response.status().as_u16();
        let after = retry_after(response.headers());
        let bytes = response.bytes().await.map_err(|error| Failed {
            failure: Failure::Unsure(None),
            result: Err(error).context("the response ended early"),
        })?;
        let parsed = serde_json::from_slice::<IgnoredAny>(&bytes).with_context(|| {
            let base = shown_url(base);
            format!("{base} answers ({status}), but isn't a Swirl server")
        });
        let result = parsed.map(|_| Reply {
            status,
            body: bytes.into(),
        });
        match (status, result) {
            // The status is from the server itself, or from a proxy that cannot reach it.
            (502..=504, result) => Err(Failed {
                failure: Failure::Unsure(Some(after)),
                result,
            }),
            (_, Ok(answer)) => Ok(answer),
            (_, Err(error)) => Err(given_up(error)),
        }
    }
}

impl swirl_api::Client for Client {
    type Error = anyhow::Error;

    /// Sends the request until one of the servers answers, as long as a repetition is safe.
    async fn send(&self, request: Request) -> anyhow::Result<Reply> {
        let repeat = match request.repeatable {
            true => Repeat::Safe,
            false => Repeat::Never,
        };
        let mut attempts = self.servers.attempts(repeat);
        loop {
            let Failed { failure, result } = match self.attempt(attempts.server(), &request).await {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            match attempts.again(failure) {
                Some(pause) => tokio::time::sleep(pause).await,
                None if repeat == Repeat::Never && failure == Failure::Unsure(None) => {
                    return result.context(
                        "the operation may have been carried out: check before you repeat it",
                    );
                }
                None => return result,
            }
        }
    }

    fn unreadable(status: u16, error: &serde_json::Error) -> anyhow::Error {
        anyhow!(
            "the server's answer ({status}) isn't one that this version of swirl knows: {error}"
        )
    }
}

fn retry_after(headers: &HeaderMap) -> Duration {
    let value = headers.get(RETRY_AFTER);
    let seconds = value.and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

fn shown_url(url: &Url) -> &str {
    url.as_str().trim_end_matches('/')
}

/// The reason why a request failed.
fn failed(base: &Url, error: &reqwest::Error) -> (Failure, anyhow::Error) {
    let (shown, reason) = (shown_url(base), root_cause(error));
    if let Some(hint) = tls_hint(&reason, base.scheme()) {
        let error = anyhow!("no connection to {shown}: {reason}\n  = hint: {hint}");
        // A server that is being replaced may also close a connection without an answer.
        let failure = match reason.contains(CLOSED) {
            true => Failure::Unsure(None),
            false => Failure::Hopeless,
        };
        return (failure, error);
    }
    if error.is_connect() {
        let error = anyhow!(
            "no server answers at {shown} ({reason}): start one with 'swirl dev', or name another \
             with --server or SWIRL_SERVER"
        );
        return (Failure::Unreached, error);
    }
    if error.is_timeout() {
        let error = anyhow!("the server at {shown} didn't answer in time");
        return (Failure::Hopeless, error);
    }
    let error = anyhow!("the server at {shown}: {reason}");
    (Failure::Unsure(None), error)
}

/// A hint for a TLS failure, recognised by rustls' wording.
fn tls_hint(reason: &str, scheme: &str) -> Option<&'static str> {
    let says = |part: &str| reason.contains(part);
    if says("UnknownIssuer") || says("CaUsedAsEndEntity") {
        Some("pass its CA's certificate with --ca-file or SWIRL_CA_FILE")
    } else if says("certificate not valid for name") || says("NotValidForName") {
        Some("use a name from its certificate in --server")
    } else if says("certificate expired") || says("Expired") {
        Some("renew its certificate, or correct the clock of this machine")
    } else if says("corrupt message") || says("InvalidContentType") {
        Some("it seems to use plain HTTP: use http:// in --server")
    } else if scheme == "http" && (says("invalid HTTP version") || says(CLOSED)) {
        Some("it may use TLS: use https:// in --server")
    } else {
        None
    }
}

impl<A: Serialize> Answered<A> {
    /// Writes the answer as JSON, or as text with `text`. The exit code of a refusal is 1.
    ///
    /// # Errors
    /// The output failed.
    pub fn show(&self, terminal: &Terminal, text: impl FnOnce(&A) -> String) -> anyhow::Result<u8> {
        match &self.0 {
            Ok(answer) if terminal.output == Output::Json => {
                terminal.result(&format!("{}\n", serde_json::to_string_pretty(answer)?))?;
            }
            Ok(answer) => terminal.result(&text(answer))?,
            Err(problem) => {
                if terminal.output == Output::Json {
                    terminal.result(&format!("{}\n", serde_json::to_string_pretty(problem)?))?;
                }
                terminal.message(&refusal(problem));
                if !problem.more.diagnostics.is_empty() {
                    terminal.message(&findings("document", &problem.more.diagnostics));
                }
                return Ok(1);
            }
        }
        Ok(0)
    }

    /// Writes a page of a listing like `show`. In JSON the page itself says how the listing continues; otherwise stderr
    /// has the value of `--after`.
    ///
    /// # Errors
    /// The output failed.
    pub fn show_page(
        &self,
        terminal: &Terminal,
        text: impl FnOnce(&A) -> String,
        more: impl FnOnce(&A) -> Option<String>,
    ) -> anyhow::Result<u8> {
        let code = self.show(terminal, text)?;
        if terminal.output != Output::Json
            && let Ok(page) = &self.0
            && let Some(more) = more(page)
        {
            terminal.message(&more);
        }
        Ok(code)
    }
}

/// The reason for the server's refusal, with a remedy if one is known.
pub fn refusal(problem: &Problem) -> String {
    let (detail, code) = (clean(&problem.detail), clean(&problem.code));
    let hint = match code.as_str() {
        "unauthenticated" => {
            "\n  = hint: pass a token with SWIRL_TOKEN, --token-file or SWIRL_TOKEN_FILE; the server's operator creates one with 'swirl token create'"
        }
        "forbidden" => {
            "\n  = hint: use another token, or ask the operator of the server for the role"
        }
        "unknown-namespace" => "\n  = hint: see --namespace and SWIRL_NAMESPACE",
        _ => "",
    };
    format!("error[{code}]: {detail}{hint}")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_request_is_repeated_if_its_connection_is_closed_without_an_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target::open(&format!("http://{}", listener.local_addr().unwrap()));
        let server = std::thread::spawn(move || {
            for answer in ["", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    request.extend(byte);
                }
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let client = Client::new(&target).unwrap();
        let request = swirl_api::instance::LIST.ask().request();
        let answer = swirl_api::Client::send(&client, request).await.unwrap();
        assert_eq!((answer.status, &*answer.body), (200, &b"{}"[..]));
        server.join().unwrap();
    }

    #[test]
    fn refusals_include_a_remedy() {
        let refusal = |code: &str| {
            let problem = json!({"code": code, "detail": "no"});
            refusal(&Problem::deserialize(problem).unwrap())
        };
        assert!(refusal("unauthenticated").contains("SWIRL_TOKEN"));
        assert!(refusal("forbidden").starts_with("error[forbidden]: no\n  = hint: "));
        assert_eq!(refusal("wrong-status"), "error[wrong-status]: no");
    }
}
