//! Deployment: reads a document, prepares its functions and stores it, in this order.

use std::sync::Arc;

use swirl_api::Finding;
use swirl_documents::codes;
use swirl_engine::{Definition, Problem};
use swirl_functions::resources::Waiting;
use swirl_model::ids::DefinitionId;
use swirl_ports::{DefinitionRecord, InstanceQueries};
use swirl_service::{Deployed, Deployment, Error, Service, instances_of};
use tokio::sync::Mutex;

use crate::reader::{ReadDocument, Reader, Source};

/// The outcome of a deployment.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    New(DefinitionId),
    Unchanged(DefinitionId),
    /// Another document is deployed under this id and version, so the version must be raised.
    Conflict(DefinitionId),
    /// It replaced another document under this id and version.
    Replaced(DefinitionId),
    /// The other document wasn't replaced, because it has this many instances, which would have to continue with the
    /// new one.
    InUse(DefinitionId, usize),
    /// The findings.
    Invalid(Vec<Finding>),
}

/// The outcome of a check: what a deployment of the document would lead to.
pub struct Checked {
    pub outcome: Outcome,
    pub warnings: Vec<Finding>,
    /// The definition, unless the document is invalid.
    pub definition: Option<Arc<Definition>>,
    /// The URIs of the documents that it refers to.
    pub resources: Vec<String>,
}

/// Deploys documents to a service.
#[derive(Clone)]
pub struct Deployer {
    service: Service,
    /// Counts the instances of a document before it is replaced.
    queries: Arc<dyn InstanceQueries>,
    /// Only one deployment at a time, because two with the same id must not both prepare their functions.
    deploying: Arc<Mutex<()>>,
}

impl Deployer {
    /// Each process has one deployer.
    pub fn new(service: Service, queries: Arc<dyn InstanceQueries>) -> Deployer {
        Deployer {
            service,
            queries,
            deploying: Arc::default(),
        }
    }

    /// Returns the outcome that deploying a document would have. Nothing is stored, and no function is prepared.
    /// Dropping the future stops fetching.
    ///
    /// # Errors
    /// The store failed.
    pub async fn check(
        &self,
        reader: Arc<dyn Reader>,
        mut source: Source,
    ) -> Result<Checked, Error> {
        let reading = reader.clone();
        let sizes = self.service.registry.sizes();
        let (_waiting, wanted) = Waiting::begin();
        source.wanted = wanted;
        let checked = blocking(move || {
            if source.wanted.is_over() {
                return Err(Vec::new());
            }
            let read = reading.read(&source)?;
            reading.check_functions(&read)?;
            let compiled = Definition::compile_within(read.deployment.workflow.clone(), sizes);
            let problems = |found: Vec<Problem>| found.iter().map(problem).collect::<Vec<_>>();
            let definition = compiled.map_err(problems)?;
            Ok((read.deployment, read.warnings, definition))
        });
        let (deployment, warnings, definition) = match checked.await {
            Ok(checked) => checked,
            Err(findings) => {
                return Ok(Checked {
                    outcome: Outcome::Invalid(findings),
                    warnings: Vec::new(),
                    definition: None,
                    resources: Vec::new(),
                });
            }
        };
        let id = Definition::id_of(&deployment.workflow);
        let known = self.service.registry.store().get(&id).await?;
        let outcome = match known {
            None => Outcome::New(id),
            Some(old) if !is_same(&*reader, &old, &deployment) => Outcome::Conflict(id),
            Some(old) if old.deleted.is_some() => Outcome::New(id),
            Some(_) => Outcome::Unchanged(id),
        };
        let resources = deployment.resources.into_iter();
        Ok(Checked {
            outcome,
            warnings,
            definition: Some(definition),
            resources: resources.map(|(uri, _)| uri).collect(),
        })
    }

    /// Reads and deploys a document. Dropping the future stops fetching. Running instances keep the definition with
    /// which they started. `replaces`: replaces another document under the same id and version, unless that has
    /// instances; only for a single process. Also returns the warnings about the document.
    ///
    /// # Errors
    /// The store failed.
    pub async fn deploy(
        &self,
        reader: Arc<dyn Reader>,
        mut source: Source,
        replaces: bool,
    ) -> Result<(Outcome, Vec<Finding>), Error> {
        let reading = reader.clone();
        let (_waiting, wanted) = Waiting::begin();
        source.wanted = wanted;
        let read = blocking(move || match source.wanted.is_over() {
            false => reading.read(&source),
            true => Err(Vec::new()),
        });
        let mut read = match read.await {
            Ok(read) => read,
            Err(findings) => return Ok((Outcome::Invalid(findings), Vec::new())),
        };
        let warnings = std::mem::take(&mut read.warnings);
        let name = read.deployment.name.clone();
        let outcome = self.deploy_read(reader, read, replaces).await?;
        if let Outcome::New(_) | Outcome::Replaced(_) = outcome {
            note(&name, &warnings);
        }
        Ok((outcome, warnings))
    }

    async fn deploy_read(
        &self,
        reader: Arc<dyn Reader>,
        read: ReadDocument,
        replaces: bool,
    ) -> Result<Outcome, Error> {
        let ReadDocument {
            deployment,
            functions,
            ..
        } = read;
        let _one = self.deploying.lock().await;
        let id = Definition::id_of(&deployment.workflow);
        let service = &self.service;
        let known = service.registry.store().get(&id).await?;
        if let Some(old) = &known {
            let same = is_same(&*reader, old, &deployment);
            match (same, old.deleted.is_some()) {
                (true, false) => return Ok(Outcome::Unchanged(id)),
                (true, true) => {
                    let content = (deployment.document, deployment.resources);
                    service.undelete(old.clone(), content).await?;
                    return Ok(Outcome::New(id));
                }
                (false, _) if !replaces => return Ok(Outcome::Conflict(id)),
                (false, _) => {}
            }
            // No instances start while existing ones are counted.
            service.mark_deleted(old.clone(), true).await?;
            let instances = instances_of(&*self.queries, &id).await?;
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
        let prepared = blocking(move || {
            let prepared = reader.prepare(&named, &deployment, functions);
            prepared.map(|()| deployment)
        });
        let deployment = match prepared.await {
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
                Outcome::Invalid(problems.iter().map(problem).collect())
            }
        })
    }
}

/// Logs the warnings about parts that do something else than their author expects.
fn note(name: &str, warnings: &[Finding]) {
    let loud = [
        codes::EXPRESSION_NOT_MARKED.as_str(),
        codes::FUNCTION_WITHOUT_ADDRESS.as_str(),
    ];
    for warning in warnings {
        if loud.contains(&&*warning.code)
            && let (Some(line), Some(column)) = (warning.line, warning.column)
        {
            tracing::warn!("{name}:{line}:{column}: {}", warning.message);
        }
    }
}

fn is_same(reader: &dyn Reader, old: &DefinitionRecord, new: &Deployment) -> bool {
    if old.deleted.as_ref().is_some_and(|deleted| deleted.freed) {
        return old.digest == new.digest();
    }
    old.resources == new.resources && reader.is_equivalent(&old.document, &new.document)
}

fn problem(problem: &Problem) -> Finding {
    Finding::error("definition-invalid", &problem.to_string())
}

/// Runs blocking work on another thread. If the reader panics, that is reported as a finding and the process continues.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Vec<Finding>> + Send + 'static,
) -> Result<T, Vec<Finding>> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => {
            tracing::error!(%error, "a document could not be read");
            Err(vec![Finding::error(
                "definition-invalid",
                "reading this document failed inside Swirl; please report it",
            )])
        }
    }
}
