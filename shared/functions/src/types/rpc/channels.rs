//! Connections, one per server. HTTP/2 carries many concurrent calls.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tower::service_fn;

use super::Server;
use crate::egress::Gate;
use crate::{CallError, CallErrorKind, socket};

/// The maximum number of kept connections. Beyond it, the least recently used one is dropped; a call that is under way
/// on it continues.
const CHANNELS_MAX: usize = 256;

#[derive(Debug)]
pub(super) struct Channels {
    connect_timeout: Duration,
    gate: Gate,
    kept: Mutex<HashMap<Server, Kept>>,
}

#[derive(Debug)]
struct Kept {
    channel: Channel,
    used_at: Instant,
}

/// A connection to a server.
pub(super) struct Got {
    pub(super) channel: Channel,
    /// An earlier call has used it, so the server may have closed it meanwhile.
    pub(super) is_kept: bool,
}

/// Dropped without an answer, it has the connection forgotten, which may be silent. Other calls on it continue.
pub(super) struct Awaited<'a> {
    channels: &'a Channels,
    server: &'a Server,
    pub(super) is_answered: bool,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.channels.forget(self.server);
        }
    }
}

impl Channels {
    pub(super) fn new(connect_timeout: Duration, gate: Gate) -> Channels {
        Channels {
            connect_timeout,
            gate,
            kept: Mutex::default(),
        }
    }

    /// The connection to a server. The first call makes it, and it is made again after it broke.
    pub(super) fn get(&self, server: &Server) -> Result<Got, CallError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(kept) = kept.get_mut(server) {
            kept.used_at = now;
            return Ok(Got {
                channel: kept.channel.clone(),
                is_kept: true,
            });
        }
        if kept.len() >= CHANNELS_MAX {
            let oldest = kept.iter().min_by_key(|(_, kept)| kept.used_at);
            if let Some(oldest) = oldest.map(|(server, _)| server.clone()) {
                kept.remove(&oldest);
            }
        }
        let channel = self.channel(server).map_err(|error| {
            let message = format!("no connection to {server} can be made: {error}");
            CallError::new(CallErrorKind::Connection, message)
        })?;
        let entry = Kept {
            channel: channel.clone(),
            used_at: now,
        };
        kept.insert(server.clone(), entry);
        Ok(Got {
            channel,
            is_kept: false,
        })
    }

    /// The answer of a server to a call that begins now.
    pub(super) fn awaited<'a>(&'a self, server: &'a Server) -> Awaited<'a> {
        Awaited {
            channels: self,
            server,
            is_answered: false,
        }
    }

    /// The next call makes a new connection.
    pub(super) fn forget(&self, server: &Server) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.remove(server);
    }

    fn channel(&self, server: &Server) -> Result<Channel, tonic::transport::Error> {
        let mut endpoint = Endpoint::from_shared(server.http_uri())?
            .user_agent(concat!("swirl/", env!("CARGO_PKG_VERSION")))?
            .connect_timeout(self.connect_timeout);
        if server.uses_tls() {
            let tls = ClientTlsConfig::new()
                .with_native_roots()
                .timeout(self.connect_timeout);
            endpoint = endpoint.tls_config(tls)?;
        }
        let (gate, limit) = (self.gate.clone(), self.connect_timeout);
        // Connects to an address that was checked.
        Ok(
            endpoint.connect_with_connector_lazy(service_fn(move |uri: Uri| {
                let gate = gate.clone();
                async move {
                    let connected = tokio::time::timeout(limit, connect(&gate, &uri)).await;
                    connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
                }
            })),
        )
    }
}

async fn connect(gate: &Gate, uri: &Uri) -> io::Result<TokioIo<TcpStream>> {
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(443);
    let addresses = gate.addresses(host, port).await.map_err(io::Error::other)?;
    if addresses.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the name isn't known",
        ));
    }
    let stream = TcpStream::connect(&*addresses).await?;
    socket::watch_over(&stream)?;
    Ok(TokioIo::new(stream))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::Egress;

    #[tokio::test]
    async fn connections_are_bounded() {
        let channels = Channels::new(Duration::from_secs(1), Gate::new(Egress::default()));
        for port in 1..=CHANNELS_MAX + 10 {
            let server = format!("grpc://127.0.0.1:{port}").parse().unwrap();
            channels.get(&server).unwrap();
        }
        let kept = channels.kept.lock().unwrap();
        assert_eq!(kept.len(), CHANNELS_MAX);
        assert!(!kept.contains_key(&"grpc://127.0.0.1:1".parse().unwrap()));
    }
}
