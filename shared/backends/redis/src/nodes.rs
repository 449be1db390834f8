//! Access to each server separately, since the nodes of a cluster may differ.

use std::collections::HashMap;

use redis::Client;

use crate::Redis;
use crate::check::{ask, read_info};
use crate::client::open;
use crate::connect::Link;
use crate::node_list::{at, nodes_in};

impl Link {
    /// All servers in use: the nodes of a cluster, as listed by the first that responds, and the addresses of those
    /// that the cluster considers failed.
    pub async fn nodes(&self) -> (Vec<Client>, Vec<String>) {
        let named = self.servers();
        let Some(tls) = self.cluster_tls() else {
            return (named, Vec::new());
        };
        for client in &named {
            let Ok(mut connection) = self.connect(client).await else {
                continue;
            };
            let Ok(text) = ask::<String>(&mut connection, &["CLUSTER", "NODES"]).await else {
                continue;
            };
            let seed = client.get_connection_info();
            let (mut nodes, mut failed) = (Vec::new(), Vec::new());
            for node in nodes_in(&text) {
                if node.failed {
                    failed.push(format!("{}:{}", node.host, node.port));
                } else if node.host.is_empty() {
                    nodes.push(client.clone());
                } else if let Ok(client) = open(at(seed, node.host, node.port), tls.clone()) {
                    nodes.push(client);
                }
            }
            return (nodes, failed);
        }
        (named, Vec::new())
    }

    async fn memory(&self, client: &Client) -> Option<HashMap<String, String>> {
        let mut connection = self.connect(client).await.ok()?;
        let info: String = ask(&mut connection, &["INFO", "memory"]).await.ok()?;
        Some(read_info(&info))
    }
}

/// The memory that a server needs for its next request. With less, refusals depend on the size of the request and on
/// the memory that the server frees meanwhile.
const ROOM_MIN: u64 = 1024 * 1024;

/// Whether a server refuses requests that need memory, or soon will.
fn is_full(info: &HashMap<String, String>) -> bool {
    let number = |name: &str| info.get(name).and_then(|text| text.parse::<u64>().ok());
    let limit = number("maxmemory").unwrap_or(0);
    let apart = number("mem_not_counted_for_evict").unwrap_or(0);
    let used = number("used_memory").unwrap_or(0).saturating_sub(apart);
    limit > 0 && used + ROOM_MIN.min(limit / 16) > limit
}

impl Redis {
    /// The servers with no memory left, or less than a request may need. They refuse requests that need memory.
    /// Instances can still be ended, and ended ones are removed. Servers that don't respond are left out.
    pub async fn full(&self) -> Vec<String> {
        let link = &self.inner.link;
        let (nodes, _) = link.nodes().await;
        let looks = nodes.iter().map(async |client| {
            let full = link.memory(client).await.is_some_and(|info| is_full(&info));
            full.then(|| client.get_connection_info().addr().to_string())
        });
        let found = futures::future::join_all(looks).await;
        found.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_room_for_a_request_is_full() {
        let full = |used: u64, apart: u64, limit: u64| {
            is_full(&read_info(&format!(
                "used_memory:{used}\r\nmem_not_counted_for_evict:{apart}\r\nmaxmemory:{limit}\r\n"
            )))
        };
        assert!(full(11, 0, 10));
        assert!(!full(11, 1, 10) && !full(10, 0, 10) && !full(10, 0, 0));
        let gigabyte = 1 << 30;
        assert!(full(gigabyte - ROOM_MIN + 1, 0, gigabyte));
        assert!(!full(gigabyte - ROOM_MIN, 0, gigabyte));
        assert!(!full(gigabyte - ROOM_MIN + 1, 1, gigabyte));
    }
}
