//! An API client for tests that kill coordinators. It panics on errors that would fail a test.
#![allow(clippy::unwrap_used, reason = "for tests")]

use serde_json::{Value, json};
use swirl_servers::eventually;

/// Sends each request to one coordinator after another until one answers.
pub struct AnyCoordinator {
    http: reqwest::Client,
    pub servers: Vec<String>,
}

impl AnyCoordinator {
    pub fn new(servers: Vec<String>) -> AnyCoordinator {
        let _ = rustls::crypto::ring::default_provider().install_default();
        AnyCoordinator {
            http: reqwest::Client::new(),
            servers,
        }
    }

    pub async fn ask(&self, path: &str, body: Option<&str>, key: &str) -> Value {
        eventually(format!("an answer to {path}"), async || {
            for server in &self.servers {
                let url = format!("{server}/api/v1/{path}");
                let request = match body {
                    Some(body) => self.http.post(url).body(body.to_owned()),
                    None => self.http.get(url),
                };
                let request = request.header("idempotency-key", key);
                if let Ok(answer) = request.send().await
                    && answer.status().as_u16() != 503
                    && let Ok(text) = answer.text().await
                {
                    return Some(serde_json::from_str(&text).unwrap_or_default());
                }
            }
            None
        })
        .await
    }

    pub async fn get(&self, path: &str) -> Value {
        self.ask(path, None, "none").await
    }

    pub async fn until(&self, path: &str, what: &str, there: impl Fn(&Value) -> bool) -> Value {
        eventually(what, async || {
            Some(self.get(path).await).filter(|found| there(found))
        })
        .await
    }

    pub async fn deploy(&self, workflow: &str, definition: &str) {
        let path = format!("definitions?name={workflow}");
        let deployed = self.ask(&path, Some(definition), "none").await;
        assert_eq!(deployed["id"], workflow, "{deployed:#}");
    }

    pub async fn start(&self, workflow: &str, n: usize) -> String {
        let (path, key) = (
            format!("workflows/{workflow}/instances"),
            format!("{workflow}{n}"),
        );
        let input = json!({"n": n}).to_string();
        let started = self.ask(&path, Some(&input), &key).await;
        started["id"].as_str().unwrap().to_owned()
    }

    pub async fn act(&self, id: &str, action: &str) {
        let path = format!("instances/{id}/{action}?reason=because");
        self.ask(&path, Some(""), "none").await;
    }

    pub async fn instances(&self) -> Vec<String> {
        let list = self.get("instances?limit=1000").await;
        assert_eq!(list["complete"], true);
        let rows = list["instances"].as_array().unwrap().iter();
        rows.map(|row| row["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The sum over all coordinators.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        let mut sum = None;
        for server in &self.servers {
            let text = self
                .http
                .get(format!("{server}/metrics"))
                .send()
                .await
                .ok()?;
            let text = text.text().await.ok()?;
            let lines = text.lines().filter(|line| line.starts_with(name));
            for line in lines {
                let value: f64 = line.rsplit_once(' ')?.1.parse().ok()?;
                sum = Some(sum.unwrap_or(0.0) + value);
            }
        }
        sum
    }
}
