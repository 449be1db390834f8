//! `swirl dev` on a free port.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Dropping it ends the process.
pub struct Dev {
    pub url: String,
    child: Child,
}

impl Dev {
    /// Returns when it has said where its API is.
    pub fn start(swirl: &Path, folder: &Path) -> Result<Dev> {
        let mut child = Command::new(swirl)
            .args([
                "dev",
                "--memory",
                "--listen",
                "127.0.0.1:0",
                "--color",
                "never",
            ])
            .arg(folder)
            .env_remove("SWIRL_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("'swirl dev' cannot be run")?;
        let log = child.stderr.take().context("no log")?;
        let mut dev = Dev {
            url: String::new(),
            child,
        };
        let mut lines = BufReader::new(log).lines().map_while(Result::ok);
        let mut said = Vec::new();
        for line in lines.by_ref() {
            if let Some((_, url)) = line.split_once("the API is at ") {
                url.trim_end_matches("/api/v1/openapi.json")
                    .clone_into(&mut dev.url);
                // Otherwise it waits once the pipe is full.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(dev);
            }
            said.push(line);
        }
        bail!("'swirl dev' did not start:\n{}", said.join("\n"))
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
