//! A server of any kind: its process, its port and its folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::port::free_port;
use crate::process::{ATTEMPTS, Process};

/// A private server. Dropping it kills it.
#[derive(Debug)]
pub struct Server<K> {
    // Dropped in this order: the process first, then its folder.
    process: Option<Process>,
    port: u16,
    pub(crate) kind: K,
    folder: TempDir,
}

/// How servers of a kind are started.
pub trait Kind {
    /// Starts the process and waits until it is ready.
    fn launch(&self, place: &Place<'_>) -> Result<Process>;
}

/// Where a server is started.
pub struct Place<'a> {
    pub port: u16,
    pub folder: &'a Path,
    /// The file of the process's output.
    pub log: PathBuf,
}

impl<K: Kind> Server<K> {
    /// Starts a server on this port, or on a free one. `kind` is created for each port that is tried.
    pub(crate) fn start_on(
        port: Option<u16>,
        kind: impl Fn(u16) -> Result<K>,
    ) -> Result<Server<K>> {
        let mut attempt = 1;
        loop {
            let chosen = port.map_or_else(free_port, Ok)?;
            let mut server = Server {
                process: None,
                port: chosen,
                kind: kind(chosen)?,
                folder: tempfile::tempdir()?,
            };
            match server.launch() {
                Ok(()) => return Ok(server),
                Err(error) if port.is_some() || attempt == ATTEMPTS => return Err(error),
                // Another process may have taken the port.
                Err(_) => attempt += 1,
            }
        }
    }

    pub(crate) fn launch(&mut self) -> Result<()> {
        let place = Place {
            port: self.port,
            folder: self.folder.path(),
            log: self.log(),
        };
        self.process = Some(self.kind.launch(&place)?);
        Ok(())
    }

    /// Restarts it on the same port with the same data. If it is running, it is stopped first.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.launch()
    }
}

impl<K> Server<K> {
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
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
}
