//! An API client that retries with all coordinators until it gets an answer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::instance::Planned;

const REQUEST_MAX: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(100);

pub struct Api {
    http: Client,
    servers: Vec<String>,
    next: AtomicUsize,
    /// Requests that failed and were retried.
    pub failed: AtomicUsize,
    /// The time for which a request may fail.
    limit: Duration,
}

impl Api {
    pub fn new(servers: Vec<String>, limit: Duration) -> Result<Api> {
        Ok(Api {
            http: Client::builder().no_proxy().timeout(REQUEST_MAX).build()?,
            servers,
            next: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
            limit,
        })
    }

    async fn request(
        &self,
        build: impl Fn(&Client, &str) -> reqwest::RequestBuilder,
    ) -> Result<(StatusCode, Value)> {
        let begun = Instant::now();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let server = &self.servers[number % self.servers.len()];
            let reason = match build(&self.http, server).send().await {
                Ok(response) if !response.status().is_server_error() => {
                    let status = response.status();
                    match response.json().await {
                        Ok(body) => return Ok((status, body)),
                        Err(error) => error.to_string(),
                    }
                }
                Ok(response) => response.status().to_string(),
                Err(error) => error.to_string(),
            };
            self.failed.fetch_add(1, Ordering::Relaxed);
            if begun.elapsed() > self.limit {
                bail!("a request fails for {:?}: {reason}", self.limit);
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    pub async fn deploy(&self, definition: &Value, service: &str) -> Result<()> {
        let body = json!({
            "document": definition.to_string(), "resources": {"service.json": service},
        });
        let (status, answer) = self
            .request(|http, server| {
                http.post(format!("{server}/api/v1/definitions"))
                    .header("content-type", "application/vnd.swirl.deployment+json")
                    .body(body.to_string())
            })
            .await?;
        if !status.is_success() {
            bail!("{} is not deployed: {answer:#}", definition["id"]);
        }
        Ok(())
    }

    /// Returns the instance's id. Repeating the request is safe, because the key identifies the instance.
    pub async fn start(&self, planned: &Planned) -> Result<String> {
        let path = format!("/api/v1/workflows/{}/instances", planned.workflow());
        let input = planned.input().to_string();
        let (status, answer) = self
            .request(|http, server| {
                http.post(format!("{server}{path}"))
                    .header("content-type", "application/json")
                    .header("idempotency-key", planned.id())
                    .body(input.clone())
            })
            .await?;
        if !status.is_success() {
            bail!("{} is not started: {answer:#}", planned.id());
        }
        let id = answer["id"].as_str().context("an answer without an id")?;
        Ok(id.to_owned())
    }

    pub async fn instance(&self, id: &str) -> Result<Value> {
        let found = self.find(id).await?;
        found.with_context(|| format!("there is no instance {id}"))
    }

    pub async fn find(&self, id: &str) -> Result<Option<Value>> {
        let (status, answer) = self
            .request(|http, server| http.get(format!("{server}/api/v1/instances/{id}")))
            .await?;
        match status {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => Ok(Some(answer)),
            _ => bail!("instance {id}: {answer:#}"),
        }
    }

    pub async fn history(&self, id: &str) -> Result<Value> {
        let mut known = 0;
        let mut all: Vec<Value> = Vec::new();
        loop {
            let path = format!("/api/v1/instances/{id}/history?after={known}");
            let (_, mut answer) = self
                .request(|http, server| http.get(format!("{server}{path}")))
                .await?;
            let page = answer["entries"].as_array_mut().map(std::mem::take);
            all.extend(page.unwrap_or_default());
            if answer["more"] != true {
                answer["entries"] = Value::Array(all);
                return Ok(answer);
            }
            known = all.len();
        }
    }

    /// All instances of a workflow, as the listing shows them.
    pub async fn instances(&self, workflow: &str) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        let mut from = String::new();
        loop {
            let path = format!("/api/v1/instances?workflow={workflow}&limit=100{from}");
            let (status, mut answer) = self
                .request(|http, server| http.get(format!("{server}{path}")))
                .await?;
            if !status.is_success() {
                bail!("the instances of {workflow}: {answer:#}");
            }
            let page = answer["instances"].as_array_mut().map(std::mem::take);
            all.extend(page.unwrap_or_default());
            match answer["next"].as_str() {
                Some(next) => from = format!("&after={next}"),
                None => return Ok(all),
            }
        }
    }

    /// The status of a deployment, whether it was accepted or not.
    pub async fn try_deploy(&self, definition: &Value) -> Result<u16> {
        let body = definition.to_string();
        let (status, _) = self
            .request(|http, server| {
                http.post(format!("{server}/api/v1/definitions"))
                    .header("content-type", "application/json")
                    .body(body.clone())
            })
            .await?;
        Ok(status.as_u16())
    }

    /// Tries once to start an instance, and returns whether it was started.
    pub async fn try_start(&self, workflow: &str) -> bool {
        let path = format!("api/v1/workflows/{workflow}/instances");
        self.try_post(&path, "{}".to_owned()).await
    }

    pub async fn try_event(&self, event: &Value) -> bool {
        self.try_post("api/v1/events", event.to_string()).await
    }

    /// Tries once to read this, and returns the number of bytes.
    pub async fn try_get(&self, path: &str) -> Option<usize> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let server = &self.servers[number % self.servers.len()];
        let answer = self
            .http
            .get(format!("{server}/{path}"))
            .send()
            .await
            .ok()?;
        let answer = answer.error_for_status().ok()?;
        Some(answer.bytes().await.ok()?.len())
    }

    async fn try_post(&self, path: &str, body: String) -> bool {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let server = &self.servers[number % self.servers.len()];
        let kind = match path.ends_with("events") {
            true => "application/cloudevents+json",
            false => "application/json",
        };
        let request = self.http.post(format!("{server}/{path}"));
        let sent = request.header("content-type", kind).body(body).send().await;
        sent.is_ok_and(|answer| answer.status().is_success())
    }
}
