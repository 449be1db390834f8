//! Fetches, at deployment, documents that a definition refers to by an http or https URI.
//!
//! A definition decides which documents are fetched, so it could make this machine probe its network. Therefore only
//! hosts that the operator allows are contacted ([`Hosts`]); by default that is only this machine itself. The same rule
//! applies to redirects. Documents are limited in size and time. They are kept with the definition, so running it
//! fetches nothing.

mod effort;
mod fetcher;
mod hosts;
mod wanted;

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use url::Url;

use effort::Effort;
pub use fetcher::Fetcher;
pub use hosts::{Hosts, HostsError};
pub use wanted::{Waiting, Wanted};

use crate::auth::Auth;
use crate::egress::Egress;
use crate::http::{Answer, Http, HttpConfig, HttpError, shown};
use crate::{CallError, CallErrorKind};

/// The document in UTF-8.
fn text(answer: &Answer, url: &Url) -> Result<Vec<u8>, FetchError> {
    let text = answer.text().map(|text| text.into_owned().into_bytes());
    text.map_err(|reason| FetchError::new(shown(url), Cause::Unreadable(reason)))
}

/// The preferred formats. Any format is accepted.
const ACCEPTED: &str = "application/json, application/yaml, text/yaml, */*;q=0.5";

/// Options for fetching documents.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Default: this machine only.
    pub hosts: Hosts,
    /// The largest document, in bytes. Default: 4 MiB.
    pub bytes_max: usize,
    /// The limit for a whole fetch, including redirects. Default: 10 s.
    pub timeout: Duration,
    /// The limit for all documents of a definition. Default: 60 s.
    pub total_time_max: Duration,
    /// The largest number of documents that are asked for a definition. Default: 1,000.
    pub total_count_max: usize,
    /// The maximum number of redirects. Default: 5.
    pub redirects_max: usize,
    /// The addresses that may be reached, whatever the hosts' names.
    pub egress: Egress,
    /// Whether the proxy variables of the environment apply to hosts other than this machine. Default: yes.
    pub proxy_from_env: bool,
}

impl Default for HttpOptions {
    fn default() -> HttpOptions {
        HttpOptions {
            hosts: Hosts::default(),
            bytes_max: 4 * 1024 * 1024,
            timeout: Duration::from_secs(10),
            total_time_max: Duration::from_secs(60),
            total_count_max: 1000,
            redirects_max: 5,
            egress: Egress::default(),
            proxy_from_env: true,
        }
    }
}

/// The reason why a document was not fetched. No field contains a query or a credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{uri}`: {cause}")]
pub struct FetchError {
    /// The URI that failed: the document's own, or the target of a redirect.
    pub uri: String,
    pub cause: Cause,
}

/// The cause of the failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    #[error("it is not an http or https URL with a host")]
    Uri,
    #[error(
        "documents of the host `{host}` may not be fetched; allow it with `--allow-host {host}` or `http.allow_hosts`"
    )]
    HostNotAllowed { host: String },
    #[error("the redirect to `{target}` isn't followed: {reason}")]
    Redirect { target: String, reason: String },
    #[error("{0}")]
    Auth(String),
    #[error("it answered {0} instead of a document")]
    Status(u16),
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// A retry can help.
    #[error("{0}")]
    Unreachable(String),
    #[error("it has more than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("it did not arrive within {} s", limit.as_secs_f64())]
    Timeout { limit: Duration },
    #[error("it wasn't fetched: a definition's documents may take {} s in total", limit.as_secs_f64())]
    TotalTime { limit: Duration },
    #[error("it wasn't fetched: a definition may need at most {limit} documents")]
    TotalCount { limit: usize },
    #[error("the request was cancelled")]
    Unwanted,
}

impl FetchError {
    fn new(uri: impl Into<String>, cause: Cause) -> FetchError {
        FetchError {
            uri: uri.into(),
            cause,
        }
    }

    /// Whether a repeated fetch may succeed later.
    pub fn can_retry(&self) -> bool {
        match self.cause {
            Cause::Unreachable(_) | Cause::Timeout { .. } | Cause::TotalTime { .. } => true,
            Cause::Status(status) => CallError::new(CallErrorKind::Status(status), "").can_retry,
            _ => false,
        }
    }
}

/// Fetches documents. A clone shares the configuration.
#[derive(Debug, Clone)]
pub struct HttpResources {
    options: HttpOptions,
    /// The client for this machine. It has no proxy, because a proxy would use its own machine's loopback address.
    direct: Http,
    other: Http,
    auth: Vec<(String, Auth)>,
    wanted: Wanted,
    effort: Option<Arc<Effort>>,
}

impl HttpResources {
    /// # Errors
    /// As [`Http::new`].
    pub fn new(options: HttpOptions) -> Result<HttpResources, HttpError> {
        let config = HttpConfig {
            timeout: options.timeout,
            response_bytes_max: options.bytes_max,
            // A kept connection would outlive the runtime of its fetch.
            idle_per_host_max: 0,
            proxy_from_env: false,
            egress: options.egress.clone(),
            ..HttpConfig::default()
        };
        let direct = Http::new(config.clone())?;
        // A name that isn't this machine's may still lead here.
        let egress = match options.hosts.allows_loopback() {
            true => config.egress.clone(),
            false => config.egress.clone().without_loopback(),
        };
        let other = Http::new(HttpConfig {
            proxy_from_env: options.proxy_from_env,
            egress,
            ..config
        })?;
        Ok(HttpResources {
            options,
            direct,
            other,
            auth: Vec::new(),
            wanted: Wanted::default(),
            effort: None,
        })
    }

    /// The credentials for one document (`authRef.resource`), by its URI without a fragment.
    #[must_use]
    pub fn with_auth(mut self, uri: &str, auth: Auth) -> HttpResources {
        self.auth.push((without_fragment(uri).to_owned(), auth));
        self
    }

    /// Stops fetching when the result is no longer awaited.
    #[must_use]
    pub fn while_wanted(mut self, wanted: Wanted) -> HttpResources {
        self.wanted = wanted;
        self
    }

    /// The same, for one definition: its documents have limits in total, and a failed one isn't tried again.
    #[must_use]
    pub fn for_a_definition(mut self) -> HttpResources {
        self.effort = Some(Arc::new(Effort::new(&self.options)));
        self
    }

    /// Fetches a document, with the credentials from [`HttpResources::with_auth`]. This blocks for at most the time
    /// limit; async code must call it on a thread for blocking work.
    ///
    /// # Errors
    /// [`FetchError`].
    pub fn get(&self, uri: &str) -> Result<Vec<u8>, FetchError> {
        blocking(uri, async || self.fetch(uri).await)
    }

    /// Posts a JSON query and returns the answer like [`HttpResources::get`], but follows no redirects.
    ///
    /// # Errors
    /// [`FetchError`].
    pub fn post(&self, uri: &str, question: &str) -> Result<Vec<u8>, FetchError> {
        blocking(uri, async || {
            let (url, auth) = self.start(uri)?;
            let answer = self.ask(&url, auth, Some(question));
            let answer = self.in_time(uri, answer).await?;
            match answer.status {
                200..=299 => text(&answer, &url),
                status => Err(FetchError::new(shown(&url), Cause::Status(status))),
            }
        })
    }

    /// [`HttpResources::get`] for async code.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn fetch(&self, uri: &str) -> Result<Vec<u8>, FetchError> {
        let (url, auth) = self.start(uri)?;
        let Some(effort) = &self.effort else {
            return self.in_time(uri, self.follow(url, auth)).await;
        };
        let own = without_fragment(uri);
        let left = effort.begin(own, auth)?;
        let fetched = self.in_time(uri, self.follow(url, auth));
        let limit = self.options.total_time_max;
        let late = || FetchError::new(shown_uri(uri), Cause::TotalTime { limit });
        let fetched = tokio::time::timeout(left, fetched).await;
        let fetched = fetched.unwrap_or_else(|_| Err(late()));
        if let Err(error) = &fetched {
            effort.failed(own, auth, error);
        }
        fetched
    }

    /// The URL and the credentials for the first request, if its host is allowed.
    fn start(&self, uri: &str) -> Result<(Url, Option<&Auth>), FetchError> {
        let own = without_fragment(uri);
        let mut known = self.auth.iter().rev();
        let auth = known.find(|(known, _)| known == own).map(|(_, auth)| auth);
        let url = Url::parse(own).ok().filter(is_http);
        let url = url.ok_or_else(|| FetchError::new(shown_uri(uri), Cause::Uri))?;
        if !self.options.hosts.allow(&url) {
            let host = hosts::host(&url);
            return Err(FetchError::new(shown(&url), Cause::HostNotAllowed { host }));
        }
        Ok((url, auth))
    }

    async fn in_time<T>(
        &self,
        uri: &str,
        done: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<T, FetchError> {
        let unwanted = || FetchError::new(shown_uri(uri), Cause::Unwanted);
        if self.wanted.is_over() {
            return Err(unwanted());
        }
        let limit = self.options.timeout;
        let done = async {
            tokio::select! {
                done = done => done,
                () = self.wanted.over() => Err(unwanted()),
            }
        };
        let result = tokio::time::timeout(limit, done).await;
        result.unwrap_or_else(|_| Err(FetchError::new(shown_uri(uri), Cause::Timeout { limit })))
    }

    async fn follow(&self, start: Url, auth: Option<&Auth>) -> Result<Vec<u8>, FetchError> {
        let mut url = start.clone();
        for _ in 0..=self.options.redirects_max {
            // Credentials for one host are never sent to another host.
            let auth = auth.filter(|_| url.origin() == start.origin());
            let answer = self.ask(&url, auth, None).await?;
            match answer.status {
                200..=299 => return text(&answer, &url),
                301 | 302 | 303 | 307 | 308 => {
                    let location = answer.headers.get(LOCATION).and_then(|at| at.to_str().ok());
                    url = self.target(&url, location.unwrap_or_default())?;
                }
                status => return Err(FetchError::new(shown(&url), Cause::Status(status))),
            }
        }
        let reason = format!(
            "there are more than {} redirects",
            self.options.redirects_max
        );
        let target = shown(&url);
        Err(FetchError::new(
            shown(&start),
            Cause::Redirect { target, reason },
        ))
    }

    /// The target of a redirect, if it may be followed.
    fn target(&self, from: &Url, location: &str) -> Result<Url, FetchError> {
        let refused = |target: String, reason: &str| {
            let reason = reason.to_owned();
            Err(FetchError::new(
                shown(from),
                Cause::Redirect { target, reason },
            ))
        };
        let target = from.join(location).ok().filter(|_| !location.is_empty());
        let Some(target) = target.filter(is_http) else {
            return refused(shown_uri(location), "it is not an http or https URL");
        };
        if from.scheme() == "https" && target.scheme() == "http" {
            return refused(shown(&target), "it leaves https");
        }
        if hosts::is_loopback(&target) && !hosts::is_loopback(from) {
            let reason = "another machine must not redirect to this machine's own services";
            return refused(shown(&target), reason);
        }
        if !self.options.hosts.allow(&target) {
            let reason = format!(
                "allow its host with `--allow-host {}`",
                hosts::host(&target)
            );
            return refused(shown(&target), &reason);
        }
        Ok(target)
    }

    /// Sends a GET, or posts a query.
    async fn ask(
        &self,
        url: &Url,
        auth: Option<&Auth>,
        question: Option<&str>,
    ) -> Result<Answer, FetchError> {
        let http = if hosts::is_loopback(url) {
            &self.direct
        } else {
            &self.other
        };
        let mut request = match question {
            None => http
                .request(Method::GET, url.clone())
                .header(ACCEPT, ACCEPTED),
            Some(question) => http
                .request(Method::POST, url.clone())
                .header(ACCEPT, "application/json")
                .header(CONTENT_TYPE, "application/json")
                .body(question.to_owned()),
        };
        request = match auth {
            None => request,
            Some(Auth::Basic { username, password }) => {
                request.basic_auth(username, Some(password.expose()))
            }
            Some(Auth::Bearer { token }) => request.bearer_auth(token.expose()),
            Some(other @ (Auth::Digest { .. } | Auth::OAuth2(_))) => {
                let scheme = other.scheme();
                let reason =
                    format!("a document is fetched with `basic` or `bearer` auth, not `{scheme}`");
                return Err(FetchError::new(shown(url), Cause::Auth(reason)));
            }
        };
        let method = if question.is_some() { "POST" } else { "GET" };
        let what = format!("{method} {}", shown(url));
        http.send_one(request, url, &what).await.map_err(|error| {
            let reason = error.message.strip_prefix(&what).unwrap_or(&error.message);
            let reason = reason.trim_start_matches([':', ' ']).to_owned();
            let cause = match error.kind {
                CallErrorKind::Limit => Cause::TooLarge {
                    limit: self.options.bytes_max,
                },
                CallErrorKind::Timeout => Cause::Timeout {
                    limit: self.options.timeout,
                },
                // In a request without a body, only a header can be wrong.
                CallErrorKind::Arguments => Cause::Auth(reason),
                _ => Cause::Unreachable(reason),
            };
            FetchError::new(shown(url), cause)
        })
    }
}

/// Runs on a separate thread, because the caller's thread may belong to a runtime and must not block.
fn blocking<T: Send>(
    uri: &str,
    work: impl AsyncFnOnce() -> Result<T, FetchError> + Send,
) -> Result<T, FetchError> {
    let unreachable = |reason: String| FetchError::new(shown_uri(uri), Cause::Unreachable(reason));
    let fetch = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| unreachable(error.to_string()))?;
        runtime.block_on(work())
    };
    let ended = std::thread::scope(|scope| scope.spawn(fetch).join());
    ended.unwrap_or_else(|_| Err(unreachable("the fetch was interrupted".to_owned())))
}

fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

fn without_fragment(uri: &str) -> &str {
    uri.split('#').next().unwrap_or_default()
}

/// Any text as errors show it: a URL without its secrets, or else the beginning of the text.
fn shown_uri(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) if url.has_host() => shown(&url),
        _ => text
            .split(['?', '#'])
            .next()
            .unwrap_or_default()
            .chars()
            .take(200)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_to_this_machine_are_refused_where_it_is() {
        let get = |hosts: Hosts, own: &[(String, u16)]| {
            let resources = HttpResources::new(HttpOptions {
                hosts,
                proxy_from_env: false,
                egress: Egress::default().without(own.to_vec()),
                ..HttpOptions::default()
            });
            let resources = resources.unwrap();
            let here = "127.0.0.1".parse().unwrap();
            resources.other.gate().remember("docs.example.org", here);
            let got = resources.get("http://docs.example.org:1/a");
            got.unwrap_err().to_string()
        };
        let all = || Hosts::parse(&["*"]).unwrap();
        let refused = "is at 127.0.0.1, which calls may not reach";
        let got = get(all().without_loopback(), &[]);
        assert!(got.contains(refused), "{got}");
        let got = get(all(), &[]);
        assert!(!got.contains("may not reach"), "{got}");
        let got = get(all(), &[("127.0.0.1".to_owned(), 1)]);
        assert!(got.contains("a server of this installation"), "{got}");
    }

    #[test]
    fn redirects_to_forbidden_targets_are_rejected() {
        let hosts = Hosts::parse(&["example.org", "*.example.org"]).unwrap();
        let resources = HttpResources::new(HttpOptions {
            hosts,
            ..HttpOptions::default()
        })
        .unwrap();
        let target = |from: &str, location: &str| {
            let target = resources.target(&Url::parse(from).unwrap(), location);
            target.map(String::from).map_err(|error| error.to_string())
        };
        for (from, location, expected) in [
            ("http://example.org/a/b", "c", "http://example.org/a/c"),
            (
                "http://example.org/a",
                "https://docs.example.org/a",
                "https://docs.example.org/a",
            ),
            (
                "http://127.0.0.1:1/a",
                "//localhost:2/b",
                "http://localhost:2/b",
            ),
        ] {
            assert_eq!(target(from, location).as_deref(), Ok(expected));
        }
        for (from, location, reason) in [
            (
                "https://example.org/a",
                "http://example.org/a",
                "it leaves https",
            ),
            (
                "http://example.org/a",
                "http://127.0.0.1:6379/",
                "this machine's own services",
            ),
            (
                "http://example.org/a",
                "http://[::1]/",
                "this machine's own services",
            ),
            (
                "http://example.org/a",
                "http://169.254.169.254/",
                "`--allow-host 169.254.169.254`",
            ),
        ] {
            let error = target(from, location).unwrap_err();
            assert!(error.contains(reason), "{location}: {error}");
        }
    }
}
