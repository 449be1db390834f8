//! The definitions of a folder. They are deployed once, and again when their files change.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use swirl_api::Finding;
use swirl_coordinator::api::Api;
use swirl_deployment::{DocumentReader, Outcome, Source};
use swirl_model::ids::DefinitionId;
use swirl_ports::DefinitionHead;
use swirl_scenario::discover;
use swirl_service::Deletion;

use crate::client::findings;
use crate::definitions::is_definition;

/// The interval at which the folder is scanned.
const LOOK: Duration = Duration::from_secs(1);
/// A refused document is read again after this time, because files that it refers to may exist by then.
const AGAIN: Duration = Duration::from_secs(5);

pub struct Folder {
    folder: PathBuf,
    api: Api,
    reader: DocumentReader,
    known: BTreeMap<PathBuf, KnownFile>,
    looked: Looked,
    /// The last problem with the folder itself.
    trouble: Option<String>,
}

struct KnownFile {
    stamp: Stamp,
    /// The definition in the file, if it was deployed.
    id: Option<DefinitionId>,
    again: Option<(Again, Instant)>,
}

/// The time of a file's last change, and its size; `None` if it can't be had.
type Stamp = Option<(SystemTime, u64)>;

/// The reason for reading an unchanged file again.
#[derive(Clone, PartialEq)]
enum Again {
    /// The document was refused. Files that it refers to may have been added since.
    Refused(Vec<Finding>),
    /// The previous content has instances.
    InUse(usize),
}

/// The files that are no definitions, with their stamps, so that they are read once.
#[derive(Default)]
struct Looked {
    last: BTreeMap<PathBuf, Stamp>,
    now: BTreeMap<PathBuf, Stamp>,
}

impl Looked {
    fn is_definition(&mut self, path: &Path) -> bool {
        let stamp = stamp(path);
        let is_known = self.last.get(path).is_some_and(|seen| *seen == stamp);
        let found = !is_known && is_definition(path);
        if !found {
            self.now.insert(path.to_owned(), stamp);
        }
        found
    }

    /// Files that the scan hasn't seen are forgotten.
    fn end_scan(&mut self) {
        self.last = std::mem::take(&mut self.now);
    }
}

impl Folder {
    pub fn new(folder: &Path, api: Api, reader: DocumentReader) -> Folder {
        Folder {
            folder: folder.to_owned(),
            api,
            reader,
            known: BTreeMap::new(),
            looked: Looked::default(),
            trouble: None,
        }
    }

    /// Watches the folder forever.
    pub async fn watch(mut self) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.look().await;
        }
    }

    /// Deploys documents that are new or have changed, or were refused some time ago.
    pub async fn look(&mut self) {
        let mut files = Vec::new();
        let found = {
            let (known, looked) = (&self.known, RefCell::new(&mut self.looked));
            // A file that is being written isn't one that was removed.
            let wanted =
                |path: &Path| known.contains_key(path) || looked.borrow_mut().is_definition(path);
            discover::collect(&self.folder, &mut files, &wanted)
        };
        self.looked.end_scan();
        let trouble = found.err().map(|error| error.to_string());
        if trouble != self.trouble {
            if let Some(trouble) = &trouble {
                tracing::error!("{trouble}");
            }
            self.trouble = trouble.clone();
        }
        if trouble.is_some() {
            return;
        }
        self.forget(&files).await;
        for file in files {
            let stamp = stamp(&file);
            let known = self.known.get(&file);
            let due = known.is_none_or(|known| {
                let again = known.again.as_ref();
                known.stamp != stamp || again.is_some_and(|(_, at)| at.elapsed() >= AGAIN)
            });
            if due {
                let before = known.filter(|known| known.stamp == stamp);
                let before = before.and_then(|known| known.again.as_ref());
                let before = before.map(|(again, _)| again.clone());
                let former = known.and_then(|known| known.id.clone());
                let (id, again) = self.deploy(&file, before.as_ref()).await;
                let again = again.map(|again| (again, Instant::now()));
                let id = id.or(former);
                self.known.insert(file, KnownFile { stamp, id, again });
            }
        }
    }

    /// Removed files: their definitions start no new instances, neither by schedule nor by event nor by request.
    async fn forget(&mut self, files: &[PathBuf]) {
        let gone = self.known.extract_if(.., |file, _| !files.contains(file));
        let gone: Vec<(PathBuf, KnownFile)> = gone.collect();
        if gone.is_empty() {
            return;
        }
        let all = self.deployed().await;
        for (file, known) in gone {
            let name = file.display().to_string();
            // All versions, because otherwise an earlier one would become the latest again.
            let of_file =
                |head: &&DefinitionHead| head.name == name || known.id.as_ref() == Some(&head.id);
            for head in all.iter().filter(of_file) {
                self.delete(&name, &head.id).await;
            }
        }
    }

    async fn deployed(&self) -> Vec<DefinitionHead> {
        match self.api.service.registry.catalog().await {
            Ok(catalog) => catalog.open().map(|one| one.head.clone()).collect(),
            Err(error) => {
                tracing::error!("the definitions cannot be read: {error}");
                Vec::new()
            }
        }
    }

    /// Handles files that were removed while no process was watching the folder.
    pub async fn forget_removed(&self) {
        for head in self.deployed().await {
            let file = Path::new(&head.name);
            let is_ours = file.starts_with(&self.folder);
            let is_known = self
                .known
                .values()
                .any(|known| known.id.as_ref() == Some(&head.id));
            if is_ours && !is_known && !file.exists() {
                self.delete(&head.name, &head.id).await;
            }
        }
    }

    async fn delete(&self, name: &str, id: &DefinitionId) {
        match self.api.service.delete(&*self.api.queries, id, true).await {
            Ok(Deletion::Deleted(0)) => {
                tracing::info!("{name} was removed: {id} starts no new instances");
            }
            Ok(Deletion::Deleted(instances)) => tracing::info!(
                "{name} was removed: {id} starts no new instances; {instances} instances continue to their end"
            ),
            Ok(Deletion::InUse(_) | Deletion::Unknown) => tracing::info!("{name} was removed"),
            Err(error) => {
                tracing::error!("{name} was removed, but {id} cannot be deleted: {error}")
            }
        }
    }

    /// Deploys a file. Returns the deployed definition, and the reason why the file must be read again. A reason that
    /// equals `before` isn't logged again.
    async fn deploy(
        &self,
        file: &Path,
        before: Option<&Again>,
    ) -> (Option<DefinitionId>, Option<Again>) {
        let name = file.display().to_string();
        let document = match swirl_documents::files::read_text(file) {
            Ok(document) => document,
            Err(error) => {
                tracing::error!("{name} cannot be read: {error}");
                return (None, None);
            }
        };
        let reader = self.reader.trusted(file.parent().unwrap_or(Path::new("")));
        let outcome = self
            .api
            .deploy_by(Arc::new(reader), Source::new(name.clone(), document), true)
            .await;
        match outcome {
            Ok(Outcome::New(id)) => {
                tracing::info!("{name}: {id} is deployed");
                (Some(id), None)
            }
            Ok(Outcome::Unchanged(id)) => {
                tracing::info!("{name}: {id} is deployed already");
                (Some(id), None)
            }
            Ok(Outcome::Replaced(id)) => {
                tracing::info!("{name}: {id} is deployed and replaces its previous content");
                (Some(id), None)
            }
            Ok(Outcome::Conflict(id)) => {
                tracing::error!(
                    "{name}: {id} is already deployed with different content: raise the version"
                );
                (Some(id), None)
            }
            Ok(Outcome::InUse(id, instances)) => {
                if !matches!(before, Some(Again::InUse(_))) {
                    tracing::warn!(
                        "{name}: {instances} instances of {id} run or have failed, so its previous content stays until they have ended; raise the version to deploy the new one now"
                    );
                }
                (Some(id), Some(Again::InUse(instances)))
            }
            Ok(Outcome::Invalid(found)) => {
                let again = Again::Refused(found);
                if before != Some(&again)
                    && let Again::Refused(found) = &again
                {
                    tracing::error!(
                        "{name} is not deployed; what was deployed before stays\n{}",
                        findings(&name, found)
                    );
                }
                (None, Some(again))
            }
            Err(error) => {
                tracing::error!("{name} cannot be deployed: {error}");
                (None, None)
            }
        }
    }
}

fn stamp(file: &Path) -> Stamp {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_gone_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let mut looked = Looked::default();
        for name in ["a.yaml", "b.yaml"] {
            std::fs::write(file(name), "a: 1").unwrap();
            assert!(!looked.is_definition(&file(name)));
        }
        looked.end_scan();
        assert!(!looked.is_definition(&file("b.yaml")));
        looked.end_scan();
        assert_eq!(looked.last.keys().collect::<Vec<_>>(), [&file("b.yaml")]);
        let definition = "specVersion: '0.8'\nid: a\nstates: [{name: A}]";
        std::fs::write(file("b.yaml"), definition).unwrap();
        assert!(looked.is_definition(&file("b.yaml")));
        looked.end_scan();
        assert!(looked.last.is_empty());
    }
}
