//! The protocols over TLS: servers without TLS behind relays that add it.

use std::process::Stdio;
use std::sync::Arc;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::json;
use swirl_model::{Data, data};
use swirl_servers::{KafkaMock, MosquittoServer, NatsServer, RedisServer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_tungstenite::tungstenite::Message;

use crate::services::asyncapi::code;
use crate::services::listen::{document, function, heard};

const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rpc/tls-cert.pem");
/// The URLs of the servers, for the process that trusts the certificate.
const SERVERS: &str = "TEST_SERVICES_TLS_SERVERS";

fn acceptor() -> TlsAcceptor {
    let own = CertificateDer::from_pem_file(CERTIFICATE).unwrap();
    let key = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rpc/tls-key.pem");
    let key = PrivateKeyDer::from_pem_file(key).unwrap();
    let provider = tokio_rustls::rustls::crypto::ring::default_provider();
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own], key);
    TlsAcceptor::from(Arc::new(config.unwrap()))
}

/// Forwards everything received over TLS to a server without TLS. If the server names its own port, as Kafka's brokers
/// do, it is replaced by the relay's port.
async fn relay(to: u16) -> u16 {
    relay_from(to, false).await
}

/// With `greets`, TLS begins after the server's first line, as in the protocol of NATS.
async fn relay_from(to: u16, greets: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = acceptor();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut inner = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                let mut stream = stream;
                if greets {
                    let mut line = Vec::new();
                    while !line.ends_with(b"\n") {
                        line.push(inner.read_u8().await.unwrap());
                    }
                    let line = String::from_utf8(line).unwrap();
                    let line = line.replacen('{', "{\"tls_required\":true,", 1);
                    stream.write_all(line.as_bytes()).await.unwrap();
                }
                let Ok(outer) = acceptor.accept(stream).await else {
                    return;
                };
                let (outer_in, outer_out) = tokio::io::split(outer);
                let (inner_in, inner_out) = inner.into_split();
                let said =
                    |port: u16| [b"127.0.0.1".as_slice(), &u32::from(port).to_be_bytes()].concat();
                tokio::select! {
                    () = copied(outer_in, inner_out, None) => {}
                    () = copied(inner_in, outer_out, Some((said(to), said(port)))) => {}
                }
            });
        }
    });
    port
}

/// Copies one side's data until its end.
async fn copied(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    instead: Option<(Vec<u8>, Vec<u8>)>,
) {
    let mut part = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut part).await {
        let said = &mut part[..count];
        if let Some((old, new)) = &instead
            && let Some(at) = said.windows(old.len()).position(|found| found == old)
        {
            said[at..at + new.len()].copy_from_slice(new);
        }
        if to.write_all(said).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
    // TLS treats an end without a closing message as an attack.
    let _ = to.shutdown().await;
}

/// Sends a light measurement to each client, and receives its messages.
async fn websocket() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
                let _ = socket.send(Message::text("{\"lumens\": 5}")).await;
                while let Some(Ok(_)) = socket.next().await {}
            });
        }
    });
    port
}

fn port_of(address: &str) -> u16 {
    address.rsplit(':').next().unwrap().parse().unwrap()
}

/// The process trusts the certificate through an environment variable, so a second process makes the calls that
/// succeed: it runs this test again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_go_over_tls_to_servers_whose_certificate_is_trusted() {
    if let Ok(servers) = std::env::var(SERVERS) {
        for url in servers.split(' ') {
            send_and_receive(url).await;
        }
        return;
    }
    let (redis, mosquitto) = (
        RedisServer::start().unwrap(),
        MosquittoServer::start().unwrap(),
    );
    // Only one broker, because the relay leads to no other.
    let kafka = KafkaMock::start(1).unwrap();
    kafka.produce("light.7", "k:{\"lumens\": 0}\n").unwrap();
    let mut servers = Vec::new();
    for (protocol, port) in [
        ("rediss", redis.port()),
        ("mqtts", mosquitto.port()),
        ("kafka-secure", port_of(kafka.address())),
        ("wss", websocket().await),
    ] {
        let url = format!("{protocol}://127.0.0.1:{}", relay(port).await);
        let tell = function(&document(&url, "light.{id}", json!({})), "tell");
        let (found, message) = code(tell.call(data!({"lumens": 1})).await.unwrap_err());
        assert_eq!(found, "connection", "{url}: {message}");
        servers.push(url);
    }
    let nats = NatsServer::start().unwrap();
    let url = format!("tls://127.0.0.1:{}", relay_from(nats.port(), true).await);
    let tell = function(&document(&url, "light.{id}", json!({})), "tell");
    let (found, message) = code(tell.call(data!({"lumens": 1})).await.unwrap_err());
    assert_eq!(found, "connection", "{url}: {message}");
    servers.push(url);
    let name = "services::tls::messages_go_over_tls_to_servers_whose_certificate_is_trusted";
    let done = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env("SSL_CERT_FILE", CERTIFICATE)
        .env(SERVERS, servers.join(" "))
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let output = String::from_utf8_lossy(&done.stdout);
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success() && output.contains("1 passed"),
        "{output}\n{error}"
    );
}

/// Sends a message, and waits for it.
async fn send_and_receive(url: &str) {
    let text = document(url, "light.{id}", json!({}));
    let (tell, hear) = (function(&text, "tell"), function(&text, "hear"));
    let lumens = data!({"lumens": 5});
    let result = heard(hear.call(data!({})), async || {
        let output = tell.call(lumens.clone()).await;
        assert_eq!(
            output.map_err(|error| error.message),
            Ok(Data::NULL),
            "{url}"
        );
    });
    assert_eq!(result.await.unwrap(), lumens, "{url}");
    tell.call(lumens).await.unwrap();
}
