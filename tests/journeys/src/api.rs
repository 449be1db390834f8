//! The HTTP API of a server, for actions outside of the browser.

use anyhow::{Context, Result, ensure};
use reqwest::{Client, Method};
use serde_json::Value;

use crate::wait::until;

#[derive(Clone)]
pub struct Api {
    pub url: String,
    pub client: Client,
    pub token: Option<String>,
}

impl Api {
    async fn ask(&self, method: Method, path: &str, kind: &str, body: String) -> Result<Value> {
        let url = format!("{}/api/v1{path}", self.url);
        let mut request = self.client.request(method, &url);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        let response = request.body(body).send().await?;
        let status = response.status();
        let text = response.text().await?;
        ensure!(status.is_success(), "{url}: {status}: {text}");
        serde_json::from_str(&text).with_context(|| url)
    }

    pub async fn get(&self, path: &str) -> Result<Value> {
        self.ask(Method::GET, path, "", String::new()).await
    }

    pub async fn deploy(&self, document: &str) -> Result<()> {
        let sent = self.ask(
            Method::POST,
            "/definitions",
            "application/yaml",
            document.to_owned(),
        );
        sent.await.map(drop)
    }

    /// Starts an instance and returns its id.
    pub async fn start(&self, workflow: &str, input: &Value) -> Result<String> {
        let path = format!("/workflows/{workflow}/instances");
        let sent = self.ask(Method::POST, &path, "application/json", input.to_string());
        let id = sent.await?["id"].as_str().map(str::to_owned);
        id.context("a start without an id")
    }

    /// Saves a view of the list of instances.
    pub async fn save_view(&self, view: &Value) -> Result<()> {
        let sent = self.ask(Method::POST, "/views", "application/json", view.to_string());
        sent.await.map(drop)
    }

    /// Creates a batch and returns its id.
    pub async fn batch(&self, batch: &Value) -> Result<String> {
        let (kind, body) = ("application/json", batch.to_string());
        let sent = self.ask(Method::POST, "/batches", kind, body).await?;
        let id = sent["id"].as_str().map(str::to_owned);
        id.with_context(|| format!("a batch without an id: {sent}"))
    }

    /// Sends a CloudEvent.
    pub async fn send(&self, event: &Value) -> Result<()> {
        let kind = "application/cloudevents+json";
        let sent = self.ask(Method::POST, "/events", kind, event.to_string());
        sent.await.map(drop)
    }

    /// The instance, once it satisfies `there`.
    pub async fn instance(&self, id: &str, what: &str, there: fn(&Value) -> bool) -> Result<Value> {
        until(&format!("{id} {what}"), async || {
            let found = self.get(&format!("/instances/{id}")).await?;
            Ok(match there(&found) {
                true => Ok(found),
                false => Err(format!("{found:#}")),
            })
        })
        .await
    }

    pub async fn faulted(&self, id: &str) -> Result<Value> {
        let there = |found: &Value| found["status"] == "faulted";
        self.instance(id, "failed", there).await
    }

    pub async fn completed(&self, id: &str) -> Result<Value> {
        let there = |found: &Value| found["status"] == "completed";
        self.instance(id, "completed", there).await
    }

    /// Waits until the instance waits for an event.
    pub async fn waiting(&self, id: &str) -> Result<Value> {
        let there = |found: &Value| found["scopes"][0]["waitsFor"].is_array();
        self.instance(id, "waits", there).await
    }
}
