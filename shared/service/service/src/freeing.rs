//! Frees the documents of deleted definitions. The record itself stays, since an id and version must never get different
//! content.

use std::time::Duration;

use swirl_model::instance::Status;
use swirl_model::time::Timestamp;
use swirl_ports::{DefinitionRecord, Deleted, Filter, InstanceQueries};
use swirl_runtime::Deployed;

use crate::{Error, Service};

/// A request that was under way when the definition was deleted may still start an instance during this time.
const KEPT_MS: i64 = 120_000;
/// The number of instances that are examined at a time, and the pause after it.
const EXAMINED: usize = 1_000;
const PAUSE: Duration = Duration::from_secs(1);
/// The pause between two rounds.
const EVERY: Duration = Duration::from_secs(30);

impl Service {
    /// Forever frees what only deleted definitions without instances use.
    pub async fn run_freeing(&self, queries: &dyn InstanceQueries) {
        loop {
            if let Err(error) = self.free_deleted(queries).await {
                tracing::warn!(%error, "documents of deleted definitions are freed later");
            }
            self.pause(EVERY).await;
        }
    }

    /// Frees the documents of deleted definitions that have no instance left, not even one that has ended.
    ///
    /// # Errors
    /// The store failed.
    pub async fn free_deleted(&self, queries: &dyn InstanceQueries) -> Result<(), Error> {
        let catalog = self.registry.catalog().await?;
        let latest = self.clock.now().0.saturating_sub(KEPT_MS);
        let is_due = |deleted: &Deleted| !deleted.freed && deleted.at.0 <= latest;
        let due = catalog
            .all()
            .iter()
            .filter(|one| one.head.deleted.as_ref().is_some_and(is_due));
        for deployed in due {
            let deleted = deployed.head.deleted.as_ref();
            if deleted.is_some_and(|deleted| deleted.in_use)
                && !self.may_continue(queries, deployed).await?
            {
                self.end_use(deployed).await?;
            }
            if !self.has_instances(queries, deployed).await? {
                self.free(deployed).await?;
            }
        }
        Ok(())
    }

    /// Whether an instance may still wait for events. A faulted one can be retried.
    async fn may_continue(
        &self,
        queries: &dyn InstanceQueries,
        deployed: &Deployed,
    ) -> Result<bool, Error> {
        for status in [Status::Running, Status::Faulted] {
            let filter = Filter {
                workflow: Some(deployed.id().workflow.to_string()),
                version: Some(deployed.id().version.to_string()),
                statuses: vec![status],
                limit: 1,
                ..Filter::default()
            };
            if !queries.list(&filter).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Events that were kept for the instances of a definition go after the last one.
    async fn end_use(&self, deployed: &Deployed) -> Result<(), Error> {
        let store = self.registry.store();
        let Some(record) = store.get(deployed.id()).await? else {
            return Ok(());
        };
        let Some(deleted) = record.deleted.clone() else {
            return Ok(());
        };
        let unused = DefinitionRecord {
            deleted: Some(Deleted {
                in_use: false,
                ..deleted
            }),
            ..record.clone()
        };
        if store.replace_if(&record, unused).await? {
            self.forget_events_of(deployed.id()).await?;
        }
        Ok(())
    }

    async fn has_instances(
        &self,
        queries: &dyn InstanceQueries,
        deployed: &Deployed,
    ) -> Result<bool, Error> {
        let mut filter = Filter {
            workflow: Some(deployed.id().workflow.to_string()),
            version: Some(deployed.id().version.to_string()),
            limit: 1,
            examined_max: EXAMINED,
            ..Filter::default()
        };
        loop {
            let page = queries.page(&filter, &|_| true).await?;
            if !page.rows.is_empty() {
                return Ok(true);
            }
            if page.next.is_none() {
                return Ok(false);
            }
            filter.from = page.next;
            self.pause(PAUSE).await;
        }
    }

    async fn free(&self, deployed: &Deployed) -> Result<(), Error> {
        let store = self.registry.store();
        let Some(record) = store.get(deployed.id()).await? else {
            return Ok(());
        };
        let Some(deleted) = record.deleted.clone() else {
            return Ok(());
        };
        let freed = DefinitionRecord {
            document: String::new(),
            resources: Vec::new(),
            deleted: Some(Deleted {
                freed: true,
                ..deleted
            }),
            ..record.clone()
        };
        if store.replace_if(&record, freed).await? {
            tracing::info!(definition = %record.id, bytes = record.bytes(), "the document of a deleted definition was freed");
        }
        Ok(())
    }

    async fn pause(&self, time: Duration) {
        let until = self.clock.now().0.saturating_add(time.as_millis() as i64);
        self.clock.sleep_until(Timestamp(until)).await;
    }
}
