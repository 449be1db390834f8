//! The time limit for a command that waits: `--timeout`.

use std::time::{Duration, Instant};

use anyhow::bail;

use swirl_config::parse_duration;

use crate::terminal::Terminal;

/// The time for which a server may be unreachable during a wait without a limit.
const AWAY_MAX: Duration = Duration::from_secs(300);

#[derive(Debug, clap::Args)]
pub struct Timeout {
    /// Stop waiting after this time, such as 30s or 5m; exit code 3.
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    timeout: Option<Duration>,
}

/// The exit code when the wait timed out.
pub const TIMED_OUT: u8 = 3;

/// The time limit of one command's wait.
pub struct Patience {
    since: Instant,
    max: Option<Duration>,
    /// When the server last answered.
    answered: Instant,
    is_away: bool,
}

impl Timeout {
    pub fn begin(&self) -> Patience {
        Patience {
            since: Instant::now(),
            max: self.timeout,
            answered: Instant::now(),
            is_away: false,
        }
    }
}

impl Patience {
    /// The time left.
    pub fn left(&self) -> Option<Duration> {
        self.max.map(|max| max.saturating_sub(self.since.elapsed()))
    }

    pub fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// Pauses, but not beyond the limit.
    pub async fn pause(&self, pause: Duration) {
        let left = self.left().unwrap_or(pause);
        tokio::time::sleep(pause.min(left)).await;
    }

    pub fn answered(&mut self) {
        self.answered = Instant::now();
        self.is_away = false;
    }

    /// Tells the user the first time.
    ///
    /// # Errors
    /// The server has been unreachable for too long.
    pub fn failed(&mut self, error: anyhow::Error, terminal: &Terminal) -> anyhow::Result<()> {
        if self.answered.elapsed() >= AWAY_MAX {
            bail!(error.context("the server has been unreachable for too long"));
        }
        if !std::mem::replace(&mut self.is_away, true) {
            terminal.message("the connection is lost: trying again");
        }
        Ok(())
    }
}
