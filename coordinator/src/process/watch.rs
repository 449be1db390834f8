//! Polls the figures that coordinators report as metrics: the lengths of queues, and the number of instances.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use swirl_model::instance::Status;
use swirl_model::time::Timestamp;
use swirl_nats::{Backlog, Streams};
use swirl_ports::{FollowedHistories, UnreadCount};
use swirl_redis::{Activity, Redis};
use swirl_telemetry::{Metrics, Watched};

use super::lifecycle::Published;
use super::stall::Stall;

const EVERY: Duration = Duration::from_secs(5);

/// The last observation. Figures that could not be read are left out.
#[derive(Default)]
struct Figures {
    backlog: Option<(Backlog, Backlog)>,
    joins: Option<Backlog>,
    instances: Vec<(Status, u64)>,
    activity: Option<Activity>,
    /// Includes the time at which it was read.
    unread: Option<(UnreadCount, Timestamp)>,
    /// The queues that don't become shorter, and for how long they haven't.
    stalled: Vec<(&'static str, u64, Duration)>,
}

/// The lengths of the queues, as last read.
#[derive(Clone, Default)]
pub struct Backlogs(Arc<Mutex<Figures>>);

impl Backlogs {
    /// Each queue by its name; `None`: they are unknown.
    pub fn found(&self) -> Option<impl Iterator<Item = (&'static str, Backlog)> + use<>> {
        let figures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        figures.backlog?;
        Some(figures.queues())
    }

    /// What to say about queues that don't become shorter.
    pub fn stalled(&self) -> Vec<String> {
        let figures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let stalled = figures.stalled.iter();
        let lines = stalled.map(|(queue, length, still)| {
            format!(
                "{length} {queue} are waiting in NATS, and their number hasn't fallen for {} s",
                still.as_secs()
            )
        });
        lines.collect()
    }
}

impl Figures {
    fn queues(&self) -> impl Iterator<Item = (&'static str, Backlog)> + use<> {
        let queues = self.backlog.into_iter();
        let queues = queues.flat_map(|(tasks, events)| [("tasks", tasks), ("events", events)]);
        queues.chain(self.joins.map(|joins| ("joins", joins)))
    }
}

/// Polls. Never returns.
pub async fn watch(
    redis: Redis,
    streams: Streams,
    published: Published,
    metrics: Arc<Metrics>,
    backlogs: Backlogs,
) {
    let figures = backlogs.0;
    register(&figures, &metrics);
    register_lifecycle(&figures, published, &metrics);
    let (start, mut stalls) = (Instant::now(), [Stall::default(); 3]);
    loop {
        let begun = Instant::now();
        let mut done = None;
        let backlog = match redis.events_place().await {
            Ok(place) => {
                done = Some(place.as_ref().map_or(0, |place| place.done));
                let backlog = streams.backlog(place.as_ref()).await;
                backlog.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        metrics.nats("consumer_info", begun.elapsed(), backlog.is_err());
        let joins = streams.joins_backlog().await;
        if let Err(error) = &joins {
            tracing::debug!(%error, "the number of forks waiting to be joined cannot be read");
        }
        let instances = redis.count_instances().await;
        if let Err(error) = &backlog {
            tracing::debug!(error, "the backlog cannot be read");
        }
        if let Err(error) = &instances {
            tracing::debug!(%error, "the number of instances cannot be read");
        }
        let activity = redis.count_activity().await;
        if let Err(error) = &activity {
            tracing::debug!(%error, "the activity of the instances cannot be read");
        }
        let unread = match redis.are_followed() {
            true => unread(&redis).await,
            false => None,
        };
        let mut seen = Figures {
            backlog: backlog.ok(),
            joins: joins.ok(),
            instances: instances.unwrap_or_default(),
            activity: activity.ok(),
            unread,
            stalled: Vec::new(),
        };
        for ((queue, backlog), stall) in seen.queues().zip(&mut stalls) {
            let done = done.filter(|_| queue == "events");
            if let Some(still) = stall.see(&backlog, done, start.elapsed()) {
                let length = backlog.pending + backlog.unacknowledged;
                seen.stalled.push((queue, length, still));
            }
        }
        *figures.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        tokio::time::sleep(EVERY).await;
    }
}

async fn unread(redis: &Redis) -> Option<(UnreadCount, Timestamp)> {
    let read =
        async { Ok::<_, swirl_ports::Error>((redis.count_unread().await?, redis.now().await?)) };
    match read.await {
        Ok(unread) => Some(unread),
        Err(error) => {
            tracing::debug!(%error, "the lag of the lifecycle events cannot be read");
            None
        }
    }
}

/// Registers metrics that are empty while lifecycle events are off.
fn register_lifecycle(figures: &Arc<Mutex<Figures>>, published: Published, metrics: &Metrics) {
    let with = |of: fn(UnreadCount, Timestamp, &Published) -> Vec<(&'static str, u64)>| {
        let (figures, published) = (figures.clone(), published.clone());
        move || {
            let figures = figures.lock().unwrap_or_else(PoisonError::into_inner);
            figures
                .unread
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

fn register(figures: &Arc<Mutex<Figures>>, metrics: &Metrics) {
    let instances = figures.clone();
    metrics.watch(Watched::Instances, move || {
        let figures = instances.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = figures.instances.iter();
        counts
            .map(|(status, count)| (status.as_str(), *count))
            .collect()
    });
    let activity = figures.clone();
    metrics.watch(Watched::Doing, move || {
        let figures = activity.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(activity) = figures.activity else {
            return Vec::new();
        };
        vec![
            ("ready", activity.ready),
            ("suspended", activity.suspended),
            ("waiting", activity.waiting),
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
        let figures = figures.clone();
        metrics.watch(what, move || {
            let figures = figures.lock().unwrap_or_else(PoisonError::into_inner);
            let all = figures.queues();
            all.map(|(queue, backlog)| (queue, number(backlog)))
                .collect()
        });
    }
}
