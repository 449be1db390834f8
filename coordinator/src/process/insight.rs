//! The state of the cluster as a coordinator sees it.

use async_trait::async_trait;
use swirl_api::events::RecentEvent;
use swirl_config::{Config, Process};
use swirl_model::time::Timestamp;
use swirl_nats::Backlog;
use swirl_ports::{FollowedHistories, Result, SeenProcess, UnreadCount};
use swirl_redis::Redis;

use super::watch::Backlogs;
use crate::api::{Insight, QueueFigures};
use crate::doctor::{Report, examine};

pub struct ClusterInsight {
    pub redis: Redis,
    pub backlogs: Backlogs,
    pub config: Config,
}

#[async_trait]
impl Insight for ClusterInsight {
    async fn processes(&self) -> Result<Vec<SeenProcess>> {
        self.redis.processes().await
    }

    async fn queues(&self) -> Option<Vec<QueueFigures>> {
        let found = self.backlogs.found()?;
        Some(
            found
                .map(|(name, backlog)| figures(name, backlog))
                .collect(),
        )
    }

    async fn next_timer(&self) -> Result<Option<Timestamp>> {
        self.redis.next_timer_of_all().await
    }

    async fn lifecycle(&self) -> Result<Option<UnreadCount>> {
        match self.redis.are_followed() {
            true => self.redis.count_unread_of_all().await.map(Some),
            false => Ok(None),
        }
    }

    async fn recent_events(&self, limit: usize) -> Result<Option<Vec<RecentEvent>>> {
        self.redis.noted_events(limit).await.map(Some)
    }

    /// Settings that only workers use are left to them: their files may be on other machines.
    async fn check(&self) -> Report {
        let mut report = Report::default();
        examine(&mut report, &self.config, &[Process::Coordinator]).await;
        report
    }
}

fn figures(name: &'static str, backlog: Backlog) -> QueueFigures {
    QueueFigures {
        name,
        pending: backlog.pending,
        unacknowledged: Some(backlog.unacknowledged),
        oldest_ms: u64::try_from(backlog.oldest.as_millis()).unwrap_or(u64::MAX),
    }
}
