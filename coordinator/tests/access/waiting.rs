//! A client that waits for the end of an instance that it started.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use reqwest::StatusCode;
use serde_json::Value;
use swirl_coordinator::access::Access;
use swirl_embedded::Embedded;
use swirl_model::event::HistoryEntry;
use swirl_model::ids::InstanceId;
use swirl_model::instance::{Instance, Status};
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_ports::{
    Counts, Filter, InstanceQueries, InstanceRecords, Keep, Page, Result, Trend, VersionCounts,
};
use tokio::sync::Notify;

use crate::running::{Reads, Setup, client};
use crate::viewers::DOCUMENT;

/// The instance ends during the first poll, after that has read its status.
struct EndsDuringPoll {
    store: Arc<Embedded>,
    polls: AtomicUsize,
    ended: Notify,
}

#[async_trait]
impl InstanceRecords for EndsDuringPoll {
    async fn instance(&self, id: &InstanceId) -> Result<Option<Instance>> {
        let mut found = self.store.instance(id).await?;
        if self.polls.load(Ordering::Relaxed) > 0 {
            found = found.map(|mut instance| {
                instance.state.status = Status::Completed;
                instance
            });
        }
        Ok(found)
    }

    async fn scopes(&self, id: &InstanceId) -> Result<Vec<Scope>> {
        self.store.scopes(id).await
    }
}

#[async_trait]
impl InstanceQueries for EndsDuringPoll {
    async fn page(&self, filter: &Filter, keep: Keep<'_>) -> Result<Page> {
        self.store.page(filter, keep).await
    }

    async fn counts(&self, workflows: &[Arc<str>]) -> Result<(Counts, Vec<Counts>)> {
        self.store.counts(workflows).await
    }

    async fn counts_by_version(&self, workflow: &str) -> Result<VersionCounts> {
        self.store.counts_by_version(workflow).await
    }

    async fn trend(&self, now: Timestamp) -> Result<Trend> {
        self.store.trend(now).await
    }

    async fn history(&self, id: &InstanceId) -> Result<Vec<HistoryEntry>> {
        self.store.history(id).await
    }

    async fn has_ended(&self, _id: &InstanceId) -> Result<Option<bool>> {
        let earlier = self.polls.fetch_add(1, Ordering::Relaxed);
        // Reaches only those who listen at this moment.
        self.ended.notify_waiters();
        Ok(Some(earlier > 0))
    }

    async fn wait_ended(&self, _id: &InstanceId) {
        self.ended.notified().await;
    }

    fn notifies_ends(&self) -> bool {
        true
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_during_a_poll_is_seen_without_another_one() {
    let store = Arc::new(Embedded::memory());
    let queries = Arc::new(EndsDuringPoll {
        store: store.clone(),
        polls: AtomicUsize::new(0),
        ended: Notify::new(),
    });
    let setup = Setup {
        store,
        queries: Some(queries.clone()),
        reader: Arc::new(Reads),
        ..Setup::new(Access::open("shop"))
    };
    let running = setup.start().await;
    let deploy = client().post(running.url("/api/v1/definitions"));
    let deploy = deploy.header("content-type", "application/yaml");
    let answer = deploy.body(DOCUMENT).send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);

    let start = client().post(running.url("/api/v1/workflows/flow/instances?wait=PT60S"));
    let answer = start.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let instance: Value = answer.json().await.unwrap();
    assert_eq!(instance["status"], "completed");
    assert_eq!(queries.polls.load(Ordering::Relaxed), 1);
}
