//! Polls the figures that coordinators report as metrics: the length of queues, and the number of
//! instances.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use swirl_model::instance::Status;
use swirl_nats::{Backlog, Streams};
use swirl_redis::{Doing, Redis};
use swirl_telemetry::{Metrics, Watched};

const EVERY: Duration = Duration::from_secs(5);

/// The last observation; figures that could not be read are left out.
#[derive(Default)]
struct Seen {
    backlog: Option<(Backlog, Backlog)>,
    instances: Vec<(Status, u64)>,
    doing: Option<Doing>,
}

/// Polls for ever.
pub async fn watch(redis: Redis, streams: Streams, metrics: Arc<Metrics>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    register(&seen, &metrics);
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
        *seen.lock().unwrap_or_else(PoisonError::into_inner) = Seen {
            backlog: backlog.ok(),
            instances: instances.unwrap_or_default(),
            doing: doing.ok(),
        };
        tokio::time::sleep(EVERY).await;
    }
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
            let Some((tasks, events)) = seen.backlog else {
                return Vec::new();
            };
            vec![("tasks", number(tasks)), ("events", number(events))]
        });
    }
}
