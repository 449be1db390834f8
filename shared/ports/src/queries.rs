//! Questions about instances: what people and dashboards ask, and nothing that executing one needs.

use std::sync::Arc;

use async_trait::async_trait;
use swirl_model::WorkflowError;
use swirl_model::event::HistoryEntry;
use swirl_model::ids::InstanceId;
use swirl_model::instance::{Header, Instance, Status};
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;

use crate::error::Result;
use crate::execution::InstanceRecords;

/// A line of a listing.
#[derive(Debug, Clone)]
pub struct Summary {
    pub header: Arc<Header>,
    pub status: Status,
    pub suspended: bool,
    pub ended_at: Option<Timestamp>,
    pub error: Option<WorkflowError>,
}

/// What is kept of an instance's history.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeptHistory {
    /// How many older entries there were.
    pub gone: u64,
    pub entries: Vec<HistoryEntry>,
}

/// What a listing is narrowed to.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub workflow: Option<String>,
    pub version: Option<String>,
    pub status: Option<Status>,
    pub key: Option<String>,
    /// Instances whose id begins so. A store may look through the newest instances only, as many as it says.
    pub prefix: Option<String>,
    /// Instances that come after this one in the listing (newest first).
    pub after: Option<InstanceId>,
    pub limit: usize,
}

impl Filter {
    /// Whether an id begins as it must.
    pub fn begins(&self, id: &InstanceId) -> bool {
        let prefix = self.prefix.as_deref();
        prefix.is_none_or(|prefix| id.as_str().starts_with(prefix))
    }
}

#[async_trait]
pub trait InstanceQueries: InstanceRecords {
    async fn list(&self, filter: &Filter) -> Result<Vec<Summary>>;
    async fn history(&self, id: &InstanceId) -> Result<Vec<HistoryEntry>>;
    /// The same, with the number of older entries that are no longer kept.
    async fn kept_history(&self, id: &InstanceId) -> Result<KeptHistory> {
        let entries = self.history(id).await?;
        Ok(KeptHistory { gone: 0, entries })
    }

    /// An instance, and those of its scopes that have not ended.
    async fn view(&self, id: &InstanceId) -> Result<Option<(Instance, Vec<Scope>)>> {
        let Some(instance) = self.instance(id).await? else {
            return Ok(None);
        };
        let mut scopes = self.scopes(id).await?;
        scopes.retain(|scope| !scope.ended());
        Ok(Some((instance, scopes)))
    }

    /// The root scope's record alone.
    async fn root(&self, id: &InstanceId) -> Result<Option<Scope>> {
        let scopes = self.scopes(id).await?;
        Ok(scopes.into_iter().find(|scope| scope.id.is_root()))
    }

    /// Waits until a watched instance may have ended: a store that is told of it returns then. Who
    /// waits looks now and then all the same, and more often where `false` is answered at once by
    /// [`InstanceQueries::tells_ends`].
    async fn wait_ended(&self, _id: &InstanceId) {
        std::future::pending().await
    }

    /// Whether [`InstanceQueries::wait_ended`] is told.
    fn tells_ends(&self) -> bool {
        false
    }
}
