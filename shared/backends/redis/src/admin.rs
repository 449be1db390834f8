//! Operations of processes and tests that concern the servers themselves.

use redis::Cmd;
use swirl_model::time::Timestamp;
use swirl_ports::{Error, Result};

use crate::Redis;

impl Redis {
    /// The name of this process, under which it takes leases.
    pub fn process_id(&self) -> &str {
        self.process()
    }

    /// The time of the server's clock. In a cluster it is that of any node, since operators keep them in sync.
    pub async fn now(&self) -> Result<Timestamp> {
        let mut cmd = Cmd::new();
        cmd.arg("TIME");
        let (seconds, micros): (i64, i64) = self.query(cmd).await?;
        Ok(Timestamp(seconds * 1000 + micros / 1000))
    }

    /// The earliest timer of all shards, also of those that other processes are responsible for.
    ///
    /// # Errors
    /// Redis doesn't answer.
    pub async fn next_timer_of_all(&self) -> Result<Option<Timestamp>> {
        self.next_timer_of((0..self.keys().shards()).collect())
            .await
    }

    pub(crate) async fn next_timer_of(&self, shards: Vec<u16>) -> Result<Option<Timestamp>> {
        let firsts = shards.into_iter().map(|shard| {
            let mut read = Cmd::new();
            read.arg("ZRANGE").arg(self.keys().index(shard, "timers"));
            read.arg(0).arg(0).arg("WITHSCORES");
            read
        });
        let firsts: Vec<Vec<(String, f64)>> = self.read_all(&firsts.collect::<Vec<_>>()).await?;
        let firsts = firsts.into_iter().flatten();
        Ok(firsts.map(|(_, due)| Timestamp(due as i64)).min())
    }

    /// Removes all keys of this namespace, for tests. Scans all keys of the server.
    ///
    /// # Errors
    /// The server fails, or is a cluster.
    pub async fn remove_namespace(&self) -> Result<()> {
        if self.options().topology == crate::Topology::Cluster {
            let what = "removing a namespace works on a single server only".to_owned();
            return Err(Error::Unavailable(what));
        }
        let namespace = self.keys().namespace();
        for pattern in [format!("{{{namespace}:*"), format!("{namespace}:*")] {
            let mut cursor: u64 = 0;
            loop {
                let mut scan = Cmd::new();
                scan.arg("SCAN").arg(cursor);
                scan.arg("MATCH").arg(&pattern).arg("COUNT").arg(1000);
                let (next, keys): (u64, Vec<Vec<u8>>) = self.query(scan).await?;
                if !keys.is_empty() {
                    let mut unlink = Cmd::new();
                    unlink.arg("UNLINK").arg(keys);
                    self.query::<i64>(unlink).await?;
                }
                if next == 0 {
                    break;
                }
                cursor = next;
            }
        }
        Ok(())
    }
}
