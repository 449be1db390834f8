//! Deployment. Definitions are immutable under (id, version).

use swirl_engine::{Definition, Problem};
use swirl_model::ids::DefinitionId;
use swirl_model::workflow::Workflow;
use swirl_ports::DefinitionRecord;

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

impl Service {
    pub async fn deploy(&self, deployment: Deployment) -> Result<Deployed, Error> {
        let digest = digest(&deployment);
        let definition =
            match Definition::compile_within(deployment.workflow, self.registry.sizes()) {
                Ok(definition) => definition,
                Err(problems) => return Ok(Deployed::Invalid(problems)),
            };
        let record = DefinitionRecord {
            id: definition.id.clone(),
            digest,
            name: deployment.name,
            document: deployment.document,
            resources: deployment.resources,
            deployed_at: self.clock.now(),
        };
        let deployed_at = record.deployed_at;
        let id = record.id.clone();
        let digest = record.digest.clone();
        match self.registry.store().put(record).await? {
            Some(old) if old.digest == digest => Ok(Deployed::Unchanged(id)),
            Some(_) => Ok(Deployed::Conflict(id)),
            None => {
                self.registry.insert(definition.deployed(deployed_at));
                Ok(Deployed::New(id))
            }
        }
    }
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
