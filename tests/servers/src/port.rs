//! Free ports.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

/// A port that nobody has at this moment. Somebody may take it before it is used, so who starts a
/// server on it tries again with another.
pub fn free_port() -> Result<u16> {
    Ok(free_ports(1)?[0])
}

/// Several, all different.
pub fn free_ports(count: usize) -> Result<Vec<u16>> {
    // All are held until all are found.
    let listeners = (0..count)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<std::io::Result<Vec<_>>>()
        .context("there is no free port")?;
    let ports = listeners.iter().map(|found| Ok(found.local_addr()?.port()));
    ports.collect()
}
