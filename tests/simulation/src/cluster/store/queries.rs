//! Reads instances in the store that all processes share.

use std::sync::Arc;

use async_trait::async_trait;
use swirl_model::event::HistoryEntry;
use swirl_model::ids::InstanceId;
use swirl_model::instance::Instance;
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_ports::*;

use super::SharedStore;
use crate::wait::block_on;

#[async_trait]
impl InstanceRecords for SharedStore {
    async fn instance(&self, id: &InstanceId) -> Result<Option<Instance>> {
        self.call(|inner| block_on(inner.instance(id))).await
    }

    async fn scopes(&self, id: &InstanceId) -> Result<Vec<Scope>> {
        self.call(|inner| block_on(inner.scopes(id))).await
    }
}

#[async_trait]
impl InstanceQueries for SharedStore {
    async fn page(&self, filter: &Filter, keep: Keep<'_>) -> Result<Page> {
        self.call(|inner| block_on(inner.page(filter, keep))).await
    }

    async fn counts(
        &self,
        workflows: &[Arc<str>],
    ) -> Result<(swirl_ports::Counts, Vec<swirl_ports::Counts>)> {
        self.call(|inner| block_on(inner.counts(workflows))).await
    }

    async fn counts_by_version(&self, workflow: &str) -> Result<VersionCounts> {
        self.call(|inner| block_on(inner.counts_by_version(workflow)))
            .await
    }

    async fn trend(&self, now: Timestamp) -> Result<Trend> {
        self.call(|inner| block_on(inner.trend(now))).await
    }

    async fn history(&self, id: &InstanceId) -> Result<Vec<HistoryEntry>> {
        self.call(|inner| block_on(inner.history(id))).await
    }
}
