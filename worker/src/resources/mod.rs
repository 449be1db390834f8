//! Documents that a definition refers to by an http or https URI, fetched at deployment.
//!
//! A definition says what is fetched, so it could make this machine ask around in its network. Only
//! hosts that the operator allows are asked ([`Hosts`]); by default that is this machine itself.
//! Redirects are followed within the same rule. What is fetched is bounded in size and time, and is
//! kept with the definition: no run of it fetches anything.

mod hosts;

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{ACCEPT, LOCATION};
use url::Url;

pub use hosts::{Hosts, HostsError};

use crate::auth::Auth;
use crate::http::{Http, HttpConfig, HttpError, shown};
use crate::{CallError, CallErrorKind};

/// What is asked for first; anything is taken.
const ACCEPTED: &str = "application/json, application/yaml, text/yaml, */*;q=0.5";

/// How documents are fetched.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Default: this machine only.
    pub hosts: Hosts,
    /// The largest document, in bytes. Default: 4 MiB.
    pub bytes_max: usize,
    /// For a whole fetch, redirects included. Default: 10 s.
    pub timeout: Duration,
    /// How many redirects are followed. Default: 5.
    pub redirects_max: usize,
    /// Whether the proxy variables of the environment are honoured for other hosts than this
    /// machine. Default: yes.
    pub proxy_from_env: bool,
}

impl Default for HttpOptions {
    fn default() -> HttpOptions {
        HttpOptions {
            hosts: Hosts::default(),
            bytes_max: 4 * 1024 * 1024,
            timeout: Duration::from_secs(10),
            redirects_max: 5,
            proxy_from_env: true,
        }
    }
}

/// Why a document was not fetched. No field holds a query or a credential.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error("`{uri}` is no http or https URL with a host")]
    Uri { uri: String },
    #[error(
        "`{uri}`: nothing is fetched from the host `{host}`; allow it with `--allow-host {host}`"
    )]
    HostNotAllowed { uri: String, host: String },
    #[error("`{uri}` redirects to `{target}`, which isn't followed: {reason}")]
    Redirect {
        uri: String,
        target: String,
        reason: String,
    },
    #[error("`{uri}`: {reason}")]
    Auth { uri: String, reason: String },
    #[error("`{uri}` answered {status} instead of a document")]
    Status { uri: String, status: u16 },
    /// Trying again can help.
    #[error("{reason}")]
    Unreachable { uri: String, reason: String },
    #[error("`{uri}` has more than {limit} bytes")]
    TooLarge { uri: String, limit: usize },
    #[error("`{uri}` wasn't there within {} s", limit.as_secs_f64())]
    Timeout { uri: String, limit: Duration },
}

impl FetchError {
    /// Whether the same fetch may succeed later.
    pub fn can_retry(&self) -> bool {
        match self {
            FetchError::Unreachable { .. } | FetchError::Timeout { .. } => true,
            FetchError::Status { status, .. } => {
                CallError::new(CallErrorKind::Status(*status), "").can_retry
            }
            _ => false,
        }
    }
}

/// Fetches documents. A clone shares the configuration.
#[derive(Debug, Clone)]
pub struct HttpResources {
    options: HttpOptions,
    /// For this machine: without a proxy, which would ask another machine's loopback address.
    direct: Http,
    other: Http,
    auth: Vec<(String, Auth)>,
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
            ..HttpConfig::default()
        };
        let direct = Http::new(config.clone())?;
        let other = match options.proxy_from_env {
            true => Http::new(HttpConfig {
                proxy_from_env: true,
                ..config
            })?,
            false => direct.clone(),
        };
        Ok(HttpResources {
            options,
            direct,
            other,
            auth: Vec::new(),
        })
    }

    /// Credentials for one document (`authRef.resource`), by its URI without a fragment.
    #[must_use]
    pub fn with_auth(mut self, uri: &str, auth: Auth) -> HttpResources {
        self.auth.push((without_fragment(uri).to_owned(), auth));
        self
    }

    /// Fetches a document, with the credentials that [`HttpResources::with_auth`] gave for it.
    /// Blocks for at most the time limit; in async code call it on a thread for blocking work.
    ///
    /// # Errors
    /// [`FetchError`].
    pub fn get(&self, uri: &str) -> Result<Vec<u8>, FetchError> {
        // A thread of its own: the caller's may be one of a runtime, which must not wait here.
        let fetch = || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let runtime = runtime.map_err(|error| FetchError::Unreachable {
                uri: shown_uri(uri),
                reason: format!("`{}`: {error}", shown_uri(uri)),
            })?;
            runtime.block_on(self.fetch(uri))
        };
        let ended = std::thread::scope(|scope| scope.spawn(fetch).join());
        ended.unwrap_or_else(|_| {
            let (uri, reason) = (shown_uri(uri), "the fetch broke off".to_owned());
            Err(FetchError::Unreachable { uri, reason })
        })
    }

    /// [`HttpResources::get`] for async code.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn fetch(&self, uri: &str) -> Result<Vec<u8>, FetchError> {
        let own = without_fragment(uri);
        let auth = self
            .auth
            .iter()
            .rev()
            .find(|(known, _)| known == own)
            .map(|(_, auth)| auth);
        let url = Url::parse(own).ok().filter(is_http);
        let url = url.ok_or_else(|| FetchError::Uri {
            uri: shown_uri(uri),
        })?;
        let limit = self.options.timeout;
        match tokio::time::timeout(limit, self.follow(url, auth)).await {
            Ok(result) => result,
            Err(_) => Err(FetchError::Timeout {
                uri: shown_uri(uri),
                limit,
            }),
        }
    }

    async fn follow(&self, start: Url, auth: Option<&Auth>) -> Result<Vec<u8>, FetchError> {
        if !self.options.hosts.allow(&start) {
            return Err(FetchError::HostNotAllowed {
                uri: shown(&start),
                host: hosts::host(&start),
            });
        }
        let mut url = start.clone();
        for _ in 0..=self.options.redirects_max {
            // Another host gets no credentials that were meant for the first.
            let auth = auth.filter(|_| url.origin() == start.origin());
            let answer = self.ask(&url, auth).await?;
            match answer.status {
                200..=299 => return Ok(answer.body),
                301 | 302 | 303 | 307 | 308 => {
                    let location = answer.headers.get(LOCATION).and_then(|at| at.to_str().ok());
                    url = self.target(&url, location.unwrap_or_default())?;
                }
                status => {
                    return Err(FetchError::Status {
                        uri: shown(&url),
                        status,
                    });
                }
            }
        }
        let reason = format!(
            "that would be more than {} redirects",
            self.options.redirects_max
        );
        Err(FetchError::Redirect {
            uri: shown(&start),
            target: shown(&url),
            reason,
        })
    }

    /// Where a redirect leads, if it may be followed.
    fn target(&self, from: &Url, location: &str) -> Result<Url, FetchError> {
        let refused = |target: String, reason: String| FetchError::Redirect {
            uri: shown(from),
            target,
            reason,
        };
        let target = from.join(location).ok().filter(|_| !location.is_empty());
        let Some(target) = target.filter(is_http) else {
            let target = shown_uri(location);
            return Err(refused(target, "it is no http or https URL".to_owned()));
        };
        if from.scheme() == "https" && target.scheme() == "http" {
            return Err(refused(shown(&target), "it leaves https".to_owned()));
        }
        if hosts::is_loopback(&target) && !hosts::is_loopback(from) {
            let reason = "another machine cannot send us to this machine's own services";
            return Err(refused(shown(&target), reason.to_owned()));
        }
        if !self.options.hosts.allow(&target) {
            let host = hosts::host(&target);
            let reason = format!("allow its host with `--allow-host {host}`");
            return Err(refused(shown(&target), reason));
        }
        Ok(target)
    }

    async fn ask(&self, url: &Url, auth: Option<&Auth>) -> Result<crate::http::Answer, FetchError> {
        let uri = shown(url);
        let http = if hosts::is_loopback(url) {
            &self.direct
        } else {
            &self.other
        };
        let mut request = http
            .request(Method::GET, url.clone())
            .header(ACCEPT, ACCEPTED);
        request = match auth {
            None => request,
            Some(Auth::Basic { username, password }) => {
                request.basic_auth(username, Some(password.expose()))
            }
            Some(Auth::Bearer { token }) => request.bearer_auth(token.expose()),
            Some(Auth::OAuth2(_)) => {
                let reason = "a document is fetched with `basic` or `bearer` auth, not `oauth2`";
                return Err(FetchError::Auth {
                    uri,
                    reason: reason.to_owned(),
                });
            }
        };
        let what = format!("GET {uri}");
        http.send(request, url, &what)
            .await
            .map_err(|error| match error.kind {
                CallErrorKind::Limit => FetchError::TooLarge {
                    uri,
                    limit: self.options.bytes_max,
                },
                CallErrorKind::Timeout => FetchError::Timeout {
                    uri,
                    limit: self.options.timeout,
                },
                // Only a header can be wrong in a request that has nothing else of its own.
                CallErrorKind::Arguments => FetchError::Auth {
                    uri,
                    reason: error.message,
                },
                _ => FetchError::Unreachable {
                    uri,
                    reason: error.message,
                },
            })
    }
}

fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

fn without_fragment(uri: &str) -> &str {
    uri.split('#').next().unwrap_or_default()
}

/// Any text as errors show it: a URL without its secrets, else its beginning.
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
