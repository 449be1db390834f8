//! Secrets that are provided when the process starts.

use std::path::Path;

use async_trait::async_trait;
use swirl_model::Data;
use swirl_ports::Secrets;

use super::{SecretsError, collect, read_text};

/// Fixed values.
#[derive(Clone)]
pub struct Fixed(Data);

impl Fixed {
    /// The members of an object, or none for another type.
    pub fn new(values: Data) -> Fixed {
        Fixed(values)
    }

    /// Arguments `NAME=VALUE`, or `NAME=@FILE` for the text of a file without its last line end. `NAME=@@VALUE` is a
    /// value that begins with `@`. If a name occurs several times, the last one counts.
    ///
    /// # Errors
    /// [`SecretsError::NoName`], or [`SecretsError::Unreadable`] for a file.
    pub fn parse(arguments: &[impl AsRef<str>]) -> Result<Fixed, SecretsError> {
        let mut values = Data::object();
        for argument in arguments {
            let (name, value) = argument
                .as_ref()
                .split_once('=')
                .filter(|(name, _)| !name.is_empty())
                .ok_or(SecretsError::NoName)?;
            let value = match value.strip_prefix('@') {
                None => value.to_owned(),
                Some(literal) if literal.starts_with('@') => literal.to_owned(),
                Some(path) => {
                    let path = Path::new(path);
                    read_text(path).map_err(|reason| SecretsError::Unreadable {
                        path: path.to_owned(),
                        reason,
                    })?
                }
            };
            values.set(name, Data::string(value));
        }
        Ok(Fixed(values))
    }
}

#[async_trait]
impl Secrets for Fixed {
    async fn get(&self, names: &[String]) -> Data {
        collect(names, |name| self.0.get(name))
    }
}

impl std::fmt::Debug for Fixed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fixed(***)")
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::*;

    #[tokio::test]
    async fn arguments_give_values() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "from a file\n").unwrap();
        let file = format!("file=@{}", path.display());
        let fixed =
            Fixed::parse(&["a=b=c", "empty=", &file, "at=@@home", "twice=1", "twice=2"]).unwrap();
        let names = ["a", "empty", "file", "at", "twice", "other"].map(str::to_owned);
        let expected =
            data!({"a": "b=c", "empty": "", "file": "from a file", "at": "@home", "twice": "2"});
        assert_eq!(fixed.get(&names).await, expected);
    }

    #[test]
    fn errors_do_not_contain_the_value() {
        for argument in ["s3cret", "=s3cret"] {
            let error = Fixed::parse(&[argument]).unwrap_err();
            assert_eq!(error, SecretsError::NoName);
            assert!(!error.to_string().contains("s3cret"));
        }
        let error = Fixed::parse(&["a=@/nowhere/at/all"])
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("the secrets file /nowhere/at/all cannot be read: "),
            "{error}"
        );
    }

    #[test]
    fn values_are_not_shown() {
        let fixed = Fixed::new(data!({"a": "s3cret"}));
        assert!(!format!("{fixed:?}").contains("s3cret"));
    }
}
