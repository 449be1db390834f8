//! Deployed documents as clients see them. One may be large with all that it refers to, so the last ones are kept
//! without that, and few are read at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use swirl_api::Finding;
use swirl_model::ids::DefinitionId;
use swirl_ports::DefinitionRecord;
use tokio::sync::Semaphore;

use super::problem::Problem;

/// How many definitions are read at a time with all that they refer to.
const AT_ONCE: usize = 2;
/// The bytes of what is kept, and the usual number.
const BYTES_MAX: u64 = 16 << 20;
const USUAL: usize = 256;
/// A finding, roughly.
const FINDING_BYTES: usize = 500;

#[derive(Clone)]
pub struct Documents(Arc<Parts>);

struct Parts {
    kept: Cache<Key, Arc<Document>, Sizes>,
    room: Semaphore,
}

/// The id and the digest, since a definition may be replaced by another one with the same id.
pub type Key = (DefinitionId, String);

/// A definition with its warnings, if they are wanted.
pub type Read = (DefinitionRecord, Option<Vec<Finding>>);

/// A document without what it refers to.
pub struct Document {
    pub text: String,
    /// The URIs of what it refers to.
    pub resources: Vec<String>,
    /// If they were wanted when it was read.
    diagnostics: Option<Vec<Finding>>,
}

/// The parts that a client asks for in addition to the document.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    pub contents: bool,
    pub diagnostics: bool,
}

/// The parts that a client gets in addition to the document.
#[derive(Default)]
pub struct More {
    pub contents: Option<BTreeMap<String, String>>,
    pub diagnostics: Option<Vec<Finding>>,
}

#[derive(Clone)]
struct Sizes;

impl Weighter<Key, Arc<Document>> for Sizes {
    fn weight(&self, _: &Key, document: &Arc<Document>) -> u64 {
        let resources = document.resources.iter().map(String::len);
        let findings = document.diagnostics.as_ref().map_or(0, Vec::len);
        let bytes = document.text.len() + resources.sum::<usize>() + findings * FINDING_BYTES;
        bytes as u64
    }
}

impl Default for Documents {
    fn default() -> Documents {
        Documents(Arc::new(Parts {
            kept: Cache::with_weighter(USUAL, BYTES_MAX, Sizes),
            room: Semaphore::new(AT_ONCE),
        }))
    }
}

impl Documents {
    /// `read` gets the record, with its warnings if they are wanted. Returns `None` if there is no such definition any
    /// more.
    pub async fn get(
        &self,
        key: Key,
        wanted: Wanted,
        read: impl Future<Output = Result<Option<Read>, Problem>> + Send,
    ) -> Result<Option<(Arc<Document>, More)>, Problem> {
        if let Some(found) = self.known(&key, wanted) {
            return Ok(Some(found));
        }
        let found = {
            let _place = self.0.room.acquire().await;
            // Another request may have read it meanwhile.
            if let Some(found) = self.known(&key, wanted) {
                return Ok(Some(found));
            }
            read.await?
        };
        let Some((record, diagnostics)) = found else {
            return Ok(None);
        };
        let DefinitionRecord {
            document,
            resources,
            digest,
            ..
        } = record;
        let document = Document {
            text: document,
            resources: resources.iter().map(|(uri, _)| uri.clone()).collect(),
            diagnostics: match &diagnostics {
                Some(found) => Some(found.clone()),
                None => (self.0.kept.get(&key)).and_then(|kept| kept.diagnostics.clone()),
            },
        };
        let document = Arc::new(document);
        let contents = wanted.contents.then(|| resources.into_iter().collect());
        // The definition may have been replaced since its digest was looked up.
        if digest == key.1 {
            self.0.kept.insert(key, document.clone());
        }
        let more = More {
            contents,
            diagnostics,
        };
        Ok(Some((document, more)))
    }

    /// The kept document, if it is enough for the request.
    fn known(&self, key: &Key, wanted: Wanted) -> Option<(Arc<Document>, More)> {
        let document = self.0.kept.get(key).filter(|_| !wanted.contents)?;
        let diagnostics = match wanted.diagnostics {
            true => Some(document.diagnostics.clone()?),
            false => None,
        };
        let more = More {
            diagnostics,
            ..More::default()
        };
        Some((document, more))
    }
}
