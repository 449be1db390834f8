//! Stored definitions: the document as it was deployed with all that it refers to.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use swirl_model::ids::DefinitionId;
use swirl_model::time::Timestamp;

use crate::store::Result;

/// Immutable under its id. It is lowered again when it is loaded; what a digest has been lowered
/// to is cached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DefinitionRecord {
    pub id: DefinitionId,
    /// Of the document and its resources.
    pub digest: String,
    /// Where the document came from, for messages.
    pub name: String,
    pub document: String,
    /// What the document refers to: URI and content, as fetched at deployment.
    pub resources: Vec<(String, String)>,
    pub deployed_at: Timestamp,
    /// Deleted: nothing new starts of it. The record stays, since its id and version never mean another
    /// content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Deleted>,
}

/// A definition that was deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deleted {
    pub at: Timestamp,
    /// Instances of it went on then: events are kept for them.
    pub in_use: bool,
}

#[async_trait]
pub trait Definitions: Send + Sync {
    /// Stores a definition. The one that is there already under the same id is returned instead,
    /// if there is one.
    async fn put(&self, record: DefinitionRecord) -> Result<Option<DefinitionRecord>>;
    /// Stores a definition in place of the one under its id, as the one that was deployed last.
    async fn replace(&self, record: DefinitionRecord) -> Result<()>;
    async fn get(&self, id: &DefinitionId) -> Result<Option<DefinitionRecord>>;
    /// All of them, the deleted ones too, in the order of deployment.
    async fn all(&self) -> Result<Vec<DefinitionRecord>>;
    /// Another number whenever something was deployed, by whichever process. A backend of one
    /// process needs none: who deploys knows.
    async fn revision(&self) -> Result<u64> {
        Ok(0)
    }
    /// A named instant: up to when something has been done.
    async fn mark(&self, name: &str) -> Result<Option<Timestamp>>;
    async fn set_mark(&self, name: &str, at: Timestamp) -> Result<()>;
}
