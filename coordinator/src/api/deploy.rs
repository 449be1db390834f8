//! What the handlers share, and deployment through it: the API's own and that of `swirl dev`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use swirl_engine::Definition;
use swirl_model::ids::DefinitionId;
use tokio::sync::Mutex;

use super::dead_letters::DeadLetters;
use super::router::plain_host;
use crate::access::Access;
use crate::{Deployed, Deployment, Error, Service};

/// A document, and what it refers to as far as that came with it.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// Where it comes from, for messages.
    pub name: String,
    pub document: String,
    /// By URI, as the document writes it.
    pub resources: Vec<(String, String)>,
}

impl Source {
    /// A document alone.
    pub fn new(name: String, document: String) -> Source {
        Source {
            name,
            document,
            resources: Vec::new(),
        }
    }
}

/// Turns a document into a deployment: given by the binary, which knows the editions of the
/// language, where documents are fetched and how functions are called. Both methods may block.
pub trait Reader: Send + Sync {
    /// # Errors
    /// All findings, each an object with at least `severity` and `message`.
    fn read(&self, source: &Source) -> Result<Deployment, Vec<Value>>;

    /// Makes the functions of a definition callable, before its first instance can be there.
    ///
    /// # Errors
    /// As for [`Reader::read`].
    fn prepare(&self, id: &DefinitionId, deployment: &Deployment) -> Result<(), Vec<Value>>;

    /// Whether two documents say the same, and differ in comments and layout alone.
    fn says_the_same(&self, old: &str, new: &str) -> bool {
        old == new
    }
}

/// What came of a deployment.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    New(DefinitionId),
    Unchanged(DefinitionId),
    /// Another document is there under this id and version: the version is to be raised.
    Conflict(DefinitionId),
    /// In place of another document under this id and version.
    Replaced(DefinitionId),
    /// The same, but so many instances of the other document would have to go on with this one.
    InUse(DefinitionId, usize),
    /// The findings.
    Invalid(Vec<Value>),
}

#[derive(Clone)]
pub struct Api {
    pub service: Service,
    reader: Arc<dyn Reader>,
    /// Deployments are made one after another: two with the same id must not both prepare their
    /// functions under it.
    deploying: Arc<Mutex<()>>,
    pub(crate) access: Arc<Access>,
    stopping: Arc<AtomicBool>,
    /// Names that requests may use beside this machine's; `None`: any.
    pub(super) hosts: Option<Arc<[String]>>,
    pub(super) metrics: Option<Metrics>,
    pub(super) limited: Option<Limited>,
    pub(super) dead_letters: Option<Arc<dyn DeadLetters>>,
}

/// Metrics in the text format of Prometheus; `None`: they cannot be told now.
pub type Metrics = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// What cannot be done now, though requests are answered.
pub type Limited = Arc<dyn Fn() -> BoxFuture<'static, Vec<String>> + Send + Sync>;

impl Api {
    pub fn new(service: Service, reader: Arc<dyn Reader>, access: Access) -> Api {
        Api {
            service,
            reader,
            deploying: Arc::default(),
            access: Arc::new(access),
            stopping: Arc::default(),
            hosts: None,
            metrics: None,
            limited: None,
            dead_letters: None,
        }
    }

    /// `/readyz` says what cannot be done.
    #[must_use]
    pub fn with_limited(mut self, limited: Limited) -> Api {
        self.limited = Some(limited);
        self
    }

    /// Where dead letters are kept; without it there are none.
    #[must_use]
    pub fn with_dead_letters(mut self, kept: Arc<dyn DeadLetters>) -> Api {
        self.dead_letters = Some(kept);
        self
    }

    /// From now on nothing is waited for: whoever waits for the end of an instance is told how it
    /// stands, and can go on waiting elsewhere.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Requests name this machine: `localhost` or an address. A web page whose name leads here could
    /// else do what the developer may do who looks at it.
    #[must_use]
    pub fn only_local(self) -> Api {
        self.only_hosts(&[])
    }

    /// As [`Api::only_local`], but for these names.
    #[must_use]
    pub fn only_hosts(mut self, hosts: &[String]) -> Api {
        let hosts = hosts.iter().map(|host| plain_host(host));
        self.hosts = Some(hosts.collect());
        self
    }

    /// Serves them at `/metrics`.
    #[must_use]
    pub fn with_metrics(mut self, metrics: Metrics) -> Api {
        self.metrics = Some(metrics);
        self
    }

    /// Reads and deploys a document. What is running keeps the definition that it started with.
    ///
    /// # Errors
    /// The store failed.
    pub async fn deploy(&self, source: Source) -> Result<Outcome, Error> {
        self.deploy_by(self.reader.clone(), source, false).await
    }

    /// The same with another reader than that of requests. `replaces`: another document under the same id
    /// and version is replaced, unless instances of it are there. For one process alone.
    ///
    /// # Errors
    /// The store failed.
    pub async fn deploy_by(
        &self,
        reader: Arc<dyn Reader>,
        source: Source,
        replaces: bool,
    ) -> Result<Outcome, Error> {
        let reading = reader.clone();
        let read = blocking(move || reading.read(&source)).await;
        let deployment = match read {
            Ok(deployment) => deployment,
            Err(findings) => return Ok(Outcome::Invalid(findings)),
        };
        let _one = self.deploying.lock().await;
        let id = Definition::id_of(&deployment.workflow);
        let service = &self.service;
        let known = service.registry.store().get(&id).await?;
        if let Some(old) = &known {
            let same = old.resources == deployment.resources
                && reader.says_the_same(&old.document, &deployment.document);
            match (same, old.deleted.is_some()) {
                (true, false) => return Ok(Outcome::Unchanged(id)),
                (true, true) => {
                    service.undelete(old.clone()).await?;
                    return Ok(Outcome::New(id));
                }
                (false, _) if !replaces => return Ok(Outcome::Conflict(id)),
                (false, _) => {}
            }
            // Nothing new starts while it is looked whether instances are there.
            service.mark_deleted(old.clone(), true).await?;
            let instances = service.instances_of(&id).await?;
            if instances > 0 {
                service.restore(old.clone()).await?;
                return Ok(Outcome::InUse(id, instances));
            }
        }
        let undo = async || match &known {
            Some(old) => service.restore(old.clone()).await,
            None => Ok(()),
        };
        let named = id.clone();
        let prepared =
            blocking(move || reader.prepare(&named, &deployment).map(|()| deployment)).await;
        let deployment = match prepared {
            Ok(deployment) => deployment,
            Err(findings) => {
                undo().await?;
                return Ok(Outcome::Invalid(findings));
            }
        };
        let deployed = match &known {
            Some(_) => service.replace(deployment).await?,
            None => service.deploy(deployment).await?,
        };
        Ok(match deployed {
            Deployed::New(id) if known.is_some() => Outcome::Replaced(id),
            Deployed::New(id) => Outcome::New(id),
            Deployed::Unchanged(id) => Outcome::Unchanged(id),
            Deployed::Conflict(id) => Outcome::Conflict(id),
            Deployed::Invalid(problems) => {
                undo().await?;
                Outcome::Invalid(
                    problems
                        .iter()
                        .map(|problem| finding(&problem.to_string()))
                        .collect(),
                )
            }
        })
    }
}

fn finding(message: &str) -> Value {
    json!({"severity": "error", "code": "definition-invalid", "message": message})
}

/// Runs what may block elsewhere. A reader that panics is an error in it, told as a finding: the
/// process goes on.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Vec<Value>> + Send + 'static,
) -> Result<T, Vec<Value>> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => {
            tracing::error!(%error, "a document could not be read");
            Err(vec![finding(
                "reading this document failed inside Swirl; please report it",
            )])
        }
    }
}
