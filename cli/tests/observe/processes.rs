//! Workers and coordinators as processes, on servers of the test's own.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use swirl_servers::{NatsServer, RedisServer, free_port};
use tempfile::TempDir;

const READY_MAX: Duration = Duration::from_secs(60);
const STOP_MAX: Duration = Duration::from_secs(30);

/// Dropping it kills its processes.
pub struct Cluster {
    pub coordinator: Process,
    pub workers: Vec<Process>,
    pub nats: NatsServer,
    pub http: reqwest::Client,
    _redis: RedisServer,
    _folder: TempDir,
}

pub struct Process {
    /// `http://127.0.0.1:PORT`
    pub url: String,
    log: PathBuf,
    child: Child,
}

impl Cluster {
    /// One coordinator, and so many workers. `flags` are for all of them.
    pub async fn start(workers: usize, flags: &[&str]) -> Cluster {
        let (redis, nats) = (RedisServer::start().unwrap(), NatsServer::start().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let start = |role: &str, number: usize, own: &[&str]| {
            let url = format!("127.0.0.1:{}", free_port().unwrap());
            let log = folder.path().join(format!("{role}-{number}.log"));
            let child = Command::new(env!("CARGO_BIN_EXE_swirl"))
                .args([role, "--redis-url", &redis.url(), "--nats-url", &nats.url()])
                .args([listen(role), &url])
                .args(["--redis-shards", "4", "--log-format", "json"])
                .args(["--log-filter", "info,swirl_worker=debug"])
                .args([
                    "--nats-events-bytes-max",
                    "16MiB",
                    "--nats-tasks-bytes-max",
                    "16MiB",
                ])
                .args(own)
                .args(flags)
                .env_remove("SWIRL_LOG")
                .env_remove("SWIRL_CONFIG")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(File::create(&log).unwrap())
                .spawn()
                .unwrap();
            let url = format!("http://{url}");
            Process { url, log, child }
        };
        let coordinator = start("coordinator", 0, &["--auth-mode", "off"]);
        // One scope at a time: what is to be done at once is spread over the workers.
        let one = &["--worker-concurrency", "1"];
        let workers = (0..workers)
            .map(|number| start("worker", number, one))
            .collect();
        let mut cluster = Cluster {
            coordinator,
            workers,
            nats,
            http: client(),
            _redis: redis,
            _folder: folder,
        };
        let all = cluster.workers.iter_mut().chain([&mut cluster.coordinator]);
        for process in all {
            process.ready(&cluster.http).await;
        }
        cluster
    }

    pub async fn deploy(&self, definition: &Value, service: &str) {
        let document = definition.to_string();
        let body = json!({"document": document, "resources": {"service.json": service}});
        let request = self
            .http
            .post(format!("{}/api/v1/definitions", self.coordinator.url))
            .header("content-type", "application/vnd.swirl.deployment+json")
            .body(body.to_string());
        let answer = request.send().await.unwrap();
        let status = answer.status();
        assert!(
            status.is_success(),
            "{status}: {}",
            answer.text().await.unwrap()
        );
    }

    /// Returns the instance's id.
    pub async fn start_instance(&self, workflow: &str) -> String {
        let url = format!(
            "{}/api/v1/workflows/{workflow}/instances",
            self.coordinator.url
        );
        let request = self
            .http
            .post(url)
            .header("content-type", "application/json");
        let answer = request.body("{}").send().await.unwrap();
        let answer = answer.text().await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["id"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    }

    /// The metrics that each process exposes to Prometheus.
    pub async fn metrics(&self) -> Vec<(String, String)> {
        let mut told = Vec::new();
        for process in self.workers.iter().chain([&self.coordinator]) {
            told.push((process.url.clone(), process.metrics(&self.http).await));
        }
        told
    }

    /// Waits until it has ended; its status.
    pub async fn end(&self, id: &str) -> String {
        let url = format!("{}/api/v1/instances/{id}", self.coordinator.url);
        let ended = async || {
            let answer = self.http.get(&url).send().await.ok()?.text().await.ok()?;
            let answer: Value = serde_json::from_str(&answer).ok()?;
            let status = answer["status"].as_str()?.to_owned();
            (status != "running").then_some(status)
        };
        eventually("the instance's end", ended).await
    }
}

impl Process {
    async fn ready(&mut self, http: &reqwest::Client) {
        let begun = Instant::now();
        let url = format!("{}/readyz", self.url);
        while !http
            .get(&url)
            .send()
            .await
            .is_ok_and(|answer| answer.status().is_success())
        {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", self.log());
            assert!(
                begun.elapsed() < READY_MAX,
                "{} is not ready: {}",
                self.url,
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    pub async fn metrics(&self, http: &reqwest::Client) -> String {
        let answer = http
            .get(format!("{}/metrics", self.url))
            .send()
            .await
            .unwrap();
        assert!(answer.status().is_success());
        answer.text().await.unwrap()
    }

    /// SIGTERM, and waits for its end.
    pub async fn stop(&mut self) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        let begun = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(
                begun.elapsed() < STOP_MAX,
                "{} doesn't stop: {}",
                self.url,
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(role: &str) -> &'static str {
    match role {
        "worker" => "--worker-listen",
        _ => "--coordinator-listen",
    }
}

fn client() -> reqwest::Client {
    let tls = swirl_worker::http::tls().unwrap();
    let builder = reqwest::Client::builder().tls_backend_preconfigured(tls);
    builder.no_proxy().build().unwrap()
}

/// Asks until there is something.
pub async fn eventually<T>(what: &str, ask: impl AsyncFn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ask().await {
            return found;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "{what} doesn't come"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
