//! Secrets from a single file.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use serde_json::Value;
use swirl_model::Data;
use swirl_ports::Secrets;

use super::{SecretsError, collect, read};

/// A JSON or YAML object of names and values of any type. The file is read again when it changes. If a change cannot be
/// read, a warning is logged, and the previous values stay.
pub struct File {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    values: Data,
    stamp: Stamp,
}

/// Detects changes of a file.
type Stamp = Option<(SystemTime, u64)>;

impl File {
    /// # Errors
    /// [`SecretsError::Unreadable`], [`SecretsError::Invalid`].
    pub fn new(path: impl Into<PathBuf>) -> Result<File, SecretsError> {
        let path = path.into();
        let stamp = stamp(&path);
        let values = load(&path)?;
        Ok(File {
            path,
            state: Mutex::new(State { values, stamp }),
        })
    }

    /// The current values.
    fn values(&self) -> Data {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamp(&self.path);
        if now != state.stamp {
            match load(&self.path) {
                Ok(values) => state.values = values,
                Err(error) => {
                    tracing::warn!(%error, "the secrets that were read before stay in use")
                }
            }
            // Also after a failure, so that each change is reported only once.
            state.stamp = now;
        }
        state.values.clone()
    }
}

#[async_trait]
impl Secrets for File {
    async fn get(&self, names: &[String]) -> Data {
        let values = self.values();
        collect(names, |name| values.get(name))
    }
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "File({})", self.path.display())
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn load(path: &Path) -> Result<Data, SecretsError> {
    let bytes = read(path).map_err(|reason| SecretsError::Unreadable {
        path: path.to_owned(),
        reason,
    })?;
    parse(&bytes).map_err(|reason| SecretsError::Invalid {
        path: path.to_owned(),
        reason,
    })
}

/// Errors only state a position, because parsers quote the text, which is secret.
fn parse(bytes: &[u8]) -> Result<Data, String> {
    let value: Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(json) if bytes.trim_ascii_start().starts_with(b"{") => {
            return Err(format!(
                "syntax error at line {} column {}",
                json.line(),
                json.column()
            ));
        }
        Err(_) => {
            let options = serde_saphyr::options! { strict_booleans: true };
            serde_saphyr::from_slice_with_options(bytes, options).map_err(|yaml| {
                match yaml.location() {
                    Some(at) => {
                        format!("syntax error at line {} column {}", at.line(), at.column())
                    }
                    None => "syntax error".to_owned(),
                }
            })?
        }
    };
    match value {
        Value::Object(_) => Ok(Data::from(value)),
        _ => Err("it holds another kind of value".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::*;

    fn names() -> Vec<String> {
        ["key", "pin", "other"].map(str::to_owned).into()
    }

    #[tokio::test]
    async fn json_and_yaml_are_read_and_changes_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets.yaml");
        std::fs::write(&path, "key: s3cret\npin: 5\nunused: x\n").unwrap();
        let file = File::new(&path).unwrap();
        assert_eq!(file.get(&names()).await, data!({"key": "s3cret", "pin": 5}));
        std::fs::write(&path, r#"{"key": {"nested": true}}"#).unwrap();
        assert_eq!(file.get(&names()).await, data!({"key": {"nested": true}}));
        std::fs::write(&path, "{broken").unwrap();
        assert_eq!(file.get(&names()).await, data!({"key": {"nested": true}}));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.get(&names()).await, data!({"key": {"nested": true}}));
        assert!(!format!("{file:?}").contains("nested"));
    }

    #[test]
    fn a_file_without_an_object_is_rejected_without_quoting_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets");
        for (content, expected) in [
            (
                "{\"key\": \"s3cret\",, }",
                "syntax error at line 1 column 18",
            ),
            ("key: \"s3cret\nother", "syntax error at line"),
            ("s3cret", "it holds another kind of value"),
            ("- s3cret", "it holds another kind of value"),
            ("", "not a JSON or YAML object"),
        ] {
            std::fs::write(&path, content).unwrap();
            let error = File::new(&path).unwrap_err().to_string();
            assert!(
                error.contains(expected) && !error.contains("s3cret"),
                "{content}: {error}"
            );
        }
        let error = File::new("/nowhere/at/all").unwrap_err().to_string();
        assert!(error.contains("cannot be read"), "{error}");
    }
}
