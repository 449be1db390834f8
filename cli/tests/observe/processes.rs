//! Workers and coordinators as processes, on servers that the test starts.

use std::fmt::Display;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use serde_json::{Value, json};
use swirl_servers::{NatsServer, RedisServer, eventually, free_port};
use tempfile::TempDir;

/// Dropping it kills the processes.
pub struct Cluster {
    pub coordinator: Process,
    pub workers: Vec<Process>,
    pub nats: Arc<NatsServer>,
    pub http: reqwest::Client,
    _redis: Arc<RedisServer>,
    _folder: TempDir,
}

pub struct Process {
    /// `http://127.0.0.1:PORT`
    pub url: String,
    log: PathBuf,
    child: Child,
}

impl Cluster {
    /// Starts one coordinator and this many workers. `flags` are for all of them.
    pub async fn start(workers: usize, flags: &[&str]) -> Cluster {
        let (redis, nats) = (RedisServer::start().unwrap(), NatsServer::start().unwrap());
        let urls = [redis.url(), nats.url()];
        Cluster::on(Arc::new(redis), Arc::new(nats), &urls, workers, flags).await
    }

    /// On servers that others use as well. `urls` are those of Redis and NATS.
    pub async fn on(
        redis: Arc<RedisServer>,
        nats: Arc<NatsServer>,
        urls: &[String; 2],
        workers: usize,
        flags: &[&str],
    ) -> Cluster {
        let [redis_url, nats_url] = urls;
        let folder = tempfile::tempdir().unwrap();
        let start = |role: &str, number: usize, own: &[&str]| {
            let url = format!("127.0.0.1:{}", free_port().unwrap());
            let log = folder.path().join(format!("{role}-{number}.log"));
            let child = Command::new(env!("CARGO_BIN_EXE_swirl"))
                .args([role, "--redis-url", redis_url, "--nats-url", nats_url])
                .args([listen(role), &url])
                .args(["--redis-shards", "4", "--log-format", "json"])
                .args(["--log-filter", "info,swirl_functions=debug"])
                .args((role == "worker").then_some("--http-timeout=5m"))
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
        // One scope at a time, so that concurrent work is spread over the workers.
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

    /// The logs of all processes.
    pub fn logs(&self) -> String {
        let all = self.workers.iter().chain([&self.coordinator]);
        all.map(|process| format!("{}:\n{}\n", process.url, process.log()))
            .collect()
    }

    /// The metrics that each process exposes to Prometheus.
    pub async fn metrics(&self) -> Vec<(String, String)> {
        let mut metrics = Vec::new();
        for process in self.workers.iter().chain([&self.coordinator]) {
            metrics.push((process.url.clone(), process.metrics(&self.http).await));
        }
        metrics
    }

    /// Waits until it has ended, and returns its status.
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
        let (log, url) = (self.log.clone(), format!("{}/readyz", self.url));
        eventually(with_log(&url, &log), async || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", self.log());
            let answer = http.get(&url).send().await.ok()?;
            answer.status().is_success().then_some(())
        })
        .await;
    }

    /// The log so far.
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

    /// Sends SIGTERM, and waits for the end.
    pub async fn stop(&mut self) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        let what = format!("the end of {}", self.url);
        let log = self.log.clone();
        eventually(with_log(&what, &log), async || {
            self.child.try_wait().unwrap()
        })
        .await;
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
    let tls = swirl_functions::http::tls().unwrap();
    let builder = reqwest::Client::builder().tls_backend_preconfigured(tls);
    builder.no_proxy().build().unwrap()
}

/// A description of the awaited condition, with a process's log.
fn with_log(what: &str, log: &Path) -> impl Display {
    std::fmt::from_fn(move |f| {
        let log = std::fs::read_to_string(log).unwrap_or_default();
        write!(f, "{what}:\n{log}")
    })
}
