//! Deployment. Definitions are immutable under (id, version).

use std::sync::Arc;

use swirl_engine::{Definition, Problem};
use swirl_model::ids::DefinitionId;
use swirl_model::instance::Status;
use swirl_model::workflow::Workflow;
use swirl_ports::{DefinitionRecord, Deleted, Filter, InstanceQueries, Listening};

use crate::schedules::mark_name;
use crate::{Error, Service};

/// A document without errors, together with everything that it refers to.
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
    /// The same content is already deployed.
    Unchanged(DefinitionId),
    /// Other content is already deployed under this id and version.
    Conflict(DefinitionId),
    Invalid(Vec<Problem>),
}

/// Instances are counted only up to this number.
const COUNTED_MAX: usize = 1000;

/// The outcome of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// Deleted. This many instances continue to their end.
    Deleted(usize),
    /// Not deleted, because there are this many instances.
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
                self.undelete(old, (record.document, record.resources))
                    .await?;
                self.forget_sets_before(&id).await;
                return Ok(Deployed::New(id));
            }
            None => {}
        }
        self.registry
            .insert(definition, &record.digest, record.bytes());
        self.forget_sets_before(&id).await;
        Ok(Deployed::New(id))
    }

    /// Events that an older version collected to start an instance go if the current one collects none. A newer one that
    /// does gets them.
    async fn forget_sets_before(&self, id: &DefinitionId) {
        let forgotten = async {
            let catalog = self.registry.catalog().await?;
            let mut versions = catalog.all().iter();
            let collected = versions.any(|one| {
                let trigger = one.head.interests.trigger.as_ref();
                trigger.is_some_and(|trigger| trigger.collects_for(&id.workflow))
            });
            let mut triggers = catalog.triggers.iter();
            match collected && !triggers.any(|it| it.collects_for(&id.workflow)) {
                true => self.forget_events_of(id).await,
                false => Ok(()),
            }
        };
        // The definition is deployed all the same, and the sets are dropped for newer ones at the latest.
        if let Err(error) = forgotten.await {
            tracing::warn!(definition = %id, %error, "events for an older version are kept longer than needed");
        }
    }

    /// Deploys in place of the existing definition with the same id and version. The caller must be the only process,
    /// and the old definition must have no instances left.
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
        let digest = deployment.digest();
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
            activated: None,
            interests: swirl_runtime::interests(&definition),
        };
        let definition = definition.deployed(record.deployed_at);
        Ok((record, definition))
    }

    /// Deletes a definition: it starts no more instances. Without `force` there must be no instances; with it, existing
    /// instances continue to their end. The same content can be deployed again.
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
        self.forget_events_of(id).await?;
        Ok(Deletion::Deleted(instances))
    }

    /// Forgets events that are kept for a deleted definition alone. Those that its instances may still wait for stay.
    pub(crate) async fn forget_events_of(&self, id: &DefinitionId) -> Result<(), Error> {
        let catalog = self.registry.catalog().await?;
        let listening = Listening::new(&catalog.triggers, &catalog.consumed);
        let forgotten = self
            .events
            .forget_unconsumed(&id.workflow, listening)
            .await?;
        if forgotten > 0 {
            tracing::info!(definition = %id, events = forgotten, "kept events were forgotten with their definition");
        }
        Ok(())
    }

    /// Makes a version the latest of its workflow, as if it were deployed now. Starts that its schedule would have had
    /// before are not made up for. Returns `None` if there is no such version, and whether anything changed.
    ///
    /// # Errors
    /// The store failed.
    pub async fn activate(&self, id: &DefinitionId) -> Result<Option<bool>, Error> {
        let record = self.registry.store().get(id).await?;
        let Some(mut record) = record.filter(|record| record.deleted.is_none()) else {
            return Ok(None);
        };
        let catalog = self.registry.catalog().await?;
        if catalog.latest.iter().any(|latest| latest.id() == id) {
            return Ok(Some(false));
        }
        record.activated = Some(self.clock.now());
        self.take_up(record).await?;
        self.forget_sets_before(id).await;
        Ok(Some(true))
    }

    /// Stops the definition from starting instances. `in_use`: it still has instances, and events are kept for them.
    ///
    /// # Errors
    /// The store failed.
    pub async fn mark_deleted(
        &self,
        mut record: DefinitionRecord,
        in_use: bool,
    ) -> Result<(), Error> {
        let at = self.clock.now();
        record.deleted = Some(Deleted {
            at,
            in_use,
            freed: false,
        });
        self.restore(record).await
    }

    /// Restores a definition as deployed; if it was freed, with this document and resources. Starts that its schedule
    /// missed meanwhile are not made up for.
    ///
    /// # Errors
    /// The store failed.
    pub async fn undelete(
        &self,
        mut old: DefinitionRecord,
        content: (String, Vec<(String, String)>),
    ) -> Result<(), Error> {
        if old.deleted.as_ref().is_some_and(|deleted| deleted.freed) {
            (old.document, old.resources) = content;
        }
        self.take_up(old).await
    }

    async fn take_up(&self, mut record: DefinitionRecord) -> Result<(), Error> {
        let mark = mark_name(&record.id.workflow);
        let store = self.registry.store();
        store.advance_mark(&mark, self.clock.now()).await?;
        record.deleted = None;
        self.restore(record).await
    }

    /// Replaces the record that has the same id and version.
    ///
    /// # Errors
    /// The store failed.
    pub async fn restore(&self, record: DefinitionRecord) -> Result<(), Error> {
        self.registry.store().replace(record).await?;
        Ok(())
    }
}

/// The number of instances of a definition that may still continue: running and failed ones.
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

impl Deployment {
    /// The digest of the document and its resources.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        add(&self.document);
        for (uri, content) in &self.resources {
            add(uri);
            add(content);
        }
        hasher.finalize().to_hex().to_string()
    }
}
