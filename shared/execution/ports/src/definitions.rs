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

/// Never changes under its id. The document is lowered again when the record is loaded; the lowered form is cached by
/// digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DefinitionRecord {
    pub id: DefinitionId,
    /// The digest of the document and its resources.
    pub digest: String,
    /// The origin of the document, for messages.
    pub name: String,
    pub document: String,
    /// The resources that the document refers to: URI and content, as fetched at deployment.
    pub resources: Vec<(String, String)>,
    pub deployed_at: Timestamp,
    /// Set if the definition was deleted, so that no new instances start. The record stays, since an id and version
    /// must never get different content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Deleted>,
    /// When an operator made it the current version of its workflow: it stays that until a newer one is deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activated: Option<Timestamp>,
    pub interests: Interests,
}

impl DefinitionRecord {
    /// The size of the document with all documents that it refers to.
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
            activated: self.activated,
            interests: self.interests.clone(),
        }
    }
}

/// A definition without its document: enough to list it, and to know which events and instants it acts on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DefinitionHead {
    pub id: DefinitionId,
    pub digest: String,
    pub name: String,
    pub deployed_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Deleted>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activated: Option<Timestamp>,
    pub interests: Interests,
}

/// The events and instants that a definition acts on. They are determined once, at deployment, so a process needn't
/// compile a definition before it runs an instance of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Interests {
    /// Set if the workflow begins with an event state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// The events that start instances or that instances wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consumed: Vec<Consumed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// The search attributes and their types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<(Arc<str>, AttributeKind)>,
    /// Instances need nothing but data between their waits for events and timers.
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
    /// Instances of the definition were still running at the time, so events are kept for them.
    pub in_use: bool,
    /// No instance is left, so the document and everything that it refers to are no longer stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub freed: bool,
}

/// The changes to definitions after a revision.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// The revision to continue from. If it is smaller than the requested one, the store was emptied and everything
    /// known before is void.
    pub revision: u64,
    /// The definitions that were deployed, replaced or deleted since, in their current form and in the order of their
    /// last change.
    pub heads: Vec<DefinitionHead>,
}

#[async_trait]
pub trait Definitions: Send + Sync {
    /// Stores a definition. If there is already one under the same id, returns that one instead.
    async fn put(&self, record: DefinitionRecord) -> Result<Option<DefinitionRecord>>;
    /// Replaces the definition under its id; it counts as the latest deployment.
    async fn replace(&self, record: DefinitionRecord) -> Result<()>;
    /// Like [`Definitions::replace`], if the definition under the id is still `old`; otherwise returns false.
    async fn replace_if(&self, old: &DefinitionRecord, new: DefinitionRecord) -> Result<bool>;
    async fn get(&self, id: &DefinitionId) -> Result<Option<DefinitionRecord>>;
    /// Returns all definitions that any process changed after this revision; after 0, all definitions. Every start
    /// calls this, so it must be cheap if nothing changed.
    async fn changes(&self, since: u64) -> Result<Changes>;
    /// Returns a mark: a named instant up to which some work is done.
    async fn mark(&self, name: &str) -> Result<Option<Timestamp>>;
    /// Returns several marks, in the order of their names.
    async fn marks(&self, names: &[String]) -> Result<Vec<Option<Timestamp>>> {
        let mut marks = Vec::with_capacity(names.len());
        for name in names {
            marks.push(self.mark(name).await?);
        }
        Ok(marks)
    }
    async fn set_mark(&self, name: &str, at: Timestamp) -> Result<()>;
    /// Like [`Definitions::set_mark`], unless the mark is later already: a process that stood still must not undo what
    /// others have recorded since.
    async fn advance_mark(&self, name: &str, at: Timestamp) -> Result<()>;
}
