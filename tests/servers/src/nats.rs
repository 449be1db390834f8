//! One NATS server with JetStream.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::port::free_port;
use crate::process::{ATTEMPTS, Process};

/// Options for starting a server.
#[derive(Debug, Clone, Default)]
pub struct NatsOptions {
    /// A free port if absent.
    pub port: Option<u16>,
    /// Additional text for the configuration file, such as `authorization { token: secret }`.
    pub config: String,
    /// Core NATS only.
    pub without_jetstream: bool,
}

/// A private server. Dropping it kills it.
#[derive(Debug)]
pub struct NatsServer {
    // Dropped in this order: the process first, then its folder.
    process: Option<Process>,
    port: u16,
    options: NatsOptions,
    folder: TempDir,
}

impl NatsServer {
    pub fn start() -> Result<NatsServer> {
        NatsServer::start_with(NatsOptions::default())
    }

    pub fn start_with(options: NatsOptions) -> Result<NatsServer> {
        let mut attempt = 1;
        loop {
            let mut server = NatsServer {
                process: None,
                port: options.port.map_or_else(free_port, Ok)?,
                options: options.clone(),
                folder: tempfile::tempdir()?,
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
        let file = self.folder.path().join("nats.conf");
        let config = file.display().to_string();
        std::fs::write(&file, self.config())?;
        let log = self.folder.path().join("log");
        let process = Process::start("nats-server", "nats-server", ["-c", &config], &log)?;
        let process = self.process.insert(process);
        let port = self.port;
        process.wait_until("greeting", || greets(port))
    }

    fn config(&self) -> String {
        let mut text = format!("host: \"127.0.0.1\"\nport: {}\n", self.port);
        if !self.options.without_jetstream {
            let store = self.store();
            text.push_str(&format!("jetstream {{ store_dir: {store:?} }}\n"));
        }
        text + &self.options.config + "\n"
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `nats://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("nats://{}", self.address())
    }

    /// The process, if it is running.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder in which JetStream keeps its streams.
    pub fn store(&self) -> PathBuf {
        self.folder.path().join("jetstream")
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.folder.path().join("log")
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

    /// Restarts it on the same port with the same streams. If it is running, it is stopped first.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.launch()
    }

    /// Deletes all streams: stops the server, empties its store, and starts it again.
    pub fn wipe(&mut self) -> Result<()> {
        self.stop()?;
        if self.store().exists() {
            std::fs::remove_dir_all(self.store())?;
        }
        self.launch()
    }
}

/// A server that is ready sends its information first.
fn greets(port: u16) -> bool {
    let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    let mut line = String::new();
    stream
        .set_read_timeout(Some(Duration::from_secs(1)))
        .is_ok()
        && BufReader::new(stream).read_line(&mut line).is_ok()
        && line.starts_with("INFO ")
}
