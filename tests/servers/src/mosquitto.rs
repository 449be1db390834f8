//! One MQTT broker: Mosquitto.

use std::net::TcpStream;

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::port::free_port;
use crate::process::{ATTEMPTS, Process, command};

/// Options for starting a broker.
#[derive(Debug, Clone, Default)]
pub struct MosquittoOptions {
    /// User and password. Without them, anyone may connect.
    pub login: Option<(String, String)>,
}

/// A private broker. Dropping it kills it.
#[derive(Debug)]
pub struct MosquittoServer {
    // Dropped in this order: the process first, then its folder.
    process: Option<Process>,
    port: u16,
    options: MosquittoOptions,
    folder: TempDir,
}

impl MosquittoServer {
    pub fn start() -> Result<MosquittoServer> {
        MosquittoServer::start_with(MosquittoOptions::default())
    }

    pub fn start_with(options: MosquittoOptions) -> Result<MosquittoServer> {
        let mut attempt = 1;
        loop {
            let mut server = MosquittoServer {
                process: None,
                port: free_port()?,
                options: options.clone(),
                folder: tempfile::tempdir()?,
            };
            match server.launch() {
                Ok(()) => return Ok(server),
                Err(error) if attempt == ATTEMPTS => return Err(error),
                // Another process may have taken the port.
                Err(_) => attempt += 1,
            }
        }
    }

    fn launch(&mut self) -> Result<()> {
        let folder = self.folder.path();
        let config = folder.join("mosquitto.conf");
        let mut text = format!("listener {} 127.0.0.1\n", self.port);
        match &self.options.login {
            None => text.push_str("allow_anonymous true\n"),
            Some((user, password)) => {
                let file = folder.join("passwords");
                let made = command("mosquitto_passwd")
                    .args(["-b", "-c"])
                    .arg(&file)
                    .args([user, password])
                    .output()
                    .context("mosquitto_passwd cannot be run; it is in the package mosquitto")?;
                ensure!(made.status.success(), "mosquitto_passwd: {made:?}");
                text.push_str(&format!(
                    "allow_anonymous false\npassword_file {}\n",
                    file.display()
                ));
            }
        }
        // As root, it would switch to a user who cannot read the folder.
        text.push_str("user root\n");
        std::fs::write(&config, text)?;
        let log = folder.join("log");
        let config = config.display().to_string();
        let process = Process::start("mosquitto", "mosquitto", ["-v", "-c", &config], &log)?;
        let port = self.port;
        self.process.insert(process).wait_until("connection", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The broker's log, with each packet that it receives and sends.
    pub fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.folder.path().join("log"))?)
    }

    /// `SIGSTOP`: it holds its connections and answers nothing.
    pub fn pause(&self) -> Result<()> {
        let process = self.process.as_ref();
        process
            .context("the broker isn't running")?
            .signal(Signal::STOP)
    }

    /// `kill -9`
    pub fn kill(&mut self) -> Result<()> {
        match self.process.take() {
            Some(mut process) => process.kill(),
            None => Ok(()),
        }
    }

    /// Restarts it on the same port. If it is running, it is killed first.
    pub fn restart(&mut self) -> Result<()> {
        self.kill()?;
        self.launch()
    }
}
