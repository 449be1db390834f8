//! Coordinators and workers of a namespace, as child processes.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::mock::CONNECTOR;
use super::settings::Settings;

/// The time limit for a process to become ready, even on a busy machine.
const READY_MAX: Duration = Duration::from_secs(180);

/// Killed when dropped.
pub struct Processes {
    children: Vec<Child>,
    /// The API URL of each coordinator.
    pub apis: Vec<String>,
    _secrets: tempfile::NamedTempFile,
}

impl Processes {
    /// Starts the processes, and waits until they are ready.
    pub async fn start(
        settings: &Settings,
        namespace: &str,
        connector: &str,
        servers: &str,
        secrets: &str,
    ) -> anyhow::Result<Processes> {
        let mut file = tempfile::Builder::new().suffix(".json").tempfile()?;
        file.write_all(secrets.as_bytes())?;
        file.flush()?;
        let mut processes = Processes {
            children: Vec::new(),
            apis: Vec::new(),
            _secrets: file,
        };
        let mut starting = Vec::new();
        for _ in 0..settings.coordinators {
            let mut command = command(settings, namespace, "coordinator")?;
            command.args(["--coordinator-listen", "127.0.0.1:0", "--auth-mode", "off"]);
            starting.push((true, command));
        }
        for _ in 0..settings.workers {
            let mut command = command(settings, namespace, "worker")?;
            command.args(["--worker-listen", "127.0.0.1:0"]);
            command
                .arg("--secrets-files")
                .arg(processes._secrets.path());
            starting.push((false, command));
        }
        let mut waiting = Vec::new();
        for (is_coordinator, mut command) in starting {
            command.env(
                "SWIRL_FUNCTIONS_CONNECTORS",
                format!("{CONNECTOR}={connector}"),
            );
            if !servers.is_empty() {
                command.env("SWIRL_FUNCTIONS_SERVERS", servers);
            }
            let mut child = command.spawn().context("a process cannot be started")?;
            let Some(stderr) = child.stderr.take() else {
                bail!("a process has no output");
            };
            processes.children.push(child);
            let word = if is_coordinator {
                "the API is at "
            } else {
                "working"
            };
            waiting.push((is_coordinator, ready(BufReader::new(stderr), word)));
        }
        for (is_coordinator, waiting) in waiting {
            let line = timeout(READY_MAX, waiting)
                .await
                .context("a process doesn't become ready")??;
            if is_coordinator {
                let url = line.split("the API is at ").nth(1).unwrap_or_default();
                let server = url.split("/api/").next().unwrap_or_default();
                processes.apis.push(server.to_owned());
            }
        }
        Ok(processes)
    }

    /// The first process that has ended by itself, if any.
    pub fn ended(&mut self) -> Option<String> {
        self.children
            .iter_mut()
            .find_map(|child| Some(child.try_wait().ok()??.to_string()))
    }

    pub async fn stop(mut self) {
        for child in &mut self.children {
            let _ = child.kill().await;
        }
    }
}

fn command(settings: &Settings, namespace: &str, role: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg(role)
        .args(["--redis-url", &settings.redis, "--nats-url", &settings.nats])
        .args(["--namespace", namespace, "--redis-shards", "4"])
        .args([
            "--nats-events-bytes-max",
            "16MiB",
            "--nats-tasks-bytes-max",
            "16MiB",
        ])
        .args(["--log-format", "text"])
        .env("SWIRL_LOG", "info")
        .env_remove("SWIRL_CONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    Ok(command)
}

/// The first line that contains this text. The rest of the output is read and dropped, so that the process isn't
/// blocked.
async fn ready(
    mut lines: BufReader<tokio::process::ChildStderr>,
    word: &str,
) -> anyhow::Result<String> {
    let mut all = String::new();
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).await? == 0 {
            bail!("a process ended: {}", all.trim());
        }
        if line.contains(word) {
            tokio::spawn(async move {
                let mut line = String::new();
                while lines.read_line(&mut line).await.is_ok_and(|read| read > 0) {
                    line.clear();
                }
            });
            return Ok(line.trim().to_owned());
        }
        all.push_str(&line);
    }
}
