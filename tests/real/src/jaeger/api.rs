//! A Jaeger of its own, and its API.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Result, bail, ensure};
use reqwest::{Client, Url};
use serde_json::Value;
use swirl_servers::{eventually, free_ports};
use tempfile::TempDir;

/// Only what is needed, all on ports that were free.
const CONFIG: &str = "\
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {receivers: [otlp], processors: [batch], exporters: [jaeger_storage_exporter]}
  telemetry: {metrics: {level: none}}
extensions:
  jaeger_query: {storage: {traces: kept}, http: {endpoint: '127.0.0.1:HTTP'}, grpc: {endpoint: '127.0.0.1:GRPC'}}
  jaeger_storage: {backends: {kept: {memory: {max_traces: 20000}}}}
receivers:
  otlp: {protocols: {grpc: {endpoint: '127.0.0.1:OTLP'}}}
processors:
  batch:
exporters:
  jaeger_storage_exporter: {trace_storage: kept}
";

/// Dropping it ends the process.
pub struct Jaeger {
    pub url: String,
    /// The endpoint of OTLP over gRPC.
    pub otlp: String,
    http: Client,
    child: Child,
    _folder: TempDir,
}

impl Jaeger {
    pub async fn start(program: &Path) -> Result<Jaeger> {
        let folder = tempfile::tempdir()?;
        let ports = free_ports(3)?;
        let [http, grpc, otlp] = ports[..] else {
            bail!("no three ports");
        };
        let config = CONFIG.replace("HTTP", &http.to_string());
        let config = config
            .replace("GRPC", &grpc.to_string())
            .replace("OTLP", &otlp.to_string());
        let file = folder.path().join("jaeger.yaml");
        std::fs::write(&file, config)?;
        let log = folder.path().join("log");
        let child = Command::new(program)
            .arg("--config")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .stderr(File::create(&log)?)
            .spawn()?;
        let mut jaeger = Jaeger {
            url: format!("http://127.0.0.1:{http}"),
            otlp: format!("http://127.0.0.1:{otlp}"),
            http: Client::builder().no_proxy().build()?,
            child,
            _folder: folder,
        };
        eventually("Jaeger", async || {
            let ended = jaeger.child.try_wait().ok().flatten();
            assert!(
                ended.is_none(),
                "{}",
                std::fs::read_to_string(&log).unwrap_or_default()
            );
            let answer = jaeger
                .http
                .get(format!("{}/api/services", jaeger.url))
                .send()
                .await
                .ok()?;
            answer.status().is_success().then_some(())
        })
        .await;
        Ok(jaeger)
    }

    /// The `data` of an answer.
    pub async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        let url = Url::parse_with_params(&format!("{}{path}", self.url), query)?;
        let answer = self.http.get(url).send().await?;
        let status = answer.status();
        let mut body: Value = answer.json().await?;
        ensure!(
            status.is_success(),
            "Jaeger answers {path} with {status}: {body}"
        );
        Ok(body["data"].take())
    }

    /// The traces of Swirl that have a span with these tags.
    pub async fn traces(&self, tags: Value) -> Result<Vec<Value>> {
        let tags = tags.to_string();
        let query = [
            ("service", "swirl"),
            ("tags", &tags),
            ("limit", "1000"),
            ("lookback", "1h"),
        ];
        match self.get("/api/traces", &query).await? {
            Value::Array(traces) => Ok(traces),
            other => bail!("no list of traces: {other}"),
        }
    }
}

impl Drop for Jaeger {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
