//! Reads definitions for the API and for `swirl dev`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use swirl_api::{Finding, Related};
use swirl_documents::diagnostic::{Diagnostic, Severity};
use swirl_documents::source::{self, Limits};
use swirl_functions::resources::Wanted;
use swirl_functions::{CompiledFunctions, Problem};
use swirl_model::ids::DefinitionId;
use swirl_service::Deployment;
use swirl_spec::Options;
use swirl_spec::resource::{FileResources, MapResources};

use crate::findings::Locations;
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

/// A document that can be deployed.
pub struct ReadDocument {
    pub deployment: Deployment,
    pub warnings: Vec<Finding>,
    pub functions: CompiledFunctions,
}

impl From<Deployment> for ReadDocument {
    /// Without warnings and functions.
    fn from(deployment: Deployment) -> ReadDocument {
        ReadDocument {
            deployment,
            warnings: Vec::new(),
            functions: CompiledFunctions::default(),
        }
    }
}

/// Turns a document into a deployment. The binary provides the implementation, which knows the editions of the
/// language, where documents are fetched and how functions are called. All methods may block.
pub trait Reader: Send + Sync {
    /// Reads a document and compiles its functions.
    ///
    /// # Errors
    /// All findings, each an object with at least `severity` and `message`.
    fn read(&self, source: &Source) -> Result<ReadDocument, Vec<Finding>>;

    /// Makes the functions of a definition callable. This must happen before its first instance exists.
    ///
    /// # Errors
    /// As for [`Reader::read`].
    fn prepare(
        &self,
        _id: &DefinitionId,
        _deployment: &Deployment,
        _functions: CompiledFunctions,
    ) -> Result<(), Vec<Finding>> {
        Ok(())
    }

    /// Whether [`Reader::prepare`] would succeed. Nothing is kept.
    ///
    /// # Errors
    /// As for [`Reader::read`].
    fn check_functions(&self, _: &ReadDocument) -> Result<(), Vec<Finding>> {
        Ok(())
    }

    /// The warnings about a deployed document that need nothing but it and the documents that it refers to.
    fn warnings(&self, _: &Source) -> Vec<Finding> {
        Vec::new()
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
}

impl Reader for DocumentReader {
    fn read(&self, source: &Source) -> Result<ReadDocument, Vec<Finding>> {
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
        let loaded = read.map_err(|refusal| refusal.findings())?;
        Ok(ReadDocument {
            deployment: loaded.deployment,
            warnings: rows(&loaded.warnings),
            functions: loaded.functions,
        })
    }

    fn warnings(&self, source: &Source) -> Vec<Finding> {
        let mut resources = MapResources::default();
        for (uri, text) in &source.resources {
            resources.insert(uri.clone(), text.clone().into_bytes());
        }
        let options = Options {
            may_lack_documents: true,
            ..Options::default()
        };
        let reading = swirl_spec::read(source.document.as_bytes(), &resources, &options);
        let warnings = reading.diagnostics.iter();
        let warnings = warnings.filter(|found| found.severity == Severity::Warning);
        rows(warnings)
    }

    fn is_equivalent(&self, old: &str, new: &str) -> bool {
        is_equivalent(old, new)
    }

    fn check_functions(&self, read: &ReadDocument) -> Result<(), Vec<Finding>> {
        let problems = read.functions.problems(&read.deployment.workflow);
        match problems.is_empty() {
            true => Ok(()),
            false => Err(about_functions(&read.deployment, &problems)),
        }
    }

    fn prepare(
        &self,
        id: &DefinitionId,
        deployment: &Deployment,
        functions: CompiledFunctions,
    ) -> Result<(), Vec<Finding>> {
        let prepared = self.loader.prepare(id, &deployment.workflow, functions);
        prepared.map_err(|problems| about_functions(deployment, &problems))
    }
}

/// Only for functions that cannot be called is the document parsed again, to locate them.
fn about_functions(deployment: &Deployment, problems: &[Problem]) -> Vec<Finding> {
    let parsed = source::parse(deployment.document.as_bytes(), &Limits::default());
    let found: Vec<Diagnostic> = match &parsed {
        Ok(root) => {
            let locations = Locations::new(root);
            problems.iter().map(|one| locations.function(one)).collect()
        }
        Err(error) => vec![error.clone()],
    };
    rows(&found)
}

impl Refusal {
    /// Findings as the API reports them.
    pub fn findings(&self) -> Vec<Finding> {
        match self {
            Refusal::Document(reading) => rows(reading.diagnostics.as_slice()),
            Refusal::Functions(found) => rows(found),
        }
    }
}

/// Comments and layout are ignored.
fn is_equivalent(old: &str, new: &str) -> bool {
    let parse = |text: &str| {
        let node = source::parse(text.as_bytes(), &Limits::default());
        node.ok().map(|node| node.to_data())
    };
    old == new || parse(old).is_some_and(|data| Some(data) == parse(new))
}

/// Findings as the API reports them.
fn rows<'d>(findings: impl IntoIterator<Item = &'d Diagnostic>) -> Vec<Finding> {
    let row = |one: &Diagnostic| Finding {
        severity: one.severity.as_str().to_owned(),
        code: one.code.as_str().to_owned(),
        message: one.message.clone(),
        path: Some(one.pointer.clone()),
        line: Some(one.line),
        column: Some(one.column),
        hint: one.hint.clone(),
        related: one.related.as_ref().map(|related| Related {
            message: related.message.clone(),
            path: related.place.pointer.clone(),
            line: related.place.line,
            column: related.place.column,
        }),
    };
    findings.into_iter().map(row).collect()
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
