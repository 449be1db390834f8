//! One Redis server.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::instructions;
use crate::process::{Process, output};
use crate::server::{Kind, Place, Server};

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
    /// Runs under valgrind, which counts its instructions.
    pub counts: bool,
}

/// A Redis server.
pub type RedisServer = Server<RedisKind>;

/// How a Redis server is started.
#[derive(Debug)]
pub struct RedisKind {
    options: RedisOptions,
    mode: Mode,
}

#[derive(Debug, Clone)]
pub enum Mode {
    Plain,
    /// With the port of its cluster bus.
    Cluster(u16),
    /// With its initial configuration.
    Sentinel(String),
}

impl Kind for RedisKind {
    fn launch(&self, place: &Place<'_>) -> Result<Process> {
        let args = self.args(place)?;
        let mut process = match self.options.counts {
            true => {
                let args = instructions::under_callgrind(place.folder, "redis-server", args);
                Process::start("valgrind", "valgrind", args, &place.log)?
            }
            false => Process::start("redis-server", "redis-server", &args, &place.log)?,
        };
        let (pid, port) = (process.pid().to_string(), place.port.to_string());
        // The id distinguishes our server from another one on the port.
        process.wait_until("answer", || {
            output("redis-cli", "redis-tools", &["-p", &port, "INFO", "server"])
                .is_ok_and(|info| info.contains(&format!("process_id:{pid}\r")))
                && output("redis-cli", "redis-tools", &["-p", &port, "PING"])
                    .is_ok_and(|answer| answer == "PONG")
        })?;
        Ok(process)
    }
}

impl RedisKind {
    fn args(&self, place: &Place<'_>) -> Result<Vec<String>> {
        let folder = place.folder.display().to_string();
        let mut args: Vec<String> = Vec::new();
        if let Mode::Sentinel(config) = &self.mode {
            let file = place.folder.join("sentinel.conf");
            // It writes its state into the file, which still exists after a restart.
            if !file.exists() {
                std::fs::write(&file, config)?;
            }
            args.extend([file.display().to_string(), "--sentinel".to_owned()]);
        }
        let port = place.port.to_string();
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
        RedisServer::start_on(options.port, |port| {
            let (options, mode) = (options.clone(), mode(port)?);
            Ok(RedisKind { options, mode })
        })
    }

    /// The machine loses power in the middle of a write to the append-only file.
    pub fn lose_power(&mut self) -> Result<()> {
        self.kill()?;
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(self.log_file()?)?;
        file.write_all(b"*3\r\n$3\r\nSET\r\n$4\r\nto")?;
        self.launch()
    }

    /// The machine loses power, and with it what was written to the append-only file in this time before, as with
    /// `appendfsync everysec`. Returns whether it did: a file that was rewritten meanwhile is left alone.
    pub fn lose_writes(&mut self, unsynced: Duration) -> Result<bool> {
        let before = self.log_file()?;
        let synced = std::fs::metadata(&before)?.len();
        std::thread::sleep(unsynced);
        self.kill()?;
        let loses = self.log_file()? == before;
        if loses {
            let file = std::fs::OpenOptions::new().write(true).open(before)?;
            file.set_len(synced)?;
        }
        self.launch()?;
        Ok(loses)
    }

    /// The append-only file that it writes now.
    fn log_file(&self) -> Result<PathBuf> {
        let folder = self.folder().join("appendonlydir");
        let files = std::fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
        let paths = files.iter().map(std::fs::DirEntry::path);
        let last = paths
            .filter(|path| path.to_string_lossy().ends_with(".incr.aof"))
            .max_by_key(|path| {
                std::fs::metadata(path)
                    .and_then(|found| found.modified())
                    .ok()
            });
        last.context("there is no append-only file")
    }

    /// `redis://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    pub(crate) fn bus_port(&self) -> u16 {
        match self.kind.mode {
            Mode::Cluster(port) => port,
            _ => 0,
        }
    }

    /// The number of instructions since this was called last. The server must run with `RedisOptions::counts`.
    pub fn instructions(&self) -> Result<u64> {
        let pid = self.pid().context("the server isn't running")?;
        instructions::counted(self.folder(), pid)
    }

    /// The file with these instructions by function, for `callgrind_annotate`.
    pub fn profile(&self) -> Result<PathBuf> {
        instructions::last_file(self.folder())
    }

    /// The output of `redis-cli` for a command, without the last line end. An error reply is returned as an error.
    pub fn cli(&self, command: &[&str]) -> Result<String> {
        let port = self.port().to_string();
        let mut args = vec!["-e", "-p", &port];
        args.extend(command);
        output("redis-cli", "redis-tools", &args)
    }
}
