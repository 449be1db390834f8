//! The client of the HTTP API.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use anyhow::{Context, bail};
use reqwest::{Method, Url};
use serde_json::{Value, json};

use super::{findings, timeline::shown};
use crate::terminal::{Output, Terminal};

/// Longer than a server waits for the end of an instance.
const TIMEOUT: Duration = Duration::from_secs(100);

/// Which server a command talks to.
#[derive(Debug, clap::Args)]
pub struct Server {
    /// The server's URL.
    #[arg(
        long,
        env = "SWIRL_SERVER",
        default_value = "http://127.0.0.1:8080",
        value_name = "URL"
    )]
    server: String,
}

pub struct Client {
    http: reqwest::Client,
    base: Url,
}

/// What the server said.
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Server {
    /// Runs a command's requests.
    ///
    /// # Errors
    /// Those of the command; and a URL that is none.
    pub fn run<F: Future<Output = anyhow::Result<u8>>>(
        &self,
        command: impl FnOnce(Client) -> F,
    ) -> anyhow::Result<u8> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let client = Client::new(&self.server)?;
        runtime.block_on(command(client))
    }
}

impl Client {
    /// # Errors
    /// The URL is none.
    pub fn new(server: &str) -> anyhow::Result<Client> {
        let base = Url::parse(server)
            .ok()
            .filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host())
            .with_context(|| {
                format!("'{server}' is no URL of a server, such as http://127.0.0.1:8080")
            })?;
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("swirl/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(swirl_worker::http::tls()?)
            .timeout(TIMEOUT);
        // A proxy would ask its own machine.
        if matches!(base.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")) {
            builder = builder.no_proxy();
        }
        Ok(Client {
            http: builder.build()?,
            base,
        })
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
            Ok(mut segments) => segments.pop_if_empty().extend(["api", "v1"]).extend(path),
            Err(()) => bail!("'{}' cannot have a path", self.base),
        };
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> anyhow::Result<Answer> {
        let base = self.base.as_str().trim_end_matches('/');
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) if error.is_connect() => bail!(
                "no server answers at {base}: start one with 'swirl dev', or name another with \
                 --server or SWIRL_SERVER"
            ),
            Err(error) if error.is_timeout() => bail!("the server at {base} didn't answer in time"),
            Err(error) => return Err(error).context(format!("the server at {base}")),
        };
        let status = response.status().as_u16();
        let bytes = response.bytes().await.context("the answer broke off")?;
        let body = serde_json::from_slice(&bytes)
            .with_context(|| format!("{base} answers ({status}), but isn't a Swirl server"))?;
        Ok(Answer { status, body })
    }
}

impl Answer {
    pub fn refused(&self) -> bool {
        self.status >= 400
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
        let (detail, code) = (shown(&self.body["detail"]), shown(&self.body["code"]));
        terminal.message(&format!("error[{code}]: {detail}"));
        if let Some(found) = self.body["diagnostics"].as_array() {
            terminal.message(&findings("document", found));
        }
        Ok(1)
    }
}
