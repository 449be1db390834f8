//! The worker's loop. Processes tasks from the queue, a limited number at a time, until it is stopped.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use swirl_connections::{report_failure, with_progress};
use swirl_model::ids::ScopeRef;
use swirl_ports::{Task, Tasks};
use swirl_runtime::{Driven, Driver, Error, Suspects};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tracing::Instrument;

/// How long a task may continue from scope to scope while other tasks wait for its place.
const RUN_MAX: Duration = Duration::from_secs(1);
/// The first delay before a task is tried again if too many were waiting. It grows with each attempt.
const AT_CAPACITY_DELAY_MS: u64 = 250;
/// How many tasks of a lane may wait here for a place of their workflow, and for how long. After that they go to the
/// end of the lane: other workers may have a place for them, and the tasks behind them get their turn.
const LANE_WAITING: usize = 8;
const LANE_WAIT_MAX: Duration = Duration::from_secs(10);
/// The time after which a waiting task checks for a place again.
const CAPACITY_RECHECK: Duration = Duration::from_secs(1);
/// The time within which waiting tasks notice that the worker is stopping.
const STOP_POLL: Duration = Duration::from_millis(200);
/// The time limit for returning tasks, which involves the store and the queue.
const RETURN_MAX: Duration = Duration::from_secs(3);

#[derive(Debug, Clone)]
pub struct Settings {
    /// The number of scopes that are driven at a time, including scopes that wait for a call.
    pub concurrency: usize,
    /// The number of further scopes that a task may continue with here, one after another. Other scopes become separate
    /// tasks. Scopes that become ready at the same time and aren't in the queue continue here too, each with the rest
    /// of this number, as long as there are free places.
    pub local_scopes: usize,
    /// How often to report to the queue that a task is still being processed.
    pub progress: Duration,
    /// How long running work may take when the worker stops. Unfinished work is then returned, and another worker
    /// continues it at once. A call in flight is made again with the same key.
    pub shutdown: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            concurrency: 1024,
            local_scopes: 100,
            progress: Duration::from_secs(10),
            shutdown: Duration::from_secs(20),
        }
    }
}

/// Drives the scopes of the queue's tasks until `stop` is done. Returns the number of scopes whose work was returned
/// unfinished.
pub async fn run(
    driver: Arc<Driver>,
    tasks: Arc<dyn Tasks>,
    settings: Settings,
    stop: impl Future<Output = ()>,
) -> usize {
    let shared = driver.places.as_ref();
    let all = shared.map_or(settings.concurrency, |places| places.most());
    let places = Arc::new(Semaphore::new(all));
    let waiting = Arc::new(Semaphore::new(settings.concurrency));
    let mut stop = std::pin::pin!(stop);
    let mut running = JoinSet::new();
    let (over, is_over) = watch::channel(false);
    let suspects = Suspects::default();
    // Each has a place, so there are no more than places.
    let (handing, mut handed) = mpsc::unbounded_channel();
    let mut sources = FuturesUnordered::new();
    sources.push(next_of_queue(tasks.clone(), places.clone()));
    for lane in 0..tasks.lanes() {
        let waiting = Arc::new(Semaphore::new(LANE_WAITING));
        sources.push(next_of_lane(tasks.clone(), lane, waiting));
    }
    loop {
        while running.try_join_next().is_some() {}
        let work = TaskRun {
            driver: driver.clone(),
            settings: settings.clone(),
            places: places.clone(),
            waiting: waiting.clone(),
            is_over: is_over.clone(),
            suspects: suspects.clone(),
            handing: handing.clone(),
        };
        let pulled = tokio::select! {
            biased;
            () = &mut stop => break,
            Some(local) = handed.recv() => {
                running.spawn(async move { work.run_handed(local).await });
                continue;
            }
            pulled = sources.next() => pulled,
        };
        let Some(Pulled { task, permit, from }) = pulled else {
            break;
        };
        sources.push(match from {
            Source::Queue => next_of_queue(tasks.clone(), places.clone()),
            Source::Lane(lane, waiting) => next_of_lane(tasks.clone(), lane, waiting),
        });
        running.spawn(async move { work.run(task, permit).await });
    }
    drop(sources);
    places.close();
    handed.close();
    let mut unbegun = Vec::new();
    while let Ok(local) = handed.try_recv() {
        unbegun.push(local.scope);
    }
    if !unbegun.is_empty() {
        driver.queue.push(unbegun).await;
    }
    let returned = timeout(RETURN_MAX, tasks.close());
    let finish = timeout(settings.shutdown, ended(&mut running));
    if tokio::join!(returned, finish).1.is_ok() {
        return 0;
    }
    while running.try_join_next().is_some() {}
    let left = running.len();
    over.send_replace(true);
    if timeout(RETURN_MAX, ended(&mut running)).await.is_err() {
        let unconfirmed = running.len();
        tracing::warn!(
            unconfirmed,
            "other workers continue these when their leases expire"
        );
    }
    running.shutdown().await;
    left
}

/// The source of a task.
enum Source {
    Queue,
    /// Includes the permits of tasks that wait here for a place.
    Lane(usize, Arc<Semaphore>),
}

/// A task from the queue has a place before it is pulled. A task from a lane is pulled first and waits for a place
/// here, since its workflow may have used up its share.
enum Permit {
    Place(OwnedSemaphorePermit),
    Waiting(OwnedSemaphorePermit),
}

struct Pulled {
    task: Task,
    permit: Permit,
    from: Source,
}

fn next_of_queue(tasks: Arc<dyn Tasks>, places: Arc<Semaphore>) -> BoxFuture<'static, Pulled> {
    Box::pin(async move {
        let Ok(place) = places.acquire_owned().await else {
            // The worker is stopping.
            return std::future::pending().await;
        };
        Pulled {
            task: tasks.pull().await,
            permit: Permit::Place(place),
            from: Source::Queue,
        }
    })
}

fn next_of_lane(
    tasks: Arc<dyn Tasks>,
    lane: usize,
    waiting: Arc<Semaphore>,
) -> BoxFuture<'static, Pulled> {
    Box::pin(async move {
        let Ok(permit) = waiting.clone().acquire_owned().await else {
            return std::future::pending().await;
        };
        Pulled {
            task: tasks.pull_lane(lane).await,
            permit: Permit::Waiting(permit),
            from: Source::Lane(lane, waiting),
        }
    })
}

async fn ended(running: &mut JoinSet<()>) {
    while running.join_next().await.is_some() {}
}

/// How far a task goes on from scope to scope here: what comes after is for any worker.
#[derive(Clone, Copy)]
struct Budget {
    scopes: usize,
    until: Instant,
}

/// A scope that isn't in the queue, and has its place here.
struct Handed {
    scope: ScopeRef,
    place: OwnedSemaphorePermit,
    budget: Budget,
}

/// A task, and the further scopes that it continues with.
struct TaskRun {
    driver: Arc<Driver>,
    settings: Settings,
    /// Closed when the worker stops.
    places: Arc<Semaphore>,
    /// Limits the tasks that wait here for a place of their workflow.
    waiting: Arc<Semaphore>,
    is_over: watch::Receiver<bool>,
    suspects: Suspects,
    /// Scopes to continue with beside this task.
    handing: mpsc::UnboundedSender<Handed>,
}

impl TaskRun {
    async fn run(&self, task: Task, permit: Permit) {
        let span = swirl_runtime::log_span(&task.scope);
        let Some((next, _place)) = self.first(task, permit).instrument(span).await else {
            return;
        };
        self.continue_with(next, self.budget()).await;
    }

    fn budget(&self) -> Budget {
        Budget {
            scopes: self.settings.local_scopes,
            until: Instant::now() + RUN_MAX,
        }
    }

    async fn run_handed(&self, handed: Handed) {
        let Handed {
            scope,
            place: _place,
            budget,
        } = handed;
        self.continue_with(vec![scope], budget).await;
    }

    /// Continues with the first of these scopes, then with the first of those that it wakes. The others continue
    /// beside it.
    async fn continue_with(&self, mut next: Vec<ScopeRef>, mut budget: Budget) {
        while !next.is_empty() {
            // Another worker continues if this one is stopping.
            let is_over = self.places.is_closed() || Instant::now() >= budget.until;
            if is_over || budget.scopes == 0 {
                self.driver.queue.push(next).await;
                return;
            }
            budget.scopes -= 1;
            let others = next.split_off(1);
            self.hand(others, budget).await;
            let Some(scope) = next.pop() else { return };
            let span = swirl_runtime::log_span(&scope);
            next = self.drive_scope(scope).instrument(span).await;
        }
    }

    /// Those for which there is no place become tasks.
    async fn hand(&self, scopes: Vec<ScopeRef>, budget: Budget) {
        let mut left = Vec::new();
        for scope in scopes {
            let Ok(place) = self.places.clone().try_acquire_owned() else {
                left.push(scope);
                continue;
            };
            let handed = Handed {
                scope,
                place,
                budget,
            };
            // The worker is stopping.
            if let Err(refused) = self.handing.send(handed) {
                left.push(refused.0.scope);
            }
        }
        if !left.is_empty() {
            self.driver.queue.push(left).await;
        }
    }

    /// Returns the scopes to continue with now, which aren't in the queue, with the place for the first.
    async fn first(
        &self,
        mut task: Task,
        permit: Permit,
    ) -> Option<(Vec<ScopeRef>, OwnedSemaphorePermit)> {
        let in_lane = matches!(permit, Permit::Waiting(_));
        let until = Instant::now() + LANE_WAIT_MAX;
        let (mut place, mut waits) = match permit {
            Permit::Place(place) => (Some(place), None),
            Permit::Waiting(waits) => (None, Some(waits)),
        };
        let mut beside = std::mem::take(&mut task.beside);
        if task.is_late && !beside.is_empty() {
            // Any of them may have ended the worker that had this task before, so each gets a task of its own, by which
            // its attempts are counted.
            beside.push(task.scope);
            self.driver.queue.push_late(beside).await;
            if let Some(receipt) = task.receipt {
                receipt.done().await;
            }
            return None;
        }
        let driving = async {
            loop {
                if place.is_none() {
                    place = self.places.clone().acquire_owned().await.ok();
                }
                if place.is_none() {
                    return Ok(Driven::Stopped);
                }
                let driven = self.drive(&task, &mut waits, &mut beside).await;
                let Ok(Driven::AtCapacity(workflow)) = driven else {
                    return driven;
                };
                place = None;
                let moves = !in_lane || Instant::now() > until;
                if let Some(receipt) = task.receipt.as_ref().filter(|_| moves)
                    && receipt.put_into_lane(&workflow).await
                {
                    return Ok(Driven::Done);
                }
                match self.place_for(&workflow, &task, in_lane).await {
                    Some(found) => place = Some(found),
                    None if self.places.is_closed() => return Ok(Driven::Stopped),
                    None => return Ok(Driven::AtCapacity(workflow)),
                }
            }
        };
        let result = with_progress(task.receipt.as_deref(), self.settings.progress, driving).await;
        let Task { scope, receipt, .. } = task;
        let driver = &self.driver;
        match result {
            Ok(driven @ (Driven::Done | Driven::Continue(_))) => {
                if let Some(receipt) = receipt {
                    receipt.done().await;
                }
                if let Driven::Continue(next) = driven {
                    return Some((next, place?));
                }
            }
            Ok(Driven::AtCapacity(_)) => match receipt {
                Some(receipt) => receipt.postpone(AT_CAPACITY_DELAY_MS).await,
                None => driver.queue.push(vec![scope]).await,
            },
            Ok(Driven::Stopped) => {
                if let Some(receipt) = receipt {
                    receipt.postpone(0).await;
                }
            }
            Err(error) => {
                if !matches!(error, Error::Attempts { .. }) {
                    tracing::warn!(%error, "a scope could not be executed; it will be retried");
                }
                report_failure(driver, &scope, receipt.as_deref(), &error).await;
            }
        }
        None
    }

    /// `waits`: dropped once the task has its place. Then those `beside` it are handed over, too.
    async fn drive(
        &self,
        task: &Task,
        waits: &mut Option<OwnedSemaphorePermit>,
        beside: &mut Vec<ScopeRef>,
    ) -> Result<Driven, Error> {
        let stop = over(self.is_over.clone());
        let suspects = task.is_late.then(|| self.suspects.clone());
        if beside.is_empty() {
            let entered = || drop(waits.take());
            let driving = self.driver.drive_task(&task.scope, stop, suspects, entered);
            return driving.await;
        }
        let (enter, has_entered) = oneshot::channel();
        let entered = || {
            drop(waits.take());
            let _ = enter.send(());
        };
        let driving = self.driver.drive_task(&task.scope, stop, suspects, entered);
        let handing = async {
            if has_entered.await.is_ok() {
                self.hand(std::mem::take(beside), self.budget()).await;
            }
        };
        let (driven, ()) = tokio::join!(driving, handing);
        // The first scope has ended or is held elsewhere, which says nothing about the others.
        if matches!(driven, Ok(Driven::Done)) {
            self.hand(std::mem::take(beside), self.budget()).await;
        }
        driven
    }

    /// Waits for a place of a workflow that has used up its share. Returns `None` if the worker is stopping, or if too
    /// many tasks wait and this one can wait elsewhere.
    async fn place_for(
        &self,
        workflow: &Arc<str>,
        task: &Task,
        in_lane: bool,
    ) -> Option<OwnedSemaphorePermit> {
        let shared = self.driver.places.as_ref()?;
        // The lane already limits the tasks that wait here.
        let waiting = (!in_lane).then(|| self.waiting.try_acquire());
        if matches!(waiting, Some(Err(_))) && task.receipt.is_some() {
            return None;
        }
        // The wait has a limit: a task that was notified of a free place may not have needed it.
        let room = timeout(CAPACITY_RECHECK, shared.room(workflow));
        tokio::select! {
            _ = room => self.places.clone().acquire_owned().await.ok(),
            () = closed(&self.places) => None,
        }
    }

    /// Drives a scope that has no task, and returns those to continue with. If it cannot be driven, it gets a task, so
    /// that the queue tracks it.
    async fn drive_scope(&self, scope: ScopeRef) -> Vec<ScopeRef> {
        let stop = over(self.is_over.clone());
        match self.driver.drive_until(&scope, stop).await {
            Ok(Driven::Done) => return Vec::new(),
            Ok(Driven::Continue(next)) => return next,
            Ok(Driven::Stopped | Driven::AtCapacity(_)) => {}
            Err(error) => {
                tracing::warn!(%error, "a scope could not be executed; it will be retried")
            }
        }
        self.driver.queue.push(vec![scope]).await;
        Vec::new()
    }
}

async fn closed(places: &Semaphore) {
    while !places.is_closed() {
        sleep(STOP_POLL).await;
    }
}

async fn over(mut is_over: watch::Receiver<bool>) {
    // The sender lives as long as this run.
    let _ = is_over.wait_for(|over| *over).await;
}
