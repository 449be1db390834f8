//! Workers and coordinators as processes, each with its own connections through proxies.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use swirl_servers::{Proxy, free_port};

const READY_MAX: Duration = Duration::from_secs(180);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Worker,
    Coordinator,
}

pub struct Process {
    pub role: Role,
    pub name: String,
    pub address: SocketAddr,
    pub redis: Proxy,
    pub nats: Proxy,
    /// The nodes of a Redis Cluster, which is used instead, without a proxy.
    pub nodes: Vec<String>,
    /// The process's clock is ten seconds ahead.
    pub ahead: bool,
    /// Additional flags, from the next start on.
    pub flags: Vec<String>,
    /// Additional variables, from the next start on.
    pub variables: Vec<(String, String)>,
    binary: PathBuf,
    log: PathBuf,
    lease: String,
    child: Option<Child>,
}

impl Process {
    /// `redis` and `nats` are the servers' addresses.
    pub fn new(
        role: Role,
        number: usize,
        binary: &Path,
        folder: &Path,
        (redis, nats): (&str, &str),
        lease: Duration,
    ) -> Result<Process> {
        let word = match role {
            Role::Worker => "worker",
            Role::Coordinator => "coordinator",
        };
        let name = format!("{word}-{number}");
        Ok(Process {
            role,
            address: ([127, 0, 0, 1], free_port()?).into(),
            redis: Proxy::start(redis)?,
            nats: Proxy::start(nats)?,
            nodes: Vec::new(),
            ahead: false,
            flags: Vec::new(),
            variables: Vec::new(),
            binary: binary.to_owned(),
            log: folder.join(format!("{name}.log")),
            lease: format!("{}ms", lease.as_millis()),
            name,
            child: None,
        })
    }

    pub fn start(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(&self.binary);
        if self.ahead {
            command.envs(clock_ahead()?);
        }
        let (word, listen) = match self.role {
            Role::Worker => ("worker", "--worker-listen"),
            Role::Coordinator => ("coordinator", "--coordinator-listen"),
        };
        command.arg(word);
        match self.nodes.as_slice() {
            [] => {
                let url = format!("redis://{}", self.redis.address());
                command.args(["--redis-url", &url]);
            }
            nodes => {
                command.args(["--redis-url", &nodes.join(",")]);
                command.arg("--redis-cluster");
            }
        }
        command
            .args(["--nats-url", &format!("nats://{}", self.nats.address())])
            .args(["--redis-shards", "8"])
            .args([
                "--nats-events-bytes-max",
                "256MiB",
                "--nats-tasks-bytes-max",
                "64MiB",
            ])
            .arg(listen)
            .arg(self.address.to_string());
        match self.role {
            Role::Worker => command.args(["--worker-lease", &self.lease]),
            Role::Coordinator => command.args(["--auth-mode", "off"]),
        };
        let level = std::env::var("SWIRL_LOG").ok();
        let child = command
            .args(&self.flags)
            .envs(self.variables.iter().cloned())
            .env("SWIRL_LOG", level.as_deref().unwrap_or("info"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        let child = child.with_context(|| format!("{} cannot start", self.binary.display()))?;
        self.child = Some(child);
        Ok(())
    }

    /// Waits until it listens and has begun its work.
    pub fn wait(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            if has_started(self.address) {
                return Ok(());
            }
            let ended = self.child.as_mut().map(Child::try_wait);
            if let Some(Ok(Some(status))) = ended {
                bail!("{} ended ({status}): {}", self.name, self.tail());
            }
            if begun.elapsed() > READY_MAX {
                bail!("{} doesn't listen: {}", self.name, self.tail());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.child.as_ref().map(|child| child.id() as i32);
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            kill_process(pid, signal)?;
        }
        Ok(())
    }

    /// kill -9.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Sends SIGTERM and waits for the end. Returns how long that took.
    pub fn stop(&mut self, limit: Duration) -> Result<Duration> {
        self.signal(Signal::TERM)?;
        let begun = Instant::now();
        let Some(child) = &mut self.child else {
            return Ok(Duration::ZERO);
        };
        loop {
            if child.try_wait()?.is_some() {
                self.child = None;
                return Ok(begun.elapsed());
            }
            if begun.elapsed() > limit {
                bail!("{} doesn't stop: {}", self.name, self.tail());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The exit status, if the process ended by itself.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        Some(format!("{} ended ({status}): {}", self.name, self.tail()))
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Copies the log to a folder.
    pub fn copy_log(&self, into: &Path) -> Result<()> {
        std::fs::copy(&self.log, into.join(format!("{}.log", self.name)))?;
        Ok(())
    }

    pub fn tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

/// The variables with which `faketime` sets a clock ten seconds ahead. The command `faketime` itself would be the
/// parent of the process, and signals to it would not reach the process.
fn clock_ahead() -> Result<Vec<(String, String)>> {
    let mut command = Command::new("faketime");
    let done = command.args(["-f", "+10s", "env"]).output();
    let done = done.context("faketime cannot be run (Debian: apt install faketime)")?;
    let text = String::from_utf8_lossy(&done.stdout);
    let wanted: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| matches!(*name, "LD_PRELOAD" | "FAKETIME"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    if wanted.len() != 2 {
        bail!("faketime doesn't say how it works: {text}");
    }
    Ok(wanted)
}

impl Drop for Process {
    fn drop(&mut self) {
        // A stopped process is killed as well.
        let _ = self.kill();
    }
}

/// Whether a process answers, and no longer says that it is starting.
fn has_started(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream
            .write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 ") && !answer.contains("\"starting\""))
}
