//! Watches the connections, so that one that stays silent is noticed although no command waits for it, and so that a
//! process that cannot recover is known.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, RedisResult};
use tokio::time::{Instant, sleep, timeout};

use crate::Redis;
use crate::connect::{Link, error};
use crate::line::Line;

/// How often the connections are looked at.
const EVERY: Duration = Duration::from_secs(1);
/// A server that is silent for this long may have been replaced.
const SILENT: Duration = Duration::from_secs(3);
/// Connections that are silent for this long, while new ones to the same server work, are beyond recovery.
const STUCK: Duration = Duration::from_secs(30);
/// How often that is examined.
const EXAMINED: Duration = Duration::from_secs(5);

impl Link {
    /// Watches the connections. Never returns.
    pub async fn watch(self: Arc<Link>, namespace: String) {
        let mut examined = Instant::now();
        loop {
            sleep(EVERY).await;
            let probes = self.probes(&namespace);
            let probed = probes.iter().map(|(line, probe)| line.probe(probe));
            futures::future::join_all(probed).await;
            if probes.iter().any(|(line, _)| line.silence() > SILENT) {
                self.look_again().await;
            }
            let renewals: u64 = probes.iter().map(|(line, _)| line.renewals()).sum();
            if examined.elapsed() > EXAMINED {
                self.watched.note(self.stuck(&probes).await);
                examined = Instant::now();
            }
            self.watched.looked(renewals);
        }
    }

    async fn stuck(&self, probes: &[(Arc<Line>, Cmd)]) -> Option<String> {
        for (line, probe) in probes {
            if line.silence() < STUCK {
                continue;
            }
            let fresh = async {
                let mut connection = self.connect(line.client()).await?;
                probe.query_async::<()>(&mut connection).await
            };
            if matches!(timeout(SILENT, fresh).await, Ok(Ok(()))) && line.silence() >= STUCK {
                let reason = "Redis answers on new connections, but not on those of this process";
                return Some(reason.to_owned());
            }
        }
        None
    }

    /// Writes to each server, so that one that only reads is noticed. Changes nothing.
    async fn write(&self, namespace: &str) -> RedisResult<()> {
        let probes = self.probes(namespace);
        let written = probes.iter().map(async |(line, probe)| {
            let written = line.send(probe).await;
            written.map(|_| ())
        });
        let written = futures::future::join_all(written).await;
        if written.iter().any(Result::is_err) {
            self.look_again().await;
        }
        written.into_iter().collect()
    }
}

impl Redis {
    /// Checks with a write whether all servers accept changes. It needs no memory.
    ///
    /// # Errors
    /// A server doesn't answer, or refuses.
    pub async fn accepts_writes(&self) -> swirl_ports::Result<()> {
        let written = self.inner.link.write(self.keys().namespace()).await;
        written.map_err(error)
    }

    /// Hosts and ports of all servers that are configured or were found: a Sentinel's master, nodes of a cluster.
    pub fn places(&self) -> Vec<(String, u16)> {
        self.inner.link.places()
    }

    /// The reason why this process cannot use Redis any more although others can; it has to be restarted.
    pub fn beyond_recovery(&self) -> Option<String> {
        let watched = &self.inner.link.watched;
        watched.beyond_recovery(watched.elapsed())
    }
}
