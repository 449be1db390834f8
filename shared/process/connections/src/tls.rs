//! TLS of our own requests: to the API, and to the provider of tokens.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use swirl_config::files;

/// TLS 1.2 and 1.3, with the CA certificates of this machine and those of a file in PEM.
///
/// # Errors
/// The file cannot be read, or holds none.
pub fn config(ca: Option<&Path>) -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = ca {
        let shown = path.display();
        let pem = files::read(path, files::BYTES_MAX)
            .with_context(|| format!("{shown} cannot be read"))?;
        let mut added = 0;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|error| anyhow::anyhow!("{shown}: {error}"))?;
            roots
                .add(certificate)
                .with_context(|| format!("{shown} holds a certificate that cannot be used"))?;
            added += 1;
        }
        if added == 0 {
            bail!("{shown} contains no PEM certificate");
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// The innermost reason: the outer ones only say that there was one.
pub fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
