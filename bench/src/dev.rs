//! `swirl dev` as a separate process, with the store in the folder of its definitions.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use swirl_servers::free_port;

use crate::cluster::http::Connection;

const READY_MAX: Duration = Duration::from_secs(120);

pub struct Dev {
    pub process: Child,
    pub address: SocketAddr,
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Dev {
    /// Also returns the time until it was ready.
    pub async fn start(binary: &Path, folder: &Path) -> Result<(Dev, Duration)> {
        let address: SocketAddr = ([127, 0, 0, 1], free_port()?).into();
        let begun = Instant::now();
        let process = Command::new(binary)
            .args(["dev", "--listen", &address.to_string()])
            .arg(folder)
            .env("SWIRL_LOG", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{} cannot start", binary.display()))?;
        let dev = Dev { process, address };
        loop {
            if let Ok(mut connection) = Connection::open(address).await
                && let Ok((200, _)) = connection.request("GET", "/readyz", &[], b"").await
            {
                return Ok((dev, begun.elapsed()));
            }
            ensure!(begun.elapsed() < READY_MAX, "swirl dev isn't ready");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
