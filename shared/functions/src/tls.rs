//! The TLS configuration of all clients.

use std::sync::Arc;

/// TLS 1.2 and 1.3 with the host's CA certificates (`SSL_CERT_FILE` and `SSL_CERT_DIR` override).
///
/// # Errors
/// The TLS library refuses its configuration.
pub fn tls() -> Result<rustls::ClientConfig, rustls::Error> {
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "some CA certificates cannot be read");
    }
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        tracing::warn!("no CA certificates found: HTTPS calls will fail; set SSL_CERT_FILE");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
