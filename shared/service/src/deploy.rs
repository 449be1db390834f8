//! Deployment. Definitions are immutable under (id, version).

use std::sync::Arc;

use swirl_engine::{Definition, Problem};
use swirl_model::ids::DefinitionId;
use swirl_model::instance::Status;
use swirl_model::workflow::Workflow;
use swirl_ports::{DefinitionRecord, Deleted, Filter, InstanceQueries};

use crate::schedules::mark_name;
use crate::{Error, Service};

/// A document that was read without errors, with all that it refers to.
#[derive(Debug, Clone)]
pub struct Deployment {
    pub name: String,
    pub document: String,
    pub resources: Vec<(String, String)>,
    pub workflow: Workflow,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deployed {
    New(DefinitionId),
    /// The same content is there already.
    Unchanged(DefinitionId),
    /// Other content is there under this id and version.
    Conflict(DefinitionId),
    Invalid(Vec<Problem>),
}

/// The number of instances up to which they are counted.
const COUNTED_MAX: usize = 1000;

/// The outcome of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// This many instances continue to their end.
    Deleted(usize),
    /// There are this many instances.
    InUse(usize),
    /// There is no such definition.
    Unknown,
}

impl Service {
    pub async fn deploy(&self, deployment: Deployment) -> Result<Deployed, Error> {
        let (record, definition) = match self.compiled(deployment) {
            Ok(compiled) => compiled,
            Err(problems) => return Ok(Deployed::Invalid(problems)),
        };
        let id = record.id.clone();
        match self.registry.store().put(record.clone()).await? {
            Some(old) if old.digest != record.digest => return Ok(Deployed::Conflict(id)),
            Some(old) if old.deleted.is_none() => return Ok(Deployed::Unchanged(id)),
            Some(old) => {
                self.undelete(old).await?;
                return Ok(Deployed::New(id));
            }
            None => {}
        }
        self.registry
            .insert(definition, &record.digest, record.bytes());
        Ok(Deployed::New(id))
    }

    /// Deploys in place of the existing definition with this id and version: for one process alone, and where no
    /// instance of the other is left.
    ///
    /// # Errors
    /// The store failed.
    pub async fn replace(&self, deployment: Deployment) -> Result<Deployed, Error> {
        let (record, definition) = match self.compiled(deployment) {
            Ok(compiled) => compiled,
            Err(problems) => return Ok(Deployed::Invalid(problems)),
        };
        let (id, digest, bytes) = (record.id.clone(), record.digest.clone(), record.bytes());
        self.registry.store().replace(record).await?;
        self.registry.insert(definition, &digest, bytes);
        Ok(Deployed::New(id))
    }

    fn compiled(
        &self,
        deployment: Deployment,
    ) -> Result<(DefinitionRecord, Arc<Definition>), Vec<Problem>> {
        let digest = digest(&deployment);
        let sizes = self.registry.sizes();
        let definition = Definition::compile_within(deployment.workflow, sizes)?;
        let record = DefinitionRecord {
            id: definition.id.clone(),
            digest,
            name: deployment.name,
            document: deployment.document,
            resources: deployment.resources,
            deployed_at: self.clock.now(),
            deleted: None,
            interests: Some(swirl_runtime::interests(&definition)),
        };
        let definition = definition.deployed(record.deployed_at);
        Ok((record, definition))
    }

    /// Deletes a definition: it starts no more instances. Existing instances continue to their end with `force`;
    /// without, there must be none. The same content can be deployed again.
    ///
    /// # Errors
    /// The store failed.
    pub async fn delete(
        &self,
        queries: &dyn InstanceQueries,
        id: &DefinitionId,
        force: bool,
    ) -> Result<Deletion, Error> {
        let record = self.registry.store().get(id).await?;
        let Some(record) = record.filter(|record| record.deleted.is_none()) else {
            return Ok(Deletion::Unknown);
        };
        let instances = instances_of(queries, id).await?;
        if instances > 0 && !force {
            return Ok(Deletion::InUse(instances));
        }
        self.mark_deleted(record, instances > 0).await?;
        Ok(Deletion::Deleted(instances))
    }

    /// It starts no more instances from now on. `in_use`: instances of it continue, and events are kept for them.
    ///
    /// # Errors
    /// The store failed.
    pub async fn mark_deleted(
        &self,
        mut record: DefinitionRecord,
        in_use: bool,
    ) -> Result<(), Error> {
        let at = self.clock.now();
        record.deleted = Some(Deleted { at, in_use });
        self.restore(record).await
    }

    /// Restores it as deployed. Starts that its schedule missed meanwhile are not made up for.
    ///
    /// # Errors
    /// The store failed.
    pub async fn undelete(&self, mut record: DefinitionRecord) -> Result<(), Error> {
        let mark = mark_name(&record.id.workflow);
        let store = self.registry.store();
        store.set_mark(&mark, self.clock.now()).await?;
        record.deleted = None;
        self.restore(record).await
    }

    /// Puts a record in place of the existing one with its id and version.
    ///
    /// # Errors
    /// The store failed.
    pub async fn restore(&self, record: DefinitionRecord) -> Result<(), Error> {
        self.registry.store().replace(record).await?;
        Ok(())
    }
}

/// How many instances of a definition may still continue: those that run, and those that failed.
///
/// # Errors
/// The store failed.
pub async fn instances_of(
    queries: &dyn InstanceQueries,
    id: &DefinitionId,
) -> Result<usize, Error> {
    let mut count = 0;
    for status in [Status::Running, Status::Faulted] {
        let filter = Filter {
            workflow: Some(id.workflow.to_string()),
            version: Some(id.version.to_string()),
            statuses: vec![status],
            limit: COUNTED_MAX,
            ..Filter::default()
        };
        count += queries.list(&filter).await?.len();
    }
    Ok(count)
}

fn digest(deployment: &Deployment) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut add = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    add(&deployment.document);
    for (uri, content) in &deployment.resources {
        add(uri);
        add(content);
    }
    hasher.finalize().to_hex().to_string()
}
