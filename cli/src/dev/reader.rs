//! Reads definitions for the API.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use swirl_coordinator::Deployment;
use swirl_coordinator::api::{Reader, Source};
use swirl_model::ids::DefinitionId;
use swirl_spec::resource::FileResources;
use swirl_spec::source::Limits;
use swirl_worker::resources::{Fetcher, Hosts, HttpOptions, HttpResources};

use crate::app::{App, DeployError, map};

/// The largest file that a definition may refer to, in bytes.
const RESOURCE_BYTES_MAX: usize = 4 << 20;

/// Files that a document refers to are looked for in a folder. A document that came over HTTP may
/// not refer to any outside of it: who can deploy must not be able to read this machine's files.
pub struct DocumentReader {
    app: Arc<App>,
    http: HttpResources,
    folder: PathBuf,
    anywhere: bool,
}

impl DocumentReader {
    /// For documents from anyone.
    ///
    /// # Errors
    /// The names of hosts, or the TLS configuration, are refused.
    pub fn new(app: Arc<App>, hosts: &[String], folder: &Path) -> anyhow::Result<DocumentReader> {
        let options = HttpOptions {
            hosts: Hosts::parse(hosts)?,
            ..HttpOptions::default()
        };
        Ok(DocumentReader {
            app,
            http: HttpResources::new(options)?,
            folder: folder.to_owned(),
            anywhere: false,
        })
    }

    /// Documents of this machine's services are fetched only where `hosts` names them.
    ///
    /// # Errors
    /// As [`DocumentReader::new`].
    pub fn without_loopback(mut self, hosts: &[String]) -> anyhow::Result<DocumentReader> {
        let options = HttpOptions {
            hosts: Hosts::parse(hosts)?.without_loopback(),
            ..HttpOptions::default()
        };
        self.http = HttpResources::new(options)?;
        Ok(self)
    }

    /// For the user's own files: relative to the folder of the document, and anywhere.
    pub fn trusted(&self, folder: &Path) -> DocumentReader {
        DocumentReader {
            app: self.app.clone(),
            http: self.http.clone(),
            folder: folder.to_owned(),
            anywhere: true,
        }
    }

    fn fetcher(&self, given: &[(String, String)]) -> Fetcher {
        let files = FileResources::new(&self.folder, RESOURCE_BYTES_MAX);
        Fetcher {
            given: map(given),
            http: self.http.clone(),
            files: if self.anywhere {
                files.anywhere()
            } else {
                files
            },
        }
    }
}

impl Reader for DocumentReader {
    fn read(&self, source: &Source) -> Result<Deployment, Vec<Value>> {
        let Source {
            name,
            document,
            resources,
        } = source;
        let fetcher = self.fetcher(resources);
        let reading = swirl_spec::read(document.as_bytes(), &fetcher, &self.app.options_now());
        if reading.workflow.is_none() {
            let text = swirl_spec::render::json(name, reading.diagnostics.as_slice());
            let mut rows: Value = serde_json::from_str(&text).unwrap_or_default();
            return Err(match rows["diagnostics"].take() {
                Value::Array(rows) => rows,
                _ => Vec::new(),
            });
        }
        self.app
            .read(
                document.as_bytes(),
                Path::new(name),
                fetcher.files,
                resources,
                false,
            )
            .map_err(|error| match error {
                DeployError::Refused(text) => finding("function-document", &text),
                DeployError::Arguments(lines) => lines
                    .iter()
                    .flat_map(|line| finding("function-arguments", line))
                    .collect(),
                DeployError::Other(error) => finding("function-document", &format!("{error:#}")),
            })
    }

    fn says_the_same(&self, old: &str, new: &str) -> bool {
        says_the_same(old, new)
    }

    fn prepare(&self, id: &DefinitionId, deployment: &Deployment) -> Result<(), Vec<Value>> {
        let prepared = self
            .app
            .caller
            .prepare(id, &deployment.workflow, &deployment.resources);
        prepared.map_err(|problems| {
            problems
                .iter()
                .flat_map(|problem| finding("function-invalid", &problem.to_string()))
                .collect()
        })
    }
}

/// Comments and layout mean nothing.
fn says_the_same(old: &str, new: &str) -> bool {
    let parse = |text: &str| {
        let node = swirl_spec::source::parse(text.as_bytes(), &Limits::default());
        node.ok().map(|node| node.to_data())
    };
    old == new || parse(old).is_some_and(|data| Some(data) == parse(new))
}

fn finding(code: &str, message: &str) -> Vec<Value> {
    vec![json!({"severity": "error", "code": code, "message": message})]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_layout_mean_nothing() {
        let old = "id: a\nstates:\n  - name: x\n";
        for same in [
            "# a\nid: a # b\nstates: [{name: x}]\n",
            r#"{"states": [{"name": "x"}], "id": "a"}"#,
        ] {
            assert!(says_the_same(old, same), "{same}");
        }
        for other in ["id: a\nstates:\n  - name: y\n", "id: [", ""] {
            assert!(!says_the_same(old, other), "{other}");
        }
        assert!(!says_the_same("id: [", "id: {"));
    }
}
