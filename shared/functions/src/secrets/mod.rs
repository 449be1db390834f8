//! Providers of the values of `$SECRETS` (language 0.8, "Workflow Secrets").
//!
//! A provider is queried for names when a call needs them, and caches as little as possible, so the next call uses
//! rotated files. If a provider lacks a secret, its answer doesn't contain it, and the engine turns that into
//! `SecretNotFound`. No provider shows a value in its `Debug` form, an error or a log.

mod environment;
mod file;
mod fixed;
mod folder;

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use swirl_model::Data;
use swirl_ports::Secrets;

pub use environment::{Environment, PREFIX};
pub use file::File;
pub use fixed::Fixed;
pub use folder::Folder;

/// The largest file that is read for secrets, in bytes.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The reason why a provider cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretsError {
    #[error("the secrets file {} cannot be read: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("the secrets file {} is not a JSON or YAML object of names and values: {reason}", path.display())]
    Invalid { path: PathBuf, reason: String },
    #[error("{} is not a readable folder: {reason}", path.display())]
    NoFolder { path: PathBuf, reason: String },
    /// The argument isn't quoted: a user who forgets the name may have written only the value.
    #[error("a secret is given as NAME=VALUE or NAME=@FILE, with a name before the `=`")]
    NoName,
}

/// A list of providers. Each one is queried only for the secrets that the earlier ones lack.
#[derive(Default)]
pub struct Chain(Vec<Box<dyn Secrets>>);

impl Chain {
    pub fn new() -> Chain {
        Chain::default()
    }

    /// Adds a provider after the existing ones.
    #[must_use]
    pub fn then(mut self, provider: impl Secrets + 'static) -> Chain {
        self.0.push(Box::new(provider));
        self
    }
}

#[async_trait]
impl Secrets for Chain {
    async fn get(&self, names: &[String]) -> Data {
        let mut found = Data::object();
        let mut missing = names.to_vec();
        for provider in &self.0 {
            if missing.is_empty() {
                break;
            }
            let some = provider.get(&missing).await;
            missing.retain(|name| match some.get(name) {
                Some(value) => {
                    found.set(name, value);
                    false
                }
                None => true,
            });
        }
        found
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chain of {}", self.0.len())
    }
}

/// An object with those names for which `look_up` returns a value.
fn collect(names: &[String], look_up: impl Fn(&str) -> Option<Data>) -> Data {
    let mut found = Data::object();
    for name in names {
        if let Some(value) = look_up(name) {
            found.set(name, value);
        }
    }
    found
}

/// Reads a small file. Errors contain nothing of its content.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    swirl_documents::files::read(path, FILE_BYTES_MAX as usize).map_err(|error| error.to_string())
}

/// Reads a file that contains one secret: its text without the line end that editors add.
fn read_text(path: &Path) -> Result<String, String> {
    let mut text =
        String::from_utf8(read(path)?).map_err(|_| "it is not valid UTF-8".to_owned())?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::*;

    #[tokio::test]
    async fn the_first_provider_with_a_name_wins() {
        let first = Fixed::parse(&["a=1", "b=2"]).unwrap();
        let second = Fixed::parse(&["b=3", "c=4"]).unwrap();
        let chain = Chain::new().then(first).then(second);
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        assert_eq!(
            chain.get(&names).await,
            data!({"a": "1", "b": "2", "c": "4"})
        );
        assert_eq!(Chain::new().get(&names).await, data!({}));
    }

    #[test]
    fn a_text_loses_one_line_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        for (content, expected) in [
            ("a", "a"),
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            (" a ", " a "),
            ("\n", ""),
        ] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(read_text(&path).unwrap(), expected, "{content:?}");
        }
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_text(&path).unwrap_err(), "it is not valid UTF-8");
        std::fs::write(&path, vec![b'x'; FILE_BYTES_MAX as usize + 1]).unwrap();
        assert_eq!(
            read_text(&path).unwrap_err(),
            "it is larger than 1048576 bytes"
        );
    }
}
