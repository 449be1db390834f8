//! Brokers for Kafka's protocol: librdkafka's mock brokers, which `kcat` can run. Debian has no Kafka.
//!
//! They keep messages in memory, and lose them when they end.

use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::process::{Process, command, output};

/// The time for which `kcat` waits for messages, in seconds.
const LIMIT: &str = "30";

/// A private cluster. Dropping it kills it.
#[derive(Debug)]
pub struct KafkaMock {
    // Dropped in this order: the process first, then its folder.
    process: Process,
    brokers: Vec<String>,
    _folder: TempDir,
}

impl KafkaMock {
    /// Starts this many brokers. Each topic has four partitions, which are spread over the brokers.
    pub fn start(brokers: usize) -> Result<KafkaMock> {
        let folder = tempfile::tempdir()?;
        let log = folder.path().join("log");
        // A consumer of a separate topic, which never ends, because the brokers are part of its process.
        let count = format!("test.mock.num.brokers={brokers}");
        let args = ["-X", &count, "-b", "mock", "-C", "-t", "none", "-d", "mock"];
        let mut process = Process::start("kcat", "kcat", args, &log)?;
        let mut found = Vec::new();
        process.wait_until("address", || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            let Some((_, rest)) = text.split_once(" bootstrap.servers=") else {
                return false;
            };
            let Some((line, _)) = rest.split_once('\n') else {
                return false;
            };
            found = line.trim().split(',').map(str::to_owned).collect();
            true
        })?;
        ensure!(found.len() == brokers, "kcat named {found:?}");
        Ok(KafkaMock {
            process,
            brokers: found,
            _folder: folder,
        })
    }

    /// `127.0.0.1:PORT` of the first broker.
    pub fn address(&self) -> &str {
        &self.brokers[0]
    }

    /// `127.0.0.1:PORT` of all brokers.
    pub fn brokers(&self) -> &[String] {
        &self.brokers
    }

    /// Sends messages, one per line as `KEY:VALUE`. A missing topic is created.
    pub fn produce(&self, topic: &str, lines: &str) -> Result<()> {
        let mut child = command("kcat")
            .args(["-b", self.address(), "-P", "-t", topic, "-K:"])
            .args(["-X", "message.timeout.ms=120000"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        let stdin = child.stdin.as_mut().context("it has an input")?;
        stdin.write_all(lines.as_bytes())?;
        let status = child.wait()?;
        ensure!(status.success(), "kcat -P: {status}");
        Ok(())
    }

    /// The first messages of a topic as `PARTITION KEY HEADERS VALUE`, one per line.
    pub fn consume(&self, topic: &str, count: usize) -> Result<String> {
        let count = count.to_string();
        let args = [
            LIMIT,
            "kcat",
            "-b",
            self.address(),
            "-C",
            "-q",
            "-t",
            topic,
            "-o",
            "beginning",
            "-c",
            &count,
            "-f",
            "%p %k %h %s\n",
        ];
        output("timeout", "coreutils", &args)
    }

    /// Whether a broker leads a partition of a topic. Leaders are chosen at random.
    pub fn leads(&self, broker: &str, topic: &str) -> Result<bool> {
        let args = [LIMIT, "kcat", "-b", self.address(), "-L", "-t", topic];
        let listing = output("timeout", "coreutils", &args)?;
        let suffix = format!(" at {broker}");
        let id = listing.lines().find_map(|line| {
            let line = line.trim().trim_end_matches(" (controller)");
            line.strip_prefix("broker ")?.strip_suffix(&suffix)
        });
        let id = id.with_context(|| format!("no broker at {broker}: {listing}"))?;
        Ok(listing.contains(&format!(", leader {id},")))
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}
