//! Stored definitions: the document as deployed, with all documents that it refers to.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use swirl_model::attribute::AttributeKind;
use swirl_model::event::EventMatch;
use swirl_model::ids::DefinitionId;
use swirl_model::time::Timestamp;
use swirl_model::workflow::Schedule;

use crate::error::Result;
use crate::events::Trigger;

/// Immutable under its id. It is lowered again when it is loaded; the lowered form of a digest is cached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DefinitionRecord {
    pub id: DefinitionId,
    /// Of the document and its resources.
    pub digest: String,
    /// Where the document came from, for messages.
    pub name: String,
    pub document: String,
    /// The resources that the document refers to: URI and content, as fetched at deployment.
    pub resources: Vec<(String, String)>,
    pub deployed_at: Timestamp,
    /// Deleted: no new instances of it start. The record stays, since its id and version never get
    /// different content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Deleted>,
    /// `None`: an older build deployed it, and they follow from the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interests: Option<Interests>,
}

impl DefinitionRecord {
    /// Of the document with all that it refers to.
    pub fn bytes(&self) -> usize {
        let resources = self.resources.iter();
        let resources = resources.map(|(uri, content)| uri.len() + content.len());
        self.document.len() + resources.sum::<usize>()
    }

    pub fn head(&self) -> DefinitionHead {
        DefinitionHead {
            id: self.id.clone(),
            digest: self.digest.clone(),
            name: self.name.clone(),
            deployed_at: self.deployed_at,
            deleted: self.deleted.clone(),
            interests: self.interests.clone(),
        }
    }
}

/// A definition without its document: enough to list it, and to know which events and instants concern it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DefinitionHead {
    pub id: DefinitionId,
    pub digest: String,
    pub name: String,
    pub deployed_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Deleted>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interests: Option<Interests>,
}

/// The events and instants that a definition acts on. They are determined once, at deployment, so no
/// process compiles a definition before it runs an instance of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Interests {
    /// Of a workflow that begins with an event state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// Events that instances wait for, or that start them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumed: Vec<Consumed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Its search attributes and their types. `None`: an older build deployed it, and they follow
    /// from the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Vec<(Arc<str>, AttributeKind)>>,
    /// Between waits for events and timers its instances need nothing but data. Not set where an older build deployed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_no_worker: bool,
}

/// An event definition that is consumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Consumed {
    pub name: String,
    pub filter: EventMatch,
}

/// A definition that was deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deleted {
    pub at: Timestamp,
    /// Instances of it continued then: events are kept for them.
    pub in_use: bool,
}

/// The changes of definitions after a revision.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// The revision to ask from next time. Smaller than the one that was asked from: the store was emptied, and all
    /// earlier knowledge is void.
    pub revision: u64,
    /// Definitions that were deployed, replaced or deleted since, as they are now, in the order of their
    /// last change.
    pub heads: Vec<DefinitionHead>,
}

#[async_trait]
pub trait Definitions: Send + Sync {
    /// Stores a definition. If there is already one under the same id, that is returned instead.
    async fn put(&self, record: DefinitionRecord) -> Result<Option<DefinitionRecord>>;
    /// Stores a definition in place of the one under its id, as the latest deployment.
    async fn replace(&self, record: DefinitionRecord) -> Result<()>;
    async fn get(&self, id: &DefinitionId) -> Result<Option<DefinitionRecord>>;
    /// Returns all definitions that any process changed after this revision; after 0, all definitions. It costs next
    /// to nothing if nothing changed, as each start asks.
    async fn changes(&self, since: u64) -> Result<Changes>;
    /// A named instant, up to which something has been done.
    async fn mark(&self, name: &str) -> Result<Option<Timestamp>>;
    /// Many at once, in the order of their names.
    async fn marks(&self, names: &[String]) -> Result<Vec<Option<Timestamp>>> {
        let mut marks = Vec::with_capacity(names.len());
        for name in names {
            marks.push(self.mark(name).await?);
        }
        Ok(marks)
    }
    async fn set_mark(&self, name: &str, at: Timestamp) -> Result<()>;
}
