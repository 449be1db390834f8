//! One Redis server.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::port::free_port;
use crate::process::{ATTEMPTS, Process, output};

/// Options for starting a server. By default it stores nothing on disk.
#[derive(Debug, Clone, Default)]
pub struct RedisOptions {
    /// Keeps an append-only file.
    pub appendonly: bool,
    /// `always` (the default with a file), `everysec` or `no`.
    pub appendfsync: Option<&'static str>,
    /// A free port if absent.
    pub port: Option<u16>,
    /// Additional command line arguments, such as `["--maxmemory", "100mb"]`.
    pub args: Vec<String>,
}

/// A private server. Dropping it kills it.
#[derive(Debug)]
pub struct RedisServer {
    // Dropped in this order: the process first, then its folder.
    process: Option<Process>,
    port: u16,
    options: RedisOptions,
    folder: TempDir,
    mode: Mode,
}

#[derive(Debug, Clone)]
pub(crate) enum Mode {
    Plain,
    /// With the port of its cluster bus.
    Cluster(u16),
    /// With its initial configuration.
    Sentinel(String),
}

impl RedisServer {
    /// Starts a server that stores nothing on disk.
    pub fn start() -> Result<RedisServer> {
        RedisServer::start_with(RedisOptions::default())
    }

    /// Starts a server that writes to disk before it answers.
    pub fn durable() -> Result<RedisServer> {
        RedisServer::start_with(RedisOptions {
            appendonly: true,
            ..RedisOptions::default()
        })
    }

    pub fn start_with(options: RedisOptions) -> Result<RedisServer> {
        RedisServer::start_as(options, |_| Ok(Mode::Plain))
    }

    /// `mode` is created for each port that is tried.
    pub(crate) fn start_as(
        options: RedisOptions,
        mode: impl Fn(u16) -> Result<Mode>,
    ) -> Result<RedisServer> {
        let mut attempt = 1;
        loop {
            let port = options.port.map_or_else(free_port, Ok)?;
            let mut server = RedisServer {
                process: None,
                port,
                options: options.clone(),
                folder: tempfile::tempdir()?,
                mode: mode(port)?,
            };
            match server.launch() {
                Ok(()) => return Ok(server),
                Err(error) if options.port.is_some() || attempt == ATTEMPTS => return Err(error),
                // Another process may have taken the port.
                Err(_) => attempt += 1,
            }
        }
    }

    fn launch(&mut self) -> Result<()> {
        let log = self.folder.path().join("log");
        let args = self.args()?;
        let process = Process::start("redis-server", "redis-server", &args, &log)?;
        let pid = process.pid().to_string();
        let process = self.process.insert(process);
        let port = self.port.to_string();
        // The id distinguishes our server from another one on the port.
        process.wait_until("answer", || {
            output("redis-cli", "redis-tools", &["-p", &port, "INFO", "server"])
                .is_ok_and(|info| info.contains(&format!("process_id:{pid}\r")))
                && output("redis-cli", "redis-tools", &["-p", &port, "PING"])
                    .is_ok_and(|answer| answer == "PONG")
        })
    }

    fn args(&self) -> Result<Vec<String>> {
        let folder = self.folder.path().display().to_string();
        let mut args: Vec<String> = Vec::new();
        if let Mode::Sentinel(config) = &self.mode {
            let file = self.folder.path().join("sentinel.conf");
            // It writes its state into the file, which still exists after a restart.
            if !file.exists() {
                std::fs::write(&file, config)?;
            }
            args.extend([file.display().to_string(), "--sentinel".to_owned()]);
        }
        let port = self.port.to_string();
        args.extend(["--port", &port, "--bind", "127.0.0.1", "--dir", &folder].map(str::to_owned));
        if matches!(self.mode, Mode::Sentinel(_)) {
            return Ok(args);
        }
        args.extend(["--save", "", "--appendonly"].map(str::to_owned));
        args.push(if self.options.appendonly { "yes" } else { "no" }.to_owned());
        let fsync = self.options.appendfsync.unwrap_or("always");
        args.extend(["--appendfsync", fsync].map(str::to_owned));
        if let Mode::Cluster(bus) = self.mode {
            let bus = bus.to_string();
            let cluster = [
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &bus,
                "--cluster-node-timeout",
                "3000",
            ];
            args.extend(cluster.map(str::to_owned));
        }
        args.extend(self.options.args.iter().cloned());
        Ok(args)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `redis://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    pub(crate) fn bus_port(&self) -> u16 {
        match self.mode {
            Mode::Cluster(port) => port,
            _ => 0,
        }
    }

    /// The process, if it is running.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// The output of `redis-cli` for a command, without the last line end. An error reply is returned as an error.
    pub fn cli(&self, command: &[&str]) -> Result<String> {
        let port = self.port.to_string();
        let mut args = vec!["-e", "-p", &port];
        args.extend(command);
        output("redis-cli", "redis-tools", &args)
    }

    /// `SIGSTOP`: it holds its connections and answers nothing.
    pub fn pause(&self) -> Result<()> {
        self.running()?.signal(Signal::STOP)
    }

    /// `SIGCONT`
    pub fn resume(&self) -> Result<()> {
        self.running()?.signal(Signal::CONT)
    }

    fn running(&self) -> Result<&Process> {
        self.process.as_ref().context("the server isn't running")
    }

    /// `kill -9`
    pub fn kill(&mut self) -> Result<()> {
        match self.process.take() {
            Some(mut process) => process.kill(),
            None => Ok(()),
        }
    }

    /// Asks it to stop, and waits for that.
    pub fn stop(&mut self) -> Result<()> {
        match self.process.take() {
            Some(mut process) => process.terminate(),
            None => Ok(()),
        }
    }

    /// Restarts it on the same port with the same data. If it is running, it is stopped first.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.launch()
    }
}
