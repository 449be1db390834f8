//! The API of Swirl.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::Client;
use serde_json::{Map, Value, json};

pub struct Swirl {
    http: Client,
    servers: Vec<String>,
}

impl Swirl {
    pub fn new(servers: Vec<String>) -> Result<Swirl> {
        let http = Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(90))
            .build()?;
        Ok(Swirl { http, servers })
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: String) -> Result<Value> {
        let server = self.servers.first().context("no server")?;
        let mut request = self.http.post(format!("{server}/api/v1{path}")).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await?;
        let status = answer.status();
        let body: Value = answer.json().await?;
        ensure!(status.is_success(), "{path}: {status}: {body:#}");
        Ok(body)
    }

    pub async fn deploy(&self, document: &str, resources: &Map<String, Value>) -> Result<()> {
        let body = json!({"document": document, "resources": resources}).to_string();
        let name = document.lines().next().unwrap_or_default();
        let kind = [("content-type", "application/vnd.swirl.deployment+json")];
        self.post("/definitions", &kind, body)
            .await
            .with_context(|| name.to_owned())?;
        Ok(())
    }

    /// Starts it with a key of its workflow. Returns the instance's id.
    pub async fn start(&self, workflow: &str, input: &str) -> Result<String> {
        let path = format!("/workflows/{workflow}/instances");
        let key = format!("start-{workflow}");
        let headers = [
            ("content-type", "application/json"),
            ("idempotency-key", key.as_str()),
        ];
        let answer = self.post(&path, &headers, input.to_owned()).await?;
        Ok(answer["id"].as_str().context("no id")?.to_owned())
    }

    pub async fn status(&self, id: &str) -> Result<String> {
        self.after(id, "PT0.1S").await
    }

    /// The status with which it ended.
    pub async fn end(&self, id: &str) -> Result<String> {
        self.after(id, "PT60S").await
    }

    /// The id of the instance that began last.
    pub async fn newest(&self, workflow: &str) -> Result<Option<String>> {
        let found = self
            .get(&format!("/instances?workflow={workflow}&limit=1"))
            .await?;
        let id = found["instances"][0]["id"].as_str();
        Ok(id.map(str::to_owned))
    }

    /// The instance when it has ended, but no later than after a minute.
    pub async fn ended(&self, id: &str) -> Result<Value> {
        self.get(&format!("/instances/{id}?wait=PT60S")).await
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let server = self.servers.last().context("no server")?;
        let answer = self
            .http
            .get(format!("{server}/api/v1{path}"))
            .send()
            .await?;
        let status = answer.status();
        let body: Value = answer.json().await?;
        ensure!(status.is_success(), "{path}: {status}: {body:#}");
        Ok(body)
    }

    /// The status when it has ended, but no later than after this time.
    async fn after(&self, id: &str, limit: &str) -> Result<String> {
        let answer = self.get(&format!("/instances/{id}?wait={limit}")).await?;
        Ok(answer["status"].as_str().context("no status")?.to_owned())
    }
}
