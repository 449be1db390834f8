//! Coordinators and workers as processes.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use swirl_servers::free_port;
use tempfile::TempDir;

use super::http::Connection;
use crate::servers::Servers;
use crate::usage::Meter;

const READY_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Setup {
    pub binary: PathBuf,
    pub workers: usize,
    /// Use `appendfsync always` instead of every second.
    pub always: bool,
    /// Each scope gets its own message, even if its worker could continue with it or the coordinator could run it.
    pub a_message_each: bool,
    /// The number of ended instances that are kept, if it isn't the default.
    pub keep_ended_max: Option<usize>,
    /// Lifecycle events are on.
    pub publishes: bool,
    /// Further settings of both roles.
    pub settings: &'static [&'static str],
}

pub struct Cluster {
    // Dropped in this order: the users of the servers first.
    coordinator: Node,
    workers: Vec<Node>,
    pub servers: Servers,
    folder: TempDir,
    setup: Setup,
}

struct Node {
    child: Option<Child>,
    address: SocketAddr,
    log: PathBuf,
}

impl Cluster {
    pub async fn start(setup: &Setup) -> Result<Cluster> {
        let servers = Servers::start(setup.always).await?;
        let folder = tempfile::tempdir()?;
        let begin = |role: &str, number| Node::start(setup, &servers, folder.path(), role, number);
        let coordinator = begin("coordinator", 0)?;
        let workers = (0..setup.workers).map(|number| begin("worker", number));
        let cluster = Cluster {
            coordinator,
            workers: workers.collect::<Result<_>>()?,
            folder,
            setup: setup.clone(),
            servers,
        };
        cluster.coordinator.ready().await?;
        for worker in &cluster.workers {
            worker.ready().await?;
        }
        Ok(cluster)
    }

    pub fn api(&self) -> SocketAddr {
        self.coordinator.address
    }

    /// Measures processes and servers, including this process as the client.
    pub fn meter(&self) -> Meter {
        let mut meter = self.servers.meter();
        let mut add = |name: &str, node: &Node| {
            let pid = node.child.as_ref().map(Child::id);
            meter
                .processes
                .extend(pid.map(|pid| (name.to_owned(), pid)));
        };
        add("coordinator", &self.coordinator);
        self.workers.iter().for_each(|worker| add("worker", worker));
        meter
    }

    /// Stops the coordinator. No timers fire until [`Cluster::start_coordinator`].
    pub fn stop_coordinator(&mut self) -> Result<()> {
        self.coordinator.kill()
    }

    /// Starts another coordinator, and returns the time until it was ready.
    pub async fn start_coordinator(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        let folder = self.folder.path();
        self.coordinator = Node::start(&self.setup, &self.servers, folder, "coordinator", 1)?;
        self.coordinator.ready().await?;
        Ok(begun.elapsed())
    }

    /// The number of messages that the task queue has received.
    pub async fn tasks(&self) -> Result<u64> {
        self.messages("TASKS").await
    }

    /// The number of messages that a stream has received.
    pub async fn messages(&self, stream: &str) -> Result<u64> {
        let context = async_nats::jetstream::new(self.servers.nats_link.clone());
        let mut stream = context
            .get_stream(format!("SWIRL_default_{stream}"))
            .await?;
        Ok(stream.info().await?.state.last_sequence)
    }
}

impl Node {
    fn start(
        setup: &Setup,
        servers: &Servers,
        folder: &Path,
        role: &str,
        number: usize,
    ) -> Result<Node> {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
        let log = folder.join(format!("{role}-{number}.log"));
        let mut command = Command::new(&setup.binary);
        command
            .arg(role)
            .args(["--redis-url", &servers.redis.url()])
            .args(["--nats-url", &servers.nats.url()])
            .args(["--nats-events-bytes-max", "512MiB"])
            .args(["--nats-tasks-bytes-max", "512MiB"])
            .arg(format!("--{role}-listen"))
            .arg(address.to_string())
            .args(setup.settings);
        if let Some(max) = setup.keep_ended_max {
            command.args(["--redis-keep-ended-max", &max.to_string()]);
        }
        if role == "coordinator" {
            command.args(["--auth-mode", "off"]);
            if setup.publishes {
                command.args(["--lifecycle-events", "--lifecycle-bytes-max", "512MiB"]);
            }
            if setup.a_message_each {
                command.arg("--coordinator-runs-inline=false");
            }
        } else if setup.a_message_each {
            command.args(["--worker-local-scopes", "0"]);
        }
        let child = command
            .env("SWIRL_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn();
        let child = child.with_context(|| format!("{} cannot start", setup.binary.display()))?;
        Ok(Node {
            child: Some(child),
            address,
            log,
        })
    }

    /// Waits until it reports that it is ready.
    async fn ready(&self) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < READY_MAX {
            if let Ok(mut link) = Connection::open(self.address).await
                && let Ok((200, _)) = link.request("GET", "/readyz", &[], b"").await
            {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        bail!("a process isn't ready: {log}")
    }

    fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // At the end there is nowhere to report an error.
        let _ = self.kill();
    }
}
