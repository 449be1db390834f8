//! One NATS server with JetStream.

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use crate::process::Process;
use crate::server::{Kind, Place, Server};

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

/// A NATS server.
pub type NatsServer = Server<NatsOptions>;

impl Kind for NatsOptions {
    fn launch(&self, place: &Place<'_>) -> Result<Process> {
        let port = place.port;
        let mut text = format!("host: \"127.0.0.1\"\nport: {port}\n");
        if !self.without_jetstream {
            let store = store(place.folder);
            text.push_str(&format!("jetstream {{ store_dir: {store:?} }}\n"));
        }
        let file = place.folder.join("nats.conf");
        std::fs::write(&file, text + &self.config + "\n")?;
        let config = file.display().to_string();
        let mut process =
            Process::start("nats-server", "nats-server", ["-c", &config], &place.log)?;
        process.wait_until("greeting", || greets(port))?;
        Ok(process)
    }
}

fn store(folder: &Path) -> PathBuf {
    folder.join("jetstream")
}

impl NatsServer {
    pub fn start() -> Result<NatsServer> {
        NatsServer::start_with(NatsOptions::default())
    }

    pub fn start_with(options: NatsOptions) -> Result<NatsServer> {
        NatsServer::start_on(options.port, |_| Ok(options.clone()))
    }

    /// `nats://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("nats://{}", self.address())
    }

    /// The folder in which JetStream keeps its streams.
    pub fn store(&self) -> PathBuf {
        store(self.folder())
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

impl NatsServer {
    /// The machine loses power, and with it what came to the disk's cache in this time before: the store is again as it
    /// was then.
    pub fn lose_power(&mut self, unsynced: Duration) -> Result<()> {
        let kept = self.folder().join("kept");
        copy(&self.store(), &kept)?;
        std::thread::sleep(unsynced);
        self.kill()?;
        std::fs::remove_dir_all(self.store())?;
        std::fs::rename(kept, self.store())?;
        self.launch()
    }

    /// The machine loses power, and a byte in the middle of each file of messages is another one afterwards.
    pub fn damage(&mut self) -> Result<()> {
        self.kill()?;
        let mut folders = vec![self.store()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|kind| kind == "blk") {
                    let mut bytes = std::fs::read(&path)?;
                    let middle = bytes.len() / 2;
                    bytes
                        .iter_mut()
                        .skip(middle)
                        .take(1)
                        .for_each(|byte| *byte ^= 0x40);
                    std::fs::write(&path, bytes)?;
                }
            }
        }
        self.launch()
    }
}

/// Copies a folder of a running server, whose files come and go.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let from = entry?.path();
        let to = to.join(from.file_name().unwrap_or_default());
        if from.is_dir() {
            copy(&from, &to)?;
        } else if let Err(error) = std::fs::copy(&from, &to)
            && error.kind() != ErrorKind::NotFound
        {
            return Err(error.into());
        }
    }
    Ok(())
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
