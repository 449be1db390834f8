//! Free ports.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

/// This many ports below those that the system uses for outgoing connections are for servers.
const SPAN: u16 = 12_000;
/// The default beginning of the range for outgoing connections.
const OUTGOING: u16 = 32_768;
/// The number of attempts for each port.
const TRIES: usize = 500;

/// A port that is free at this moment. Another process may take it before it is used, so code that starts a server on
/// it retries with another port. Outgoing connections don't take it, because they use other ports.
pub fn free_port() -> Result<u16> {
    Ok(free_ports(1)?[0])
}

/// Several different free ports.
pub fn free_ports(count: usize) -> Result<Vec<u16>> {
    // All are held until enough are found.
    let listeners = (0..count).map(|_| listen()).collect::<Result<Vec<_>>>()?;
    let ports = listeners.iter().map(|found| Ok(found.local_addr()?.port()));
    ports.collect()
}

fn listen() -> Result<TcpListener> {
    /// Each process begins at a different port, and takes none twice as long as there are others.
    static NEXT: OnceLock<AtomicU32> = OnceLock::new();
    let next = NEXT.get_or_init(|| AtomicU32::new(std::process::id().wrapping_mul(509)));
    let first = outgoing().saturating_sub(SPAN).max(1_024);
    let span = u32::from(outgoing().saturating_sub(first).max(1));
    let mut ports = (0..TRIES).map(|_| {
        let offset = next.fetch_add(1, Ordering::Relaxed) % span;
        first + u16::try_from(offset).unwrap_or(0)
    });
    let found = ports.find_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok());
    found
        .or_else(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok())
        .context("there is no free port")
}

/// The first port that the system uses for outgoing connections.
fn outgoing() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let first = range
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok());
    first.unwrap_or(OUTGOING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_different() {
        let mut ports = free_ports(50).unwrap();
        for port in &ports {
            assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
        }
        let taken = listen().unwrap();
        ports.push(taken.local_addr().unwrap().port());
        ports.extend(free_ports(50).unwrap());
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 101);
        assert!(ports.iter().all(|port| *port < outgoing()));
    }
}
