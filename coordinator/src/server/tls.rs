//! TLS 1.2 and 1.3 with a certificate that may be replaced while the server runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use swirl_config::files;
use tokio_rustls::TlsAcceptor;

/// How often the files are checked.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// The largest file, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;

/// The reason why the certificate cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    #[error("{path} cannot be read: {reason}")]
    File { path: String, reason: String },
    #[error("{path} contains no PEM certificate")]
    NoCertificate { path: String },
    #[error("{path} contains no PEM private key: {reason}")]
    NoKey { path: String, reason: String },
    #[error("certificate {cert} and key {key} cannot be used together: {reason}")]
    Pair {
        cert: String,
        key: String,
        reason: String,
    },
}

/// A certificate chain and its key, which are read again when their files change.
pub struct Tls {
    cert: PathBuf,
    key: PathBuf,
    current: RwLock<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    files: Files,
}

#[derive(Clone, PartialEq, Eq)]
struct Files {
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl Tls {
    /// # Errors
    /// A file cannot be read, or they don't fit together.
    pub fn load(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Result<Tls, TlsError> {
        let (cert, key) = (cert.into(), key.into());
        let files = read(&cert, &key)?;
        let config = configure(&cert, &key, &files)?;
        Ok(Tls {
            cert,
            key,
            current: RwLock::new(Current { config, files }),
        })
    }

    /// Returns an acceptor with the current certificate.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        TlsAcceptor::from(current.config.clone())
    }

    /// Watches the files. Never returns. Unusable files are reported, and the old certificate stays in use.
    pub(super) async fn keep(self: Arc<Self>) {
        let mut failed = None;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let tls = self.clone();
            let looked = tokio::task::spawn_blocking(move || tls.look()).await;
            match looked {
                Ok(Ok(changed)) => {
                    failed = None;
                    if changed {
                        tracing::info!("the API's certificate has been replaced");
                    }
                }
                // Each error is logged once. It is often temporary, since files are replaced one at a time.
                Ok(Err(error)) if failed.as_ref() != Some(&error) => {
                    tracing::warn!(%error, "the new certificate cannot be used, so the API keeps the old one");
                    failed = Some(error);
                }
                Ok(Err(_)) => {}
                Err(error) => tracing::warn!(%error, "the certificate cannot be read"),
            }
        }
    }

    /// Loads the files if they have changed.
    fn look(&self) -> Result<bool, TlsError> {
        let files = read(&self.cert, &self.key)?;
        let same = {
            let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
            current.files == files
        };
        if same {
            return Ok(false);
        }
        let config = configure(&self.cert, &self.key, &files)?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Current { config, files };
        Ok(true)
    }
}

fn read(cert: &Path, key: &Path) -> Result<Files, TlsError> {
    let file = |path: &Path| {
        let failed = |reason: String| TlsError::File {
            path: path.display().to_string(),
            reason,
        };
        files::read(path, FILE_BYTES_MAX).map_err(|error| failed(error.to_string()))
    };
    Ok(Files {
        cert: file(cert)?,
        key: file(key)?,
    })
}

fn configure(cert: &Path, key: &Path, files: &Files) -> Result<Arc<ServerConfig>, TlsError> {
    let shown = |path: &Path| path.display().to_string();
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(&files.cert).collect();
    let chain = chain.ok().filter(|chain| !chain.is_empty());
    let Some(chain) = chain else {
        return Err(TlsError::NoCertificate { path: shown(cert) });
    };
    let private = PrivateKeyDer::from_pem_slice(&files.key).map_err(|error| TlsError::NoKey {
        path: shown(key),
        reason: error.to_string(),
    })?;
    let pair = |error: rustls::Error| TlsError::Pair {
        cert: shown(cert),
        key: shown(key),
        reason: error.to_string(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn files_take_effect_when_they_fit_together() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
        let load = || {
            Tls::load(&cert, &key)
                .map(|_| ())
                .map_err(|error| error.to_string())
        };
        assert!(load().is_err_and(|error| error.contains("c.pem cannot be read")));
        let (first, second) = (pair(), pair());
        std::fs::write(&cert, "nothing").unwrap();
        std::fs::write(&key, &first.1).unwrap();
        assert!(load().is_err_and(|error| error.contains("no PEM certificate")));
        std::fs::write(&cert, &first.0).unwrap();
        std::fs::write(&key, &first.0).unwrap();
        assert!(load().is_err_and(|error| error.contains("no PEM private key")));
        std::fs::write(&key, &first.1).unwrap();
        let tls = Tls::load(&cert, &key).unwrap();
        assert_eq!(tls.look(), Ok(false));

        // Only one of the files is replaced so far.
        std::fs::write(&cert, &second.0).unwrap();
        assert!(matches!(tls.look(), Err(TlsError::Pair { .. })));
        std::fs::write(&key, &second.1).unwrap();
        assert_eq!(tls.look(), Ok(true));
        assert_eq!(tls.look(), Ok(false));
    }
}
