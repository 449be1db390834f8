//! The worker's loop: tasks from the queue, so many at once, until it is told to stop.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use swirl_ports::{Receipt, Task, Tasks};
use swirl_runtime::{Driven, Driver, Error};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tracing::Instrument;

use crate::given_up::stand_still;

/// How soon a task whose scope could not be driven is tried again.
const AGAIN_MS: u64 = 1_000;
/// How long handing back may take: the store and the queue are told.
const HAND_BACK_MAX: Duration = Duration::from_secs(3);

#[derive(Debug, Clone)]
pub struct Settings {
    /// How many scopes are driven at once. One that waits for a call counts.
    pub concurrency: usize,
    /// How often the queue hears that a task is still being worked on.
    pub progress: Duration,
    /// How long what is under way may take when the worker is to stop. What isn't done by then is
    /// handed back, and another worker goes on with it at once: a call that was under way is made
    /// again with the same key.
    pub shutdown: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            concurrency: 1024,
            progress: Duration::from_secs(10),
            shutdown: Duration::from_secs(20),
        }
    }
}

/// Drives the scopes that the queue names until `stop` is done. Returns how many were handed back
/// when the time for them was over.
pub async fn run(
    driver: Arc<Driver>,
    tasks: Arc<dyn Tasks>,
    settings: Settings,
    stop: impl Future<Output = ()>,
) -> usize {
    let places = Arc::new(Semaphore::new(settings.concurrency));
    let mut stop = std::pin::pin!(stop);
    let mut running = JoinSet::new();
    let (over, is_over) = watch::channel(false);
    loop {
        while running.try_join_next().is_some() {}
        let next = async {
            let place = places.clone().acquire_owned().await;
            (place, tasks.pull().await)
        };
        let (place, task) = tokio::select! {
            biased;
            () = &mut stop => break,
            next = next => next,
        };
        let Ok(place) = place else { break };
        let (driver, progress, is_over) = (driver.clone(), settings.progress, is_over.clone());
        let span = swirl_runtime::log_span(&task.scope);
        let work = async move {
            drive(&driver, task, progress, is_over).await;
            drop(place);
        };
        running.spawn(work.instrument(span));
    }
    let given_back = timeout(HAND_BACK_MAX, tasks.close());
    let finish = timeout(settings.shutdown, ended(&mut running));
    if tokio::join!(given_back, finish).1.is_ok() {
        return 0;
    }
    while running.try_join_next().is_some() {}
    let left = running.len();
    over.send_replace(true);
    if timeout(HAND_BACK_MAX, ended(&mut running)).await.is_err() {
        let unsaid = running.len();
        tracing::warn!(unsaid, "others go on with these when their leases run out");
    }
    running.shutdown().await;
    left
}

async fn ended(running: &mut JoinSet<()>) {
    while running.join_next().await.is_some() {}
}

async fn drive(
    driver: &Driver,
    task: Task,
    progress: Duration,
    mut is_over: watch::Receiver<bool>,
) {
    let Task { scope, receipt } = task;
    let stop = async move {
        // Who could say so lives as long as this.
        let _ = is_over.wait_for(|over| *over).await;
    };
    let result = match &receipt {
        None => driver.drive_until(&scope, stop).await,
        Some(receipt) => {
            tokio::select! {
                result = driver.drive_until(&scope, stop) => result,
                never = keep_alive(&**receipt, progress) => match never {},
            }
        }
    };
    match result {
        Ok(Driven::Wholly) => {
            if let Some(receipt) = receipt {
                receipt.done().await;
            }
        }
        Ok(Driven::Stopped) => {
            if let Some(receipt) = receipt {
                receipt.later(0).await;
            }
        }
        Err(error) => {
            tracing::warn!(%error, "a scope is put off");
            let Some(receipt) = receipt else { return };
            if matches!(&error, Error::Store(error) if error.is_retryable()) {
                receipt.later(AGAIN_MS).await;
                return;
            }
            let reason = error.to_string();
            if receipt.again(AGAIN_MS, &reason).await {
                stand_still(driver, &scope, &reason).await;
            }
        }
    }
}

async fn keep_alive(receipt: &dyn Receipt, every: Duration) -> std::convert::Infallible {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        receipt.progress().await;
    }
}
