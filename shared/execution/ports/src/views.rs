//! Saved views: searches for instances that operators have saved under a name, for all users of the namespace.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use swirl_model::time::Timestamp;

use crate::error::Result;

/// The maximum number of saved views.
pub const VIEWS_MAX: usize = 100;

/// A search of the listing of instances. An absent part matches every instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedView {
    /// Unique.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub saved_at: Timestamp,
}

#[async_trait]
pub trait SavedViews: Send + Sync {
    /// Saves a view in place of the one with its name. Returns false, and changes nothing, if its name is new and there
    /// are [`VIEWS_MAX`] already.
    async fn save_view(&self, view: &SavedView) -> Result<bool>;

    /// All views, by name.
    async fn views(&self) -> Result<Vec<SavedView>>;

    /// Returns whether there was one with this name.
    async fn remove_view(&self, name: &str) -> Result<bool>;
}
