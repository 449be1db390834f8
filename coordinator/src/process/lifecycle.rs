//! Publishes lifecycle events, if the configuration says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use swirl_config::Lifecycle;
use swirl_connections::Cluster;
use swirl_nats::LifecycleStream;
use swirl_redis::Redis;
use swirl_runtime::Registry;
use swirl_service::{Follower, LifecycleCounts, LifecycleEvents};
use tokio::task::JoinSet;

/// The pause before a failed attempt to turn them on or off is repeated.
const AGAIN: Duration = Duration::from_secs(1);

/// Numbers for the metrics.
#[derive(Clone)]
pub struct Published {
    pub counts: Arc<LifecycleCounts>,
    /// The number of history entries that were removed before they were read.
    pub lost: Arc<AtomicU64>,
}

/// The follower always runs, since another coordinator may turn the events on.
pub fn publish(
    tasks: &mut JoinSet<()>,
    cluster: &Cluster,
    redis: &Redis,
    namespace: &str,
    registry: Arc<Registry>,
    settings: Lifecycle,
) -> Published {
    let options = swirl_connections::lifecycle_options(&settings);
    let stream = LifecycleStream::new(cluster.streams.clone(), options);
    let events = LifecycleEvents::new(namespace, Arc::new(stream), registry, cluster.store.clone());
    let counts = events.counts().clone();
    let follower = Follower::new(
        Arc::new(redis.clone()),
        cluster.store.clone(),
        Arc::new(events),
        cluster.clock.clone(),
    );
    let lost = follower.lost();
    let redis = redis.clone();
    tasks.spawn(async move {
        turn(&redis, settings.is_on).await;
        follower.run().await;
    });
    Published { counts, lost }
}

/// Turns lifecycle events on or off for all processes of the namespace.
async fn turn(redis: &Redis, on: bool) {
    loop {
        match redis.set_following(on).await {
            Ok(true) => {
                tracing::warn!(
                    on,
                    "lifecycle events were turned on or off for this namespace"
                );
                return;
            }
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(%error, "lifecycle events cannot be turned on or off yet");
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

impl Published {
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}
