//! A client of the API.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::http::Connection;

const JSON: (&str, &str) = ("content-type", "application/json");

pub struct Client {
    link: Connection,
}

impl Client {
    pub async fn open(api: SocketAddr) -> Result<Client> {
        Ok(Client {
            link: Connection::open(api).await?,
        })
    }

    /// Deploys a definition. `service` is the OpenAPI document of its service.
    pub async fn deploy(&mut self, definition: &Value, service: Option<&str>) -> Result<()> {
        let mut whole = json!({"document": definition.to_string()});
        if let Some(service) = service {
            whole["resources"] = json!({"service.json": service});
        }
        let kind = ("content-type", "application/vnd.swirl.deployment+json");
        let body = whole.to_string();
        let (status, answer) = self
            .link
            .request("POST", "/api/v1/definitions", &[kind], body.as_bytes())
            .await?;
        let answer = String::from_utf8_lossy(&answer);
        ensure!(status == 201, "not deployed ({status}): {answer}");
        Ok(())
    }

    /// Starts an instance and waits for its result. It must complete.
    pub async fn run(&mut self, workflow: &str, input: &[u8]) -> Result<Value> {
        let path = format!("/api/v1/workflows/{workflow}/instances?wait=PT60S");
        let (status, answer) = self.link.request("POST", &path, &[JSON], input).await?;
        let text = || String::from_utf8_lossy(&answer[..answer.len().min(2000)]).into_owned();
        ensure!(
            status == 200,
            "{workflow} has no result ({status}): {}",
            text()
        );
        let answer: Value = serde_json::from_slice(&answer)?;
        ensure!(answer["status"] == "completed", "{workflow}: {}", text());
        Ok(answer["output"].clone())
    }

    /// Starts an instance, and returns as soon as it is accepted.
    pub async fn start(&mut self, workflow: &str, input: &[u8]) -> Result<String> {
        let path = format!("/api/v1/workflows/{workflow}/instances");
        let (status, answer) = self.link.request("POST", &path, &[JSON], input).await?;
        let text = String::from_utf8_lossy(&answer);
        ensure!(
            status == 201,
            "{workflow} is not started ({status}): {text}"
        );
        let answer: Value = serde_json::from_slice(&answer)?;
        let id = answer["id"].as_str().context("an answer without an id")?;
        Ok(id.to_owned())
    }

    /// Whether an instance of the workflow is still running.
    pub async fn any_running(&mut self, workflow: &str) -> Result<bool> {
        let path = format!("/api/v1/instances?workflow={workflow}&status=running&limit=1");
        let (status, answer) = self.link.request("GET", &path, &[], b"").await?;
        ensure!(status == 200, "no listing ({status})");
        let answer: Value = serde_json::from_slice(&answer)?;
        let found = answer["instances"].as_array();
        Ok(!found.context("no listing")?.is_empty())
    }

    /// Waits until all instances of the workflow have ended.
    pub async fn until_none(&mut self, workflow: &str, limit: Duration) -> Result<()> {
        let begun = Instant::now();
        while self.any_running(workflow).await? {
            if begun.elapsed() > limit {
                bail!("instances of {workflow} are still running after {limit:?}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}
