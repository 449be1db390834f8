//! Reads definitions for the API and for `swirl dev`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use swirl_functions::Problem;
use swirl_functions::resources::Wanted;
use swirl_model::ids::DefinitionId;
use swirl_service::Deployment;
use swirl_spec::diagnostic::Diagnostic;
use swirl_spec::resource::FileResources;
use swirl_spec::source::Limits;

use crate::findings::Text;
use crate::loader::{Loader, RESOURCE_BYTES_MAX, Refusal};

/// A document, and the documents that were sent with it.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// Its name in messages.
    pub name: String,
    pub document: String,
    /// By URI, as the document writes it.
    pub resources: Vec<(String, String)>,
    /// Whether the outcome is still awaited.
    pub wanted: Wanted,
}

impl Source {
    /// A document without others.
    pub fn new(name: String, document: String) -> Source {
        Source {
            name,
            document,
            resources: Vec::new(),
            wanted: Wanted::default(),
        }
    }
}

/// Turns a document into a deployment. The binary provides the implementation, which knows the editions of the
/// language, where documents are fetched and how functions are called. All methods may block.
pub trait Reader: Send + Sync {
    /// # Errors
    /// All findings, each an object with at least `severity` and `message`.
    fn read(&self, source: &Source) -> Result<Deployment, Vec<Value>>;

    /// Makes the functions of a definition callable. This must happen before its first instance exists.
    ///
    /// # Errors
    /// As for [`Reader::read`].
    fn prepare(&self, id: &DefinitionId, deployment: &Deployment) -> Result<(), Vec<Value>>;

    /// Reads a document and runs the checks of [`Reader::prepare`], without keeping anything. Also returns the
    /// warnings.
    ///
    /// # Errors
    /// As for [`Reader::read`].
    fn check(&self, source: &Source) -> Result<(Deployment, Vec<Value>), Vec<Value>> {
        let deployment = self.read(source)?;
        Ok((deployment, Vec::new()))
    }

    /// Whether two documents differ only in comments and layout.
    fn is_equivalent(&self, old: &str, new: &str) -> bool {
        old == new
    }
}

/// A reader of documents from clients, or of the user's own files.
pub struct DocumentReader {
    loader: Arc<Loader>,
    files: Files,
}

/// The files that a document may refer to, in addition to those that were sent with it.
enum Files {
    None,
    Below(PathBuf),
    Anywhere(PathBuf),
}

impl DocumentReader {
    /// For documents from anyone, which must not refer to files on this machine.
    pub fn remote(loader: Arc<Loader>) -> DocumentReader {
        let files = Files::None;
        DocumentReader { loader, files }
    }

    /// For documents from any client that may refer to files inside this folder only, because a deployment must not
    /// make this machine's files readable.
    pub fn below(loader: Arc<Loader>, folder: &Path) -> DocumentReader {
        let files = Files::Below(folder.to_owned());
        DocumentReader { loader, files }
    }

    /// For the user's own files, which may refer to any file, relative to the document's folder.
    #[must_use]
    pub fn trusted(&self, folder: &Path) -> DocumentReader {
        DocumentReader {
            loader: self.loader.clone(),
            files: Files::Anywhere(folder.to_owned()),
        }
    }

    fn files(&self) -> Option<FileResources> {
        match &self.files {
            Files::None => None,
            Files::Below(folder) => Some(FileResources::new(folder, RESOURCE_BYTES_MAX)),
            Files::Anywhere(folder) => {
                Some(FileResources::new(folder, RESOURCE_BYTES_MAX).anywhere())
            }
        }
    }

    /// Also returns the warnings.
    fn read_all(&self, source: &Source) -> Result<(Deployment, Vec<Diagnostic>), Vec<Value>> {
        let Source {
            name,
            document,
            resources,
            wanted,
        } = source;
        let document = document.as_bytes();
        let read = self
            .loader
            .read_while(name, document, self.files(), resources, wanted);
        read.map_err(|refusal| refusal.findings(name))
    }
}

impl Reader for DocumentReader {
    fn read(&self, source: &Source) -> Result<Deployment, Vec<Value>> {
        self.read_all(source).map(|(deployment, _)| deployment)
    }

    fn is_equivalent(&self, old: &str, new: &str) -> bool {
        is_equivalent(old, new)
    }

    fn check(&self, source: &Source) -> Result<(Deployment, Vec<Value>), Vec<Value>> {
        let (deployment, warnings) = self.read_all(source)?;
        let prepared = self.loader.check_prepare(&deployment);
        prepared.map_err(|problems| about_functions(&deployment, &problems))?;
        Ok((deployment, rows(&source.name, &warnings)))
    }

    fn prepare(&self, id: &DefinitionId, deployment: &Deployment) -> Result<(), Vec<Value>> {
        let prepared = self.loader.prepare(id, deployment);
        prepared.map_err(|problems| about_functions(deployment, &problems))
    }
}

fn about_functions(deployment: &Deployment, problems: &[Problem]) -> Vec<Value> {
    let text = Text::new(deployment.document.as_bytes());
    let found = problems.iter().map(|problem| text.function(problem));
    rows(&deployment.name, &found.collect::<Vec<_>>())
}

impl Refusal {
    /// Findings as the API reports them, each with at least `severity`, `code` and `message`. `name` is the document's
    /// name.
    pub fn findings(&self, name: &str) -> Vec<Value> {
        match self {
            Refusal::Document(reading) => rows(name, reading.diagnostics.as_slice()),
            Refusal::Functions(found) => rows(name, found),
        }
    }
}

/// Comments and layout are ignored.
fn is_equivalent(old: &str, new: &str) -> bool {
    let parse = |text: &str| {
        let node = swirl_spec::source::parse(text.as_bytes(), &Limits::default());
        node.ok().map(|node| node.to_data())
    };
    old == new || parse(old).is_some_and(|data| Some(data) == parse(new))
}

/// Findings as objects. `name` is the document's name.
fn rows(name: &str, findings: &[Diagnostic]) -> Vec<Value> {
    let text = swirl_spec::render::json(name, findings);
    let mut rows: Value = serde_json::from_str(&text).unwrap_or_default();
    match rows["diagnostics"].take() {
        Value::Array(rows) => rows,
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_layout_are_ignored() {
        let old = "id: a\nstates:\n  - name: x\n";
        for same in [
            "# a\nid: a # b\nstates: [{name: x}]\n",
            r#"{"states": [{"name": "x"}], "id": "a"}"#,
        ] {
            assert!(is_equivalent(old, same), "{same}");
        }
        for other in ["id: a\nstates:\n  - name: y\n", "id: [", ""] {
            assert!(!is_equivalent(old, other), "{other}");
        }
        assert!(!is_equivalent("id: [", "id: {"));
    }
}
