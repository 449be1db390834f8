//! The command line options for a server and its credentials.

use std::convert::Infallible;
use std::future::Future;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::http::Client;
use super::target::Target;
use swirl_config::Secret;

/// The longest file of a token, in bytes.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// The servers of a command.
#[derive(Debug, clap::Args)]
pub struct Server {
    /// The server's URL; of several, separated by commas, any may be used.
    #[arg(
        long,
        env = "SWIRL_SERVER",
        default_value = "http://127.0.0.1:8080",
        value_delimiter = ',',
        value_name = "URL"
    )]
    server: Vec<String>,

    /// The namespace to use; the server refuses if it serves another one.
    #[arg(long, env = "SWIRL_NAMESPACE", value_name = "NAME")]
    namespace: Option<String>,

    #[command(flatten)]
    credentials: Credentials,
}

/// The client's credentials, and the certificates that it trusts.
#[derive(Debug, clap::Args)]
pub struct Credentials {
    /// The token. Other users of this machine can see flags: use the variable, or a file.
    #[arg(
        long,
        env = "SWIRL_TOKEN",
        hide_env_values = true,
        value_parser = secret,
        value_name = "TOKEN"
    )]
    token: Option<Secret>,

    /// A file that holds the token.
    #[arg(long, env = "SWIRL_TOKEN_FILE", value_parser = path, value_name = "PATH")]
    token_file: Option<PathBuf>,

    /// CA certificates in PEM for the server's certificate, in addition to those of this machine.
    #[arg(long, env = "SWIRL_CA_FILE", value_parser = path, value_name = "PATH")]
    ca_file: Option<PathBuf>,
}

impl Server {
    /// Runs the requests of a command.
    ///
    /// # Errors
    /// Those of the command. Also a URL that is not valid, or a file that cannot be read.
    pub fn run<F: Future<Output = anyhow::Result<u8>>>(
        &self,
        command: impl FnOnce(Client) -> F,
    ) -> anyhow::Result<u8> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let namespace = self.namespace.clone().filter(|name| !name.is_empty());
        let target = self.credentials.target(&self.server, namespace)?;
        runtime.block_on(command(Client::new(&target)?))
    }
}

impl Credentials {
    /// # Errors
    /// The token is set twice, or its file cannot be read.
    pub fn target(&self, urls: &[String], namespace: Option<String>) -> anyhow::Result<Target> {
        // An empty variable counts as absent.
        let token = self
            .token
            .clone()
            .filter(|token| !token.expose().is_empty());
        let file = self.token_file.clone();
        let file = file.filter(|file| !file.as_os_str().is_empty());
        let token = match (token, file) {
            (Some(_), Some(_)) => bail!(
                "the token is set twice: use --token (SWIRL_TOKEN) or --token-file (SWIRL_TOKEN_FILE), \
                 not both"
            ),
            (token, None) => token,
            (None, Some(file)) => Some(read(&file)?),
        };
        let ca = self.ca_file.clone();
        Ok(Target {
            urls: urls.to_vec(),
            namespace,
            token,
            ca: ca.filter(|file| !file.as_os_str().is_empty()),
        })
    }
}

#[allow(clippy::unnecessary_wraps, reason = "what clap calls gives a result")]
fn secret(text: &str) -> Result<Secret, Infallible> {
    Ok(Secret::new(text))
}

/// Accepts an empty text too, because a variable may be empty.
#[allow(clippy::unnecessary_wraps, reason = "what clap calls gives a result")]
fn path(text: &str) -> Result<PathBuf, Infallible> {
    Ok(PathBuf::from(text))
}

fn read(path: &Path) -> anyhow::Result<Secret> {
    let shown = path.display();
    let text = swirl_documents::files::read_text(path)
        .with_context(|| format!("{shown} cannot be read"))?;
    let token = text.trim();
    if token.is_empty() || token.len() > TOKEN_BYTES_MAX || token.contains(char::is_whitespace) {
        bail!("{shown} must hold one token and nothing else");
    }
    Ok(Secret::new(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_one_source_and_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let credentials = |token: Option<&str>, file: Option<&PathBuf>| Credentials {
            token: token.map(Secret::new),
            token_file: file.cloned(),
            ca_file: None,
        };
        let target = |token, file| credentials(token, file).target(&["http://h".to_owned()], None);
        let token = |target: anyhow::Result<Target>| {
            target.unwrap().token.map(|token| token.expose().to_owned())
        };
        assert!(target(None, Some(&file)).is_err());
        std::fs::write(&file, "s3cret\n").unwrap();
        assert_eq!(token(target(None, Some(&file))).as_deref(), Some("s3cret"));
        assert_eq!(token(target(Some("t"), None)).as_deref(), Some("t"));
        assert_eq!(token(target(Some(""), None)), None);
        assert!(target(Some("t"), Some(&file)).is_err());
        std::fs::write(&file, "two words").unwrap();
        assert!(target(None, Some(&file)).is_err());
        let shown = format!("{:?}", credentials(Some("s3cret"), None));
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
