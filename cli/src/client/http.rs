//! The client of the HTTP API.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use serde_json::{Value, json};

use super::server::Target;
use super::tls::{self, root_cause};
use super::{findings, timeline::shown};
use crate::terminal::{Output, Terminal};

/// Longer than a server waits for the end of an instance.
const TIMEOUT: Duration = Duration::from_secs(100);

pub struct Client {
    http: reqwest::Client,
    base: Url,
    namespace: Option<String>,
}

/// What the server said.
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Client {
    /// # Errors
    /// The URL is none, or a file cannot be used.
    pub fn new(target: &Target) -> anyhow::Result<Client> {
        let server = &target.url;
        let base = Url::parse(server)
            .ok()
            .filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host())
            .with_context(|| {
                format!("'{server}' is no URL of a server, such as http://127.0.0.1:8080")
            })?;
        let mut headers = HeaderMap::new();
        if let Some(token) = &target.token {
            let mut header = HeaderValue::try_from(format!("Bearer {}", token.expose()))
                .ok()
                .context("the token holds characters that no token has")?;
            header.set_sensitive(true);
            headers.insert(AUTHORIZATION, header);
        }
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("swirl/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            // A token is for this server only.
            .redirect(reqwest::redirect::Policy::none())
            .tls_backend_preconfigured(tls::config(target.ca.as_deref())?)
            .tls_info(true)
            .timeout(TIMEOUT);
        // A proxy would ask its own machine.
        if matches!(base.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
            builder = builder.no_proxy();
        }
        Ok(Client {
            http: builder.build()?,
            base,
            namespace: target.namespace.clone(),
        })
    }

    /// The answer to a `GET` of a path at the root, with its headers.
    ///
    /// # Errors
    /// Nobody answers.
    pub async fn look(&self, path: &str) -> anyhow::Result<reqwest::Response> {
        let url = self.base.join(path)?;
        self.answer(self.http.request(Method::GET, url)).await
    }

    /// # Errors
    /// Nobody answers, or not in JSON. An answer that refuses is none.
    pub async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> anyhow::Result<Answer> {
        self.send(self.http.request(Method::GET, self.url(path, query)?))
            .await
    }

    /// Posts a body with its media type and further headers.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn post(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> anyhow::Result<Answer> {
        let mut request = self.http.request(Method::POST, self.url(path, query)?);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(body)).await
    }

    /// Deploys a document with what it refers to.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn deploy(
        &self,
        name: &str,
        document: &str,
        resources: &[(String, String)],
    ) -> anyhow::Result<Answer> {
        let resources: BTreeMap<&str, &str> = resources
            .iter()
            .map(|(uri, content)| (uri.as_str(), content.as_str()))
            .collect();
        let whole = json!({"name": name, "document": document, "resources": resources});
        let headers = [("content-type", "application/vnd.swirl.deployment+json")];
        let body = whole.to_string().into_bytes();
        self.post(&["definitions"], &[], &headers, body).await
    }

    fn url(&self, path: &[&str], query: &[(&str, &str)]) -> anyhow::Result<Url> {
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => {
                segments.pop_if_empty().extend(["api", "v1"]);
                if let Some(namespace) = &self.namespace {
                    segments.extend(["namespaces", namespace]);
                }
                segments.extend(path);
            }
            Err(()) => bail!("'{}' cannot have a path", self.base),
        };
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> anyhow::Result<Answer> {
        let base = self.base.as_str().trim_end_matches('/');
        let response = self.answer(request).await?;
        let status = response.status().as_u16();
        let bytes = response.bytes().await.context("the answer broke off")?;
        let body = serde_json::from_slice(&bytes)
            .with_context(|| format!("{base} answers ({status}), but isn't a Swirl server"))?;
        Ok(Answer { status, body })
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> anyhow::Result<reqwest::Response> {
        let base = self.base.as_str().trim_end_matches('/');
        let error = match request.send().await {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        let reason = root_cause(&error);
        if let Some(hint) = tls_hint(&reason, self.base.scheme()) {
            bail!("no connection to {base}: {reason}\n  = hint: {hint}");
        }
        if error.is_timeout() {
            bail!("the server at {base} didn't answer in time");
        }
        if error.is_connect() {
            bail!(
                "no server answers at {base} ({reason}): start one with 'swirl dev', or name another \
                 with --server or SWIRL_SERVER"
            );
        }
        bail!("the server at {base}: {reason}")
    }
}

/// What to do about a failure of TLS, as rustls words it.
fn tls_hint(reason: &str, scheme: &str) -> Option<&'static str> {
    let says = |part: &str| reason.contains(part);
    if says("UnknownIssuer") || says("CaUsedAsEndEntity") {
        Some("name the certificate of its CA with --ca-file or SWIRL_CA_FILE")
    } else if says("certificate not valid for name") || says("NotValidForName") {
        Some("use the name in --server that its certificate has")
    } else if says("certificate expired") || says("Expired") {
        Some("its certificate has to be renewed; or the clock of this machine is wrong")
    } else if says("corrupt message") || says("InvalidContentType") {
        Some("it seems to speak plain HTTP: use http:// in --server")
    } else if scheme == "http" && (says("invalid HTTP version") || says("connection closed before"))
    {
        Some("it may speak TLS: use https:// in --server")
    } else {
        None
    }
}

impl Answer {
    pub fn refused(&self) -> bool {
        self.status >= 400
    }

    /// Why the server refuses, and what helps where that is known.
    pub fn refusal(&self) -> String {
        let (detail, code) = (shown(&self.body["detail"]), shown(&self.body["code"]));
        let hint = match code.as_str() {
            "unauthenticated" => {
                "\n  = hint: give a token with SWIRL_TOKEN, --token-file or SWIRL_TOKEN_FILE; \
                 who runs the server makes one with 'swirl token create'"
            }
            "forbidden" => "\n  = hint: use another token, or ask who runs the server for the role",
            "unknown-namespace" => "\n  = hint: see --namespace and SWIRL_NAMESPACE",
            _ => "",
        };
        format!("error[{code}]: {detail}{hint}")
    }

    /// Writes the answer: as JSON, or as `text` says. The exit code is 1 for a refusal.
    ///
    /// # Errors
    /// The output failed.
    pub fn show(
        &self,
        terminal: &Terminal,
        text: impl FnOnce(&Value) -> String,
    ) -> anyhow::Result<u8> {
        if terminal.output == Output::Json {
            terminal.result(&format!("{:#}\n", self.body))?;
        } else if !self.refused() {
            terminal.result(&text(&self.body))?;
        }
        if !self.refused() {
            return Ok(0);
        }
        terminal.message(&self.refusal());
        if let Some(found) = self.body["diagnostics"].as_array() {
            terminal.message(&findings("document", found));
        }
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_helps() {
        let refusal = |code: &str| {
            let body = json!({"code": code, "detail": "no"});
            Answer { status: 403, body }.refusal()
        };
        assert!(refusal("unauthenticated").contains("SWIRL_TOKEN"));
        assert!(refusal("forbidden").starts_with("error[forbidden]: no\n  = hint: "));
        assert_eq!(refusal("wrong-status"), "error[wrong-status]: no");
    }
}
