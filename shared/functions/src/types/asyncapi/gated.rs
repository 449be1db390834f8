//! A checked path to the network, for clients that choose their servers themselves.
//!
//! Kafka brokers name each other, so a broker could send a client to any address. Therefore the client connects through
//! our own SOCKS5 proxy (RFC 1928), which runs in this process on the loopback interface and connects only to permitted
//! addresses.
//!
//! A client over TLS, which would resolve the server's name itself, connects to a relay of the same kind without TLS. It
//! leads to a single server, whose certificate it checks by the name. The client of a subscription connects to such a
//! relay too, which reads at the subscription's [pace](super::pace).

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsConnector;

use super::pace::{Pace, Paced};
use crate::egress::Gate;
use crate::http::tls;
use crate::socket;

/// The maximum number of connections of one client. Kafka's client has one to each broker.
const CONNECTIONS_MAX: usize = 256;

/// The limit for connecting to the other side.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

const VERSION: u8 = 5;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
const NOT_ALLOWED: u8 = 2;
const UNREACHABLE: u8 = 4;

/// The address to which a client connects without TLS, and the relay behind it if the server has TLS or there is a pace.
/// The client would resolve the server's name again, which may lead elsewhere by then.
pub(super) async fn way_to(
    gate: &Gate,
    host: &str,
    port: u16,
    tls_start: Option<TlsStart>,
    pace: Option<&Arc<Pace>>,
) -> Result<(SocketAddr, Option<Gated>), String> {
    if tls_start.is_none() && pace.is_none() {
        return Ok((checked(gate, host, port).await?, None));
    }
    let security = match tls_start {
        Some(start) => Some((Arc::new(tls().map_err(|error| error.to_string())?), start)),
        None => None,
    };
    // Only URLs have brackets around `[::1]`.
    let host = host.trim_matches(['[', ']']).to_owned();
    let relay = Gated::relay(gate.clone(), (host, port), security, pace.cloned());
    let relay = relay.await.map_err(|error| error.to_string())?;
    Ok((relay.address(), Some(relay)))
}

/// Permits nothing on this machine at a port.
#[cfg(test)]
pub(super) fn refusing(port: u16) -> Gate {
    use crate::egress::Egress;
    Gate::new(Egress::default().without([("127.0.0.1".to_owned(), port)]))
}

/// A permitted address of a server that accepts connections.
async fn checked(gate: &Gate, host: &str, port: u16) -> Result<SocketAddr, String> {
    let addresses = gate.addresses(host, port).await;
    let addresses = addresses.map_err(|refused| refused.to_string())?;
    match addresses[..] {
        [] => Err(format!("the name `{host}` has no address")),
        [address] => Ok(address),
        _ => {
            let tried = TcpStream::connect(&addresses[..]);
            let tried = tokio::time::timeout(CONNECT_TIMEOUT, tried).await;
            let found = tried.map_err(|_| "no connection in time".to_owned())?;
            let found = found.and_then(|stream| stream.peer_addr());
            found.map_err(|error| error.to_string())
        }
    }
}

/// Dropping it closes its connections.
pub(super) struct Gated {
    address: SocketAddr,
    failure: Arc<Mutex<Option<String>>>,
    task: AbortHandle,
}

/// The longest greeting of a server of NATS, in bytes.
const INFO_BYTES_MAX: usize = 64 << 10;

/// When TLS begins on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TlsStart {
    AtOnce,
    /// After the server's first line, as in the protocol of NATS.
    AfterInfo,
}

/// The target of incoming connections.
enum Way {
    /// The target that the client asks for by SOCKS5.
    Asked,
    Server {
        host: String,
        port: u16,
        security: Option<Security>,
        pace: Option<Arc<Pace>>,
    },
}

type Security = (Arc<ClientConfig>, TlsStart);

impl Gated {
    /// Opens a proxy.
    pub(super) async fn open(gate: Gate) -> io::Result<Gated> {
        Gated::to(gate, Way::Asked).await
    }

    /// Opens a relay to a server.
    async fn relay(
        gate: Gate,
        (host, port): (String, u16),
        security: Option<Security>,
        pace: Option<Arc<Pace>>,
    ) -> io::Result<Gated> {
        let way = Way::Server {
            host,
            port,
            security,
            pace,
        };
        Gated::to(gate, way).await
    }

    async fn to(gate: Gate, way: Way) -> io::Result<Gated> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let way = Arc::new(way);
        let failure: Arc<Mutex<Option<String>>> = Arc::default();
        let note = Arc::clone(&failure);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                while connections.len() >= CONNECTIONS_MAX {
                    connections.join_next().await;
                }
                while connections.try_join_next().is_some() {}
                match listener.accept().await {
                    Ok((stream, _)) => {
                        connections.spawn(serve(
                            stream,
                            gate.clone(),
                            Arc::clone(&way),
                            Arc::clone(&note),
                        ));
                    }
                    // For example, too many open files.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
        });
        Ok(Gated {
            address,
            failure,
            task: task.abort_handle(),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The reason why the last refused or failed connection could not be made.
    pub(super) fn failed(&self) -> Option<String> {
        let failure = self.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Gated {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl std::fmt::Debug for Gated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gated at {}", self.address)
    }
}

async fn serve(
    mut stream: TcpStream,
    gate: Gate,
    way: Arc<Way>,
    failure: Arc<Mutex<Option<String>>>,
) {
    let begun = async {
        match &*way {
            Way::Asked => {
                let other = begin(&mut stream, &gate, &failure).await?;
                Ok(Box::new(other) as Box<dyn Stream>)
            }
            Way::Server {
                host,
                port,
                security,
                pace,
            } => {
                let other = connected(&mut stream, &gate, (host, *port), security.as_ref()).await;
                let stream = other.inspect_err(|error| note_failure(&failure, error))?;
                Ok(match pace.clone() {
                    Some(pace) => Box::new(Paced { stream, pace }),
                    None => stream,
                })
            }
        }
    };
    let begun: Result<io::Result<Box<dyn Stream>>, _> =
        tokio::time::timeout(CONNECT_TIMEOUT, begun).await;
    if let Ok(Ok(mut other)) = begun {
        // Either side may close it in any way.
        let _ = copy_bidirectional(&mut stream, &mut other).await;
    }
}

fn note_failure(failure: &Mutex<Option<String>>, reason: &dyn std::fmt::Display) {
    let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
    *failure = Some(reason.to_string());
}

async fn connected(
    client: &mut TcpStream,
    gate: &Gate,
    (host, port): (&str, u16),
    security: Option<&Security>,
) -> io::Result<Box<dyn Stream>> {
    let addresses = gate.addresses(host, port).await.map_err(io::Error::other)?;
    if addresses.is_empty() {
        let reason = format!("the name `{host}` has no address");
        return Err(io::Error::other(reason));
    }
    let mut stream = TcpStream::connect(&addresses[..]).await?;
    socket::watch_over(&stream)?;
    let Some((tls, start)) = security else {
        return Ok(Box::new(stream));
    };
    let info = match start {
        TlsStart::AtOnce => None,
        TlsStart::AfterInfo => Some(read_info(&mut stream).await?),
    };
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let connector = TlsConnector::from(Arc::clone(tls));
    let secured = connector.connect(name, stream).await?;
    if let Some(info) = info {
        client.write_all(info.as_bytes()).await?;
    }
    Ok(Box::new(secured))
}

/// Reads the first line of a server of NATS, and returns it for a client without TLS.
async fn read_info(stream: &mut TcpStream) -> io::Result<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        if line.len() == INFO_BYTES_MAX {
            return Err(io::Error::other("the server's first line is too long"));
        }
        line.push(stream.read_u8().await?);
    }
    let info = line.strip_prefix(b"INFO ".as_slice());
    let info = info.and_then(|text| serde_json::from_slice(text).ok());
    let Some(serde_json::Value::Object(mut info)) = info else {
        return Err(io::Error::other("the server doesn't answer as NATS does"));
    };
    let has_tls = ["tls_required", "tls_available"].map(|name| info.remove(name));
    if !has_tls.contains(&Some(serde_json::Value::Bool(true))) {
        return Err(io::Error::other("the server has no TLS"));
    }
    info.remove("tls_verify");
    let info = serde_json::Value::Object(info);
    Ok(format!("INFO {info}\r\n"))
}

/// Reads the target address that the client asks for, and connects to it.
async fn begin(
    stream: &mut TcpStream,
    gate: &Gate,
    failure: &Mutex<Option<String>>,
) -> io::Result<TcpStream> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidData);
    let [version, methods] = stream.read_u16().await?.to_be_bytes();
    if version != VERSION {
        return Err(wrong());
    }
    stream.read_exact(&mut vec![0; methods.into()]).await?;
    // No authentication is required.
    stream.write_all(&[VERSION, 0]).await?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let host = match head {
        [VERSION, CONNECT, _, IPV4] => {
            std::net::Ipv4Addr::from(stream.read_u32().await?).to_string()
        }
        [VERSION, CONNECT, _, IPV6] => {
            std::net::Ipv6Addr::from(stream.read_u128().await?).to_string()
        }
        [VERSION, CONNECT, _, NAME] => {
            let mut name = vec![0; stream.read_u8().await?.into()];
            stream.read_exact(&mut name).await?;
            String::from_utf8(name).map_err(|_| wrong())?
        }
        _ => return Err(wrong()),
    };
    let port = stream.read_u16().await?;
    let (reply, other) = match gate.addresses(&host, port).await {
        Err(refused) => {
            note_failure(failure, &refused);
            (NOT_ALLOWED, None)
        }
        Ok(addresses) => match TcpStream::connect(&addresses[..]).await {
            Ok(other) => (0, Some(other)),
            Err(_) => (UNREACHABLE, None),
        },
    };
    stream
        .write_all(&[VERSION, reply, 0, IPV4, 0, 0, 0, 0, 0, 0])
        .await?;
    let other = other.ok_or(io::ErrorKind::ConnectionRefused)?;
    socket::watch_over(&other)?;
    stream.set_nodelay(true)?;
    Ok(other)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::pki_types::PrivateKeyDer;
    use rustls::{ClientConfig, RootCertStore, ServerConfig};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_rustls::TlsAcceptor;

    use super::{Gated, TlsStart, checked, read_info, refusing};
    use crate::egress::{Egress, Gate};

    /// A TLS server that answers each byte with the byte increased by one. Returns how a client can trust it.
    async fn server() -> (u16, Arc<ClientConfig>) {
        let provider = || Arc::new(rustls::crypto::ring::default_provider());
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key);
        let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(stream).await?;
                    let said = stream.read_u8().await?;
                    stream.write_u8(said + 1).await?;
                    stream.shutdown().await
                });
            }
        });
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        (port, Arc::new(config))
    }

    async fn say(gated: &Gated) -> std::io::Result<u8> {
        let mut stream = TcpStream::connect(gated.address()).await?;
        stream.write_u8(1).await?;
        stream.read_u8().await
    }

    #[tokio::test]
    async fn a_client_gets_the_address_that_was_checked() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let gate = Gate::new(Egress::default());
        // The name may have an address of IPv6 too, at which nobody listens.
        let found = checked(&gate, "localhost", port).await.unwrap();
        assert_eq!(found, listener.local_addr().unwrap());
        let refused = checked(&refusing(port), "localhost", port).await;
        let refused = refused.unwrap_err();
        assert!(
            refused.contains("a server of this installation"),
            "{refused}"
        );
        let unknown = checked(&gate, "no-such-name.invalid", port).await;
        assert!(unknown.unwrap_err().contains("no-such-name.invalid"));
    }

    #[tokio::test]
    async fn a_server_of_nats_greets_before_tls_begins() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let read = async |greeting: String| {
            let mut client = TcpStream::connect(address).await.unwrap();
            let (mut server, _) = listener.accept().await.unwrap();
            let greet = async {
                // The reader may have left.
                let _ = server.write_all(greeting.as_bytes()).await;
                drop(server);
            };
            let (read, ()) = tokio::join!(read_info(&mut client), greet);
            read.map_err(|error| error.to_string())
        };
        let greeting = "INFO {\"max_payload\":5,\"tls_required\":true,\"tls_verify\":true}\r\n";
        let read_back = read(greeting.to_owned()).await;
        assert_eq!(read_back, Ok("INFO {\"max_payload\":5}\r\n".to_owned()));
        for (wrong, reason) in [
            ("INFO {\"tls_required\":false}\r\n", "has no TLS"),
            ("INFO {}\n", "has no TLS"),
            ("+OK\r\n", "as NATS does"),
            ("INFO []\n", "as NATS does"),
            ("INFO {", "end of file"),
            (&"x".repeat(100_000), "too long"),
        ] {
            let refused = read(wrong.to_owned()).await.unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[tokio::test]
    async fn a_relay_connects_over_tls_to_one_permitted_server() {
        let (port, tls) = server().await;
        let relay = async |own: u16, host: &str| {
            let gate = Gate::new(Egress::default().without([("127.0.0.1".to_owned(), own)]));
            let server = (host.to_owned(), port);
            let relay = Gated::relay(gate, server, Some((tls.clone(), TlsStart::AtOnce)), None);
            relay.await.unwrap()
        };
        let open = relay(1, "localhost").await;
        assert_eq!(say(&open).await.unwrap(), 2);
        assert_eq!(open.failed(), None);
        // A name that isn't in its certificate, and a server of the installation.
        for (own, host, reason) in [
            (1, "127.0.0.1", "not valid for name"),
            (port, "localhost", "a server of this installation"),
        ] {
            let closed = relay(own, host).await;
            assert!(say(&closed).await.is_err());
            let failure = closed.failed().unwrap();
            assert!(failure.contains(reason), "{failure}");
        }
    }
}
