//! The API over TLS, with a certificate that is replaced while it runs.

use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use reqwest::Certificate;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use swirl_coordinator::access::Access;
use swirl_coordinator::server::Tls;
use swirl_servers::{PATIENCE, eventually};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::running::{Setup, client};

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn issuer() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn write(folder: &Path, issuer: &Issuer) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let cert = params.signed_by(&key, issuer).unwrap();
    std::fs::write(folder.join("tls.crt"), cert.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
}

/// A client that trusts only this issuer.
fn trusting(issuer: &Issuer) -> reqwest::Client {
    client();
    let certificate = Certificate::from_pem(issuer.pem().as_bytes()).unwrap();
    reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([certificate])
        // Each request sees the current certificate.
        .pool_max_idle_per_host(0)
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_is_replaced_while_the_server_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (issuer(), issuer());
    write(folder.path(), &first);
    let load = || Tls::load(folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let running = Setup {
        tls: Some(load().unwrap()),
        ..Setup::new(Access::open("default"))
    };
    let running = running.start().await;
    let url = format!("https://localhost:{}/healthz", running.address.port());
    let asks = async |client: &reqwest::Client| client.get(&url).send().await;
    let (old, new) = (trusting(&first), trusting(&second));
    assert_eq!(asks(&old).await.unwrap().status(), 200);
    assert!(asks(&new).await.is_err(), "the issuer isn't trusted");
    let plain = url.replace("https", "http");
    assert!(
        old.get(plain).send().await.is_err(),
        "plain HTTP is refused"
    );

    write(folder.path(), &second);
    eventually("its exchange", async || asks(&new).await.ok()).await;
    assert!(asks(&old).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn old_versions_and_silent_clients_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let issuer = issuer();
    write(folder.path(), &issuer);
    let tls = Tls::load(folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let running = Setup {
        tls: Some(tls.unwrap()),
        ..Setup::new(Access::open("default"))
    };
    let running = running.start().await;

    // A client that sends nothing is disconnected.
    let mut silent = TcpStream::connect(running.address).await.unwrap();
    let mut nothing = Vec::new();
    let closed = timeout(PATIENCE, silent.read_to_end(&mut nothing));
    let (closed, versions) = tokio::join!(closed, async {
        let mut versions = Vec::new();
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let mut roots = RootCertStore::empty();
            roots.add(issuer.der().clone()).unwrap();
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&[version])
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
            let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
            let stream = TcpStream::connect(running.address).await.unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            let stream = connector.connect(name, stream).await.unwrap();
            versions.push(stream.get_ref().1.protocol_version().unwrap());
        }
        versions
    });
    assert!(closed.is_ok_and(|read| read.is_ok_and(|bytes| bytes == 0)));
    assert_eq!(versions.len(), 2);
    // TLS 1.0: a client hello that offers nothing newer.
    let mut old = TcpStream::connect(running.address).await.unwrap();
    let hello = old_hello();
    tokio::io::AsyncWriteExt::write_all(&mut old, &hello)
        .await
        .unwrap();
    let mut answer = Vec::new();
    let read = timeout(PATIENCE, old.read_to_end(&mut answer)).await;
    assert!(read.is_ok());
    assert_eq!(answer.first(), Some(&0x15), "an alert, and no handshake");
}

/// A client hello of TLS 1.0 with one cipher suite and no extensions.
fn old_hello() -> Vec<u8> {
    let mut hello = vec![0x03, 0x01];
    hello.extend([7u8; 32]);
    hello.extend([0x00, 0x00, 0x02, 0x00, 0x2f, 0x01, 0x00]);
    let length = |bytes: usize| u16::try_from(bytes).unwrap().to_be_bytes();
    let mut handshake = vec![0x01, 0x00];
    handshake.extend(length(hello.len()));
    handshake.extend(hello);
    let mut record = vec![0x16, 0x03, 0x01];
    record.extend(length(handshake.len()));
    record.extend(handshake);
    record
}
