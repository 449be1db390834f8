//! Polls the figures that coordinators report as metrics: the length of queues, and the number of
//! instances.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use swirl_model::instance::Status;
use swirl_model::time::Timestamp;
use swirl_nats::{Backlog, Streams};
use swirl_ports::{FollowedHistories, UnreadCount};
use swirl_redis::{Doing, Redis};
use swirl_telemetry::{Metrics, Watched};

use super::lifecycle::Published;

const EVERY: Duration = Duration::from_secs(5);

/// The last observation; figures that could not be read are left out.
#[derive(Default)]
struct Seen {
    backlog: Option<(Backlog, Backlog)>,
    joins: Option<Backlog>,
    instances: Vec<(Status, u64)>,
    doing: Option<Doing>,
    /// With the time at which it was read.
    unread: Option<(UnreadCount, Timestamp)>,
}

/// The lengths of the queues, as they were last seen.
#[derive(Clone, Default)]
pub struct Backlogs(Arc<Mutex<Seen>>);

impl Backlogs {
    /// Each queue by its name; `None`: they are not known.
    pub fn found(&self) -> Option<impl Iterator<Item = (&'static str, Backlog)> + use<>> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.backlog?;
        Some(seen.queues())
    }
}

impl Seen {
    fn queues(&self) -> impl Iterator<Item = (&'static str, Backlog)> + use<> {
        let queues = self.backlog.into_iter();
        let queues = queues.flat_map(|(tasks, events)| [("tasks", tasks), ("events", events)]);
        queues.chain(self.joins.map(|joins| ("joins", joins)))
    }
}

/// Polls for ever.
pub async fn watch(
    redis: Redis,
    streams: Streams,
    published: Published,
    metrics: Arc<Metrics>,
    backlogs: Backlogs,
) {
    let seen = backlogs.0;
    register(&seen, &metrics);
    register_lifecycle(&seen, published, &metrics);
    loop {
        let begun = Instant::now();
        let backlog = match redis.events_place().await {
            Ok(place) => streams
                .backlog(place.as_ref())
                .await
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        metrics.nats("consumer_info", begun.elapsed(), backlog.is_err());
        let joins = streams.joins_backlog().await;
        if let Err(error) = &joins {
            tracing::debug!(%error, "how many forks wait to be joined is not known");
        }
        let instances = redis.count_instances().await;
        if let Err(error) = &backlog {
            tracing::debug!(error, "how much waits is not known");
        }
        if let Err(error) = &instances {
            tracing::debug!(%error, "how many instances there are is not known");
        }
        let doing = redis.count_doing().await;
        if let Err(error) = &doing {
            tracing::debug!(%error, "what the instances do is not known");
        }
        let unread = match redis.are_followed() {
            true => unread(&redis).await,
            false => None,
        };
        *seen.lock().unwrap_or_else(PoisonError::into_inner) = Seen {
            backlog: backlog.ok(),
            joins: joins.ok(),
            instances: instances.unwrap_or_default(),
            doing: doing.ok(),
            unread,
        };
        tokio::time::sleep(EVERY).await;
    }
}

async fn unread(redis: &Redis) -> Option<(UnreadCount, Timestamp)> {
    let read =
        async { Ok::<_, swirl_ports::Error>((redis.count_unread().await?, redis.now().await?)) };
    match read.await {
        Ok(unread) => Some(unread),
        Err(error) => {
            tracing::debug!(%error, "how late the lifecycle events are is not known");
            None
        }
    }
}

/// Nothing while they are off.
fn register_lifecycle(seen: &Arc<Mutex<Seen>>, published: Published, metrics: &Metrics) {
    let with = |of: fn(UnreadCount, Timestamp, &Published) -> Vec<(&'static str, u64)>| {
        let (seen, published) = (seen.clone(), published.clone());
        move || {
            let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.unread
                .map_or_else(Vec::new, |(unread, at)| of(unread, at, &published))
        }
    };
    metrics.watch(
        Watched::LifecycleLag,
        with(|unread, at, _| {
            let since = unread.since.unwrap_or(at);
            vec![("", at.0.saturating_sub(since.0).max(0).unsigned_abs())]
        }),
    );
    metrics.watch(
        Watched::LifecycleUnread,
        with(|unread, _, _| vec![("", unread.instances)]),
    );
    metrics.watch(
        Watched::LifecycleLost,
        with(|unread, _, published| {
            vec![("entries", published.lost()), ("instances", unread.lost)]
        }),
    );
    metrics.watch(
        Watched::LifecyclePublished,
        with(|_, _, published| published.counts.published().to_vec()),
    );
}

fn register(seen: &Arc<Mutex<Seen>>, metrics: &Metrics) {
    let instances = seen.clone();
    metrics.watch(Watched::Instances, move || {
        let seen = instances.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = seen.instances.iter();
        counts
            .map(|(status, count)| (status.as_str(), *count))
            .collect()
    });
    let doing = seen.clone();
    metrics.watch(Watched::Doing, move || {
        let seen = doing.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(doing) = seen.doing else {
            return Vec::new();
        };
        vec![
            ("ready", doing.ready),
            ("suspended", doing.suspended),
            ("waiting", doing.waiting),
        ]
    });
    for (what, number) in [
        (
            Watched::Pending,
            (|backlog| backlog.pending) as fn(Backlog) -> u64,
        ),
        (Watched::Unacknowledged, |backlog| backlog.unacknowledged),
        (Watched::Oldest, |backlog| {
            u64::try_from(backlog.oldest.as_millis()).unwrap_or(u64::MAX)
        }),
    ] {
        let seen = seen.clone();
        metrics.watch(what, move || {
            let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let all = seen.queues();
            all.map(|(queue, backlog)| (queue, number(backlog)))
                .collect()
        });
    }
}
