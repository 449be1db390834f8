//! Secrets from a folder with one file per name, as mounted into containers.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use swirl_model::Data;
use swirl_ports::Secrets;

use super::{SecretsError, collect, read_text};

/// The file of a name is its value, without the last line end. It is read again for each call, so a rotated secret is
/// seen by the next one.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// # Errors
    /// [`SecretsError::NoFolder`].
    pub fn new(path: impl Into<PathBuf>) -> Result<Folder, SecretsError> {
        let path = path.into();
        match std::fs::read_dir(&path) {
            Ok(_) => Ok(Folder(path)),
            Err(error) => Err(SecretsError::NoFolder {
                path,
                reason: error.to_string(),
            }),
        }
    }

    fn look_up(&self, name: &str) -> Option<Data> {
        // A name comes from a definition and must not lead out of the folder. Names that begin with a dot belong to the
        // mount itself.
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
            return None;
        }
        let path = self.0.join(name);
        if !Path::is_file(&path) {
            return None;
        }
        match read_text(&path) {
            Ok(text) => Some(Data::string(text)),
            Err(reason) => {
                tracing::warn!(path = %path.display(), reason, "a secret cannot be read");
                None
            }
        }
    }
}

#[async_trait]
impl Secrets for Folder {
    async fn get(&self, names: &[String]) -> Data {
        collect(names, |name| self.look_up(name))
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::data;

    use super::*;

    #[tokio::test]
    async fn a_file_is_a_value() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("outside"), "no").unwrap();
        let path = root.path().join("mount");
        std::fs::create_dir_all(path.join("sub")).unwrap();
        std::fs::write(path.join("api-key"), "s3cret\n").unwrap();
        std::fs::write(path.join(".hidden"), "no").unwrap();
        std::fs::write(path.join("binary"), [0xff, 0xfe]).unwrap();
        let folder = Folder::new(&path).unwrap();
        let absolute = root.path().join("outside").display().to_string();
        let mut names: Vec<_> = [
            "api-key",
            "../outside",
            ".hidden",
            "sub",
            "binary",
            "",
            "..",
            "a\0b",
            "other",
        ]
        .map(str::to_owned)
        .into();
        names.push(absolute);
        assert_eq!(folder.get(&names).await, data!({"api-key": "s3cret"}));
        std::fs::write(path.join("api-key"), "rotated").unwrap();
        assert_eq!(folder.get(&names).await, data!({"api-key": "rotated"}));
    }

    #[test]
    fn a_missing_folder_is_rejected() {
        let error = Folder::new("/nowhere/at/all").unwrap_err().to_string();
        assert!(
            error.starts_with("/nowhere/at/all is not a readable folder: "),
            "{error}"
        );
    }
}
