//! The definitions of a folder: deployed once, and again when their files change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use swirl_coordinator::api::{Api, Outcome, Source};

use super::DocumentReader;
use crate::client::findings;
use crate::commands::validate::ENDINGS;
use crate::scenario::discover;

/// How often the folder is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often a document that was refused is read again: what it refers to may be there now.
const AGAIN: Duration = Duration::from_secs(5);

pub struct Folder {
    folder: PathBuf,
    api: Api,
    reader: DocumentReader,
    known: BTreeMap<PathBuf, Known>,
    /// What was last wrong with the folder itself.
    trouble: Option<String>,
}

struct Known {
    stamp: Option<(SystemTime, u64)>,
    refused: Option<(Vec<Value>, Instant)>,
}

impl Folder {
    pub fn new(folder: &Path, api: Api, reader: DocumentReader) -> Folder {
        Folder {
            folder: folder.to_owned(),
            api,
            reader,
            known: BTreeMap::new(),
            trouble: None,
        }
    }

    /// Looks at the folder for ever.
    pub async fn watch(mut self) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.look().await;
        }
    }

    /// Deploys what is new, has changed, or was refused some time ago.
    pub async fn look(&mut self) {
        let mut files = Vec::new();
        let wanted = |name: &str| ENDINGS.iter().any(|ending| name.ends_with(ending));
        let found = discover::collect(&self.folder, &mut files, &wanted);
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
        self.known.retain(|file, _| {
            let there = files.contains(file);
            if !there {
                tracing::info!("{} is gone; what it defined stays deployed", file.display());
            }
            there
        });
        for file in files {
            let stamp = stamp(&file);
            let known = self.known.get(&file);
            let due = known.is_none_or(|known| {
                let refused = known.refused.as_ref();
                known.stamp != stamp || refused.is_some_and(|(_, at)| at.elapsed() >= AGAIN)
            });
            if due {
                let before = known
                    .filter(|known| known.stamp == stamp)
                    .and_then(|known| known.refused.as_ref())
                    .map(|(findings, _)| findings.clone());
                let refused = self.deploy(&file, before.as_deref()).await;
                let refused = refused.map(|findings| (findings, Instant::now()));
                self.known.insert(file, Known { stamp, refused });
            }
        }
    }

    /// The findings, if the document is refused. The same as `before` aren't told again.
    async fn deploy(&self, file: &Path, before: Option<&[Value]>) -> Option<Vec<Value>> {
        let name = file.display().to_string();
        let document = match std::fs::read_to_string(file) {
            Ok(document) => document,
            Err(error) => {
                tracing::error!("{name} cannot be read: {error}");
                return None;
            }
        };
        let reader = self.reader.trusted(file.parent().unwrap_or(Path::new("")));
        let outcome = self
            .api
            .deploy_by(Arc::new(reader), Source::new(name.clone(), document))
            .await;
        match outcome {
            Ok(Outcome::New(id)) => tracing::info!("{name}: {id} is deployed"),
            Ok(Outcome::Unchanged(id)) => tracing::info!("{name}: {id} is deployed already"),
            Ok(Outcome::Conflict(id)) => tracing::error!(
                "{name}: {id} is deployed with another content, which stays; definitions are \
                 immutable under id and version: raise the version"
            ),
            Ok(Outcome::Invalid(found)) => {
                if before != Some(&found[..]) {
                    tracing::error!(
                        "{name} is not deployed; what was deployed before stays\n{}",
                        findings(&name, &found)
                    );
                }
                return Some(found);
            }
            Err(error) => tracing::error!("{name} cannot be deployed: {error}"),
        }
        None
    }
}

/// When it was changed, and its size.
fn stamp(file: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
