//! Documents that were sent together with the document that refers to them, and functions for documents that only name
//! functions.

use std::path::Path;

use swirl_documents::source::{self, Limits};
use swirl_spec::resource::{FUNCTIONS_BESIDE, MapResources, ResourceError, Resources};

/// The reason why a file of functions cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FunctionsError {
    #[error("{path} cannot be read")]
    Unreadable {
        path: String,
        #[source]
        error: std::io::Error,
    },
    #[error("{path}:{line}: {message}")]
    Syntax {
        path: String,
        line: usize,
        message: String,
    },
    #[error("{path} must be a list of functions")]
    NotAList { path: String },
}

/// A file of functions as a resource of definitions: its URI and its content (docs/language.md#decision-103).
///
/// # Errors
/// [`FunctionsError`]
pub fn functions_file(file: &Path, uri: &str) -> Result<(String, String), FunctionsError> {
    let path = file.display().to_string();
    let content = match swirl_documents::files::read_text(file) {
        Ok(content) => content,
        Err(error) => return Err(FunctionsError::Unreadable { path, error }),
    };
    let document = match source::parse(content.as_bytes(), &Limits::default()) {
        Ok(document) => document,
        Err(found) => {
            return Err(FunctionsError::Syntax {
                path,
                line: found.line,
                message: found.message,
            });
        }
    };
    let list = document.get("functions").unwrap_or(&document);
    match list.items() {
        Some(_) => Ok((uri.to_owned(), content)),
        None => Err(FunctionsError::NotAList { path }),
    }
}

/// The file of functions in the folder of a deployment, if it has one.
pub fn functions_in(folder: &Path) -> Option<std::path::PathBuf> {
    let mut files = FUNCTIONS_BESIDE.iter().map(|name| folder.join(name));
    files.find(|file| file.is_file())
}

/// Documents that are given by URI take precedence over documents found elsewhere.
pub struct GivenOr<R> {
    given: MapResources,
    others: R,
}

impl<R> GivenOr<R> {
    pub fn new(given: &[(String, String)], others: R) -> GivenOr<R> {
        let mut map = MapResources::default();
        for (uri, content) in given {
            map.insert(uri.clone(), content.clone());
        }
        GivenOr { given: map, others }
    }
}

impl<R: Resources> Resources for GivenOr<R> {
    fn fetch(&self, uri: &str, base: Option<&str>) -> Result<Vec<u8>, ResourceError> {
        let given = self.given.fetch(uri, base);
        given.or_else(|_| self.others.fetch(uri, base))
    }
}
