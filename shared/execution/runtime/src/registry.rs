//! The deployed definitions, and the compiled ones that this process has used.
//!
//! A process knows only the events that a definition listens to until it uses the definition, and each time it reads
//! only the changes. It reads and compiles a document when it first runs an instance of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use swirl_engine::{Definition, Sizes};
use swirl_model::attribute::AttributeKind;
use swirl_model::ids::DefinitionId;
use swirl_model::workflow::{Version, Workflow};
use swirl_ports::{DefinitionRecord, Definitions};

use crate::Error;
use crate::catalog::{Catalog, Deployed};
use crate::compiled::Compiled;
use crate::rates::{Rates, StartLimits};

/// Turns a stored document into its canonical workflow. The binary provides it.
pub type Lower = Box<dyn Fn(&DefinitionRecord) -> Result<Workflow, String> + Send + Sync>;

pub struct Registry {
    store: Arc<dyn Definitions>,
    lower: Lower,
    compiled: Mutex<Compiled>,
    /// Counts the requests for the catalog.
    asked: AtomicU64,
    answer: futures::lock::Mutex<Answer>,
    sizes: Sizes,
    rates: Rates,
}

/// The catalog as the store last returned it.
struct Answer {
    /// The number of requests before the store was queried. This is the answer to those requests.
    before: u64,
    result: Result<Arc<Catalog>, Error>,
    /// The last successful answer.
    known: Arc<Catalog>,
}

/// The workflow, or this version of it, doesn't exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no workflow '{workflow}'{}", version.as_ref().map(|v| format!(" in version {v}")).unwrap_or_default())]
pub struct Unknown {
    pub workflow: String,
    pub version: Option<String>,
}

impl Registry {
    pub fn new(store: Arc<dyn Definitions>, lower: Lower) -> Registry {
        let nothing = Arc::new(Catalog::default());
        Registry {
            store,
            lower,
            compiled: Mutex::default(),
            asked: AtomicU64::new(0),
            answer: futures::lock::Mutex::new(Answer {
                before: 0,
                result: Ok(nothing.clone()),
                known: nothing,
            }),
            sizes: Sizes::default(),
            rates: Rates::default(),
        }
    }

    /// Sets the limits on the data of definitions.
    #[must_use]
    pub fn within(mut self, sizes: Sizes) -> Registry {
        self.sizes = sizes;
        self
    }

    /// Sets the limits on the rate of starts. By default there are none.
    #[must_use]
    pub fn starting(mut self, limits: StartLimits) -> Registry {
        self.rates = Rates::new(limits);
        self
    }

    /// The counters of the starts of this process.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    pub fn store(&self) -> &Arc<dyn Definitions> {
        &self.store
    }

    fn compiled(&self) -> MutexGuard<'_, Compiled> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a definition that is already compiled, with the digest and the size of its source.
    pub fn insert(&self, definition: Arc<Definition>, digest: &str, bytes: usize) {
        self.compiled().insert(definition, digest, bytes);
    }

    pub async fn get(&self, id: &DefinitionId) -> Result<Arc<Definition>, Error> {
        if let Some(found) = self.compiled().get(id) {
            return Ok(found);
        }
        let record = self.store.get(id).await?.ok_or_else(|| Error::Definition {
            id: id.to_string(),
            reason: "it isn't stored".to_owned(),
        })?;
        let compiled = self.compile(&record)?;
        self.insert(compiled.clone(), &record.digest, record.bytes());
        Ok(compiled)
    }

    fn compile(&self, record: &DefinitionRecord) -> Result<Arc<Definition>, Error> {
        let broken = |reason| Error::Definition {
            id: record.id.to_string(),
            reason,
        };
        let workflow = (self.lower)(record).map_err(broken)?;
        let compiled = Definition::compile_within(workflow, self.sizes);
        let compiled = compiled.map(|definition| definition.deployed(record.deployed_at));
        compiled.map_err(|problems| {
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            broken(texts.join("; "))
        })
    }

    /// Returns the definition that a reference means. Without a version, it is the highest by SemVer, or the latest
    /// deployed if versions aren't SemVer (docs/language.md#decision-50). `latest` means the same, unless there is a
    /// version with that name.
    pub async fn resolve(
        &self,
        workflow: &str,
        version: Option<&str>,
    ) -> Result<Result<Arc<Definition>, Unknown>, Error> {
        let catalog = self.catalog().await?;
        let found = match version {
            Some(version) => {
                let id = DefinitionId {
                    workflow: workflow.into(),
                    version: version.into(),
                };
                let one = catalog.one(&id);
                let one = one.filter(|one| one.head.deleted.is_none());
                match version {
                    Version::LATEST => one.or_else(|| catalog.latest_of(workflow)),
                    _ => one,
                }
            }
            None => catalog.latest_of(workflow),
        };
        match found {
            Some(found) => self.get(found.id()).await.map(Ok),
            None => Ok(Err(Unknown {
                workflow: workflow.to_owned(),
                version: version.map(ToOwned::to_owned),
            })),
        }
    }

    /// Returns all definitions that any process had deployed when this was called, so that a deployment takes effect
    /// everywhere as soon as it has been confirmed. One query to the store answers all callers that arrived before it.
    ///
    /// # Errors
    /// The store failed.
    pub async fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answer = self.answer.lock().await;
        if number >= answer.before {
            let before = self.asked.load(Ordering::SeqCst);
            let result = self.ask(&answer.known).await;
            if let Ok(catalog) = &result {
                answer.known = catalog.clone();
            }
            (answer.before, answer.result) = (before, result);
        }
        answer.result.clone()
    }

    /// Returns the last result of [`Registry::catalog`] without a query. Other definitions may have been deployed
    /// since.
    pub async fn known(&self) -> Arc<Catalog> {
        self.answer.lock().await.known.clone()
    }

    /// Returns the search attributes with their types, which may differ between definitions. Attributes of deleted
    /// definitions are included, since their instances may still be stored.
    ///
    /// # Errors
    /// The store failed.
    pub async fn search_attributes(
        &self,
    ) -> Result<BTreeMap<Arc<str>, BTreeSet<AttributeKind>>, Error> {
        let mut found: BTreeMap<Arc<str>, BTreeSet<AttributeKind>> = BTreeMap::new();
        for one in self.catalog().await?.all() {
            for (name, kind) in &one.head.interests.search {
                found.entry(name.clone()).or_default().insert(*kind);
            }
        }
        Ok(found)
    }

    async fn ask(&self, known: &Arc<Catalog>) -> Result<Arc<Catalog>, Error> {
        let changes = self.store.changes(known.revision).await?;
        if changes.revision == known.revision {
            return Ok(known.clone());
        }
        let mut changed = Vec::with_capacity(changes.heads.len());
        for head in changes.heads {
            // A replaced definition is compiled again at its next use.
            self.compiled().forget_others(&head.id, &head.digest);
            changed.push(Arc::new(Deployed::new(head)));
        }
        let is_anew = changes.revision < known.revision;
        let nothing = Catalog::default();
        let before = if is_anew { &nothing } else { known };
        Ok(Arc::new(before.after(changes.revision, changed)))
    }
}
