//! The nodes of a cluster, as one of them lists them.

use std::ops::RangeInclusive;

use redis::{ConnectionAddr, ConnectionInfo};

/// A node in another node's list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Empty for the node that sends the list.
    pub host: String,
    pub port: u16,
    pub failed: bool,
    pub is_master: bool,
    /// The epoch of its configuration. Of two masters that claim a slot, the one with the higher epoch serves it.
    pub epoch: u64,
    pub slots: Vec<RangeInclusive<u16>>,
}

/// The answer to `CLUSTER NODES`.
pub(crate) fn nodes_in(text: &str) -> Vec<Node> {
    text.lines().filter_map(node).collect()
}

/// Parses a line of `CLUSTER NODES`: id, `ip:port@bus,hostname`, flags, master, ping, pong, epoch, link state, slots.
fn node(line: &str) -> Option<Node> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (place, flags) = (words.get(1)?, words.get(2)?);
    let is = |wanted: &str| flags.split(',').any(|flag| flag == wanted);
    if is("noaddr") || is("handshake") {
        return None;
    }
    let mut parts = place.split(',');
    let (address, name) = (parts.next()?, parts.next().unwrap_or_default());
    let address = address.split('@').next()?;
    let (ip, port) = address.rsplit_once(':')?;
    let host = if name.is_empty() { ip } else { name };
    // `[slot->-node]` is a slot that is being moved; its owner lists it among the others too.
    let slots = words.iter().skip(8).filter(|word| !word.starts_with('['));
    let slots = slots.filter_map(|word| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    Some(Node {
        host: host.to_owned(),
        port: port.parse().ok()?,
        failed: is("fail"),
        is_master: is("master"),
        epoch: words
            .get(6)
            .and_then(|epoch| epoch.parse().ok())
            .unwrap_or(0),
        slots: slots.collect(),
    })
}

/// The address of another node, which is reached as `seed` is.
pub(crate) fn at(seed: &ConnectionInfo, host: String, port: u16) -> ConnectionInfo {
    let address = match seed.addr().clone() {
        ConnectionAddr::TcpTls {
            insecure,
            tls_params,
            ..
        } => ConnectionAddr::TcpTls {
            host,
            port,
            insecure,
            tls_params,
        },
        _ => ConnectionAddr::Tcp(host, port),
    };
    seed.clone().set_addr(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_read() {
        let line = |place: &str, flags: &str| {
            node(&format!(
                "07c3 {place} {flags} - 0 1426238317239 4 connected 0-5460 7 [8->-e7d1]"
            ))
        };
        let found = |host: &str, port, failed, is_master| {
            Some(Node {
                host: host.to_owned(),
                port,
                failed,
                is_master,
                epoch: 4,
                slots: vec![0..=5460, 7..=7],
            })
        };
        assert_eq!(
            line("10.0.0.1:6379@16379", "master"),
            found("10.0.0.1", 6379, false, true)
        );
        assert_eq!(
            line("10.0.0.1:6379@16379,redis-1", "slave"),
            found("redis-1", 6379, false, false)
        );
        assert_eq!(
            line(":6379@16379,", "myself,master"),
            found("", 6379, false, true)
        );
        assert_eq!(
            line("::1:7000@17000", "master,fail"),
            found("::1", 7000, true, true)
        );
        assert_eq!(
            line("10.0.0.1:6379@16379", "master,fail?"),
            found("10.0.0.1", 6379, false, true)
        );
        assert_eq!(line(":0@0", "master,noaddr"), None);
        assert_eq!(node("nothing"), None);
    }
}
