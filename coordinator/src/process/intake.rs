//! Events from NATS on their way to those who wait for them.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use swirl_model::CloudEvent;
use swirl_model::trace::TraceContext;
use swirl_nats::{Incoming, Intake};
use swirl_service::{Service, Taken, read_message};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tracing::{Instrument, Span};

use super::turns::{Turn, Turns};

/// How many events are taken in at once, and how many may wait for their turn.
const AT_ONCE: usize = 64;
const PENDING: usize = 512;
/// How many are asked about together which of them belong together.
const BATCH: usize = 64;

/// How long what is under way may take when there is to be no more.
const FINISH_MAX: Duration = Duration::from_secs(3);
/// An event that cannot be taken in holds up those after it for so long. Then it is tried elsewhere.
const HOLD_MAX: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Shared by all events in progress.
#[derive(Clone)]
struct Work {
    service: Service,
    at_once: Arc<Semaphore>,
    /// The interval at which JetStream is told that an event is still in progress.
    progress: Duration,
    stopping: watch::Receiver<bool>,
}

/// Takes events in until `stop` is done; what it fetched ahead goes to the others then. Events that
/// [belong together](swirl_service::keys) keep their order within this process.
pub async fn take_in(
    service: Service,
    mut intake: Intake,
    ack_wait: Duration,
    stop: impl Future<Output = ()>,
) {
    let (stop_working, stopping) = watch::channel(false);
    let work = Work {
        service,
        at_once: Arc::new(Semaphore::new(AT_ONCE)),
        progress: ack_wait / 3,
        stopping,
    };
    let mut working = JoinSet::new();
    let stop = async {
        stop.await;
        stop_working.send_replace(true);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = stop => {}
        () = spread(&mut intake, work, &mut working) => {}
    }
    let finish = async { while working.join_next().await.is_some() {} };
    let (_, finished) = tokio::join!(
        timeout(FINISH_MAX, intake.close()),
        timeout(FINISH_MAX, finish)
    );
    if finished.is_err() {
        tracing::debug!("events that are under way are delivered again");
    }
}

async fn spread(intake: &mut Intake, mut work: Work, working: &mut JoinSet<()>) {
    let room = Arc::new(Semaphore::new(PENDING));
    let mut turns = Turns::default();
    loop {
        while working.try_join_next().is_some() {}
        let Some(first) = work.unless_stopping(intake.next()).await else {
            return;
        };
        let mut incoming = vec![first];
        while incoming.len() < BATCH
            && let Some(more) = intake.next().now_or_never()
        {
            incoming.push(more);
        }
        let mut events = Vec::new();
        for incoming in incoming {
            match read_message(incoming.headers(), incoming.payload()) {
                Ok(event) => events.push((incoming, event)),
                Err(invalid) => {
                    let reason = format!("this is no CloudEvent: {invalid}");
                    incoming.dead(&reason).await;
                }
            }
        }
        let Some(keys) = work.keys(&events).await else {
            return back(events).await;
        };
        let mut left = events.into_iter().zip(keys);
        while let Some(((incoming, event), keys)) = left.next() {
            let place = room.clone().acquire_owned();
            let Some(Ok(place)) = work.unless_stopping(place).await else {
                incoming.back().await;
                return back(left.map(|(event, _)| event)).await;
            };
            let turn = turns.next(&keys);
            let span = log_span(&event);
            let taken = take(work.clone(), incoming, event, turn, place);
            working.spawn(taken.instrument(span));
        }
    }
}

/// To the others.
async fn back(events: impl IntoIterator<Item = (Incoming, CloudEvent)>) {
    for (incoming, _) in events {
        incoming.back().await;
    }
}

async fn take(
    mut work: Work,
    incoming: Incoming,
    event: CloudEvent,
    mut turn: Turn,
    _place: OwnedSemaphorePermit,
) {
    let at_once = work.at_once.clone();
    let come = async {
        turn.come().await;
        at_once.acquire().await
    };
    // Those behind it have to be given back, too, where this one is.
    let Some(Ok(_permit)) = work.hold(&incoming, come).await else {
        return incoming.back().await;
    };
    let begun = Instant::now();
    let mut pause = PAUSE;
    loop {
        match work.service.take_in(&event).await {
            Taken::Done => return incoming.done().await,
            Taken::Never(reason) => return incoming.dead(&reason).await,
            Taken::Later(error) if begun.elapsed() < HOLD_MAX => {
                tracing::warn!(%error, "an event is put off, and those that come after it");
            }
            Taken::Later(error) => {
                tracing::warn!(%error, "an event is put off");
                return incoming.again().await;
            }
        }
        if work.hold(&incoming, sleep(pause)).await.is_none() {
            return incoming.back().await;
        }
        pause = (2 * pause).min(PAUSE_MAX);
    }
}

impl Work {
    async fn unless_stopping<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = stopped(&mut self.stopping) => None,
            done = work => Some(done),
        }
    }

    /// The keys of each of these events. The store has to say what is deployed before.
    async fn keys(&mut self, events: &[(Incoming, CloudEvent)]) -> Option<Vec<Vec<u64>>> {
        let mut pause = PAUSE;
        loop {
            let all = events.iter().map(|(_, event)| event);
            match self.service.keys(all).await {
                Ok(keys) => return Some(keys),
                Err(error) => tracing::warn!(%error, "events are put off"),
            }
            self.unless_stopping(sleep(pause)).await?;
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }

    /// Waits for `until`, and tells JetStream meanwhile that the event isn't forgotten. Nothing: this
    /// process is to end.
    async fn hold<T>(&mut self, incoming: &Incoming, until: impl Future<Output = T>) -> Option<T> {
        let mut until = std::pin::pin!(until);
        loop {
            tokio::select! {
                biased;
                done = &mut until => return Some(done),
                () = stopped(&mut self.stopping) => return None,
                () = sleep(self.progress) => incoming.progress().await,
            }
        }
    }
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // Also if nobody is left who could say so.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// What is logged while an event is taken in says which one it is.
fn log_span(event: &CloudEvent) -> Span {
    let span = tracing::info_span!(
        "event",
        event_id = event.id,
        event_source = event.source,
        event_type = event.kind,
        trace_id = tracing::field::Empty,
    );
    if let Some(context) = TraceContext::of(event) {
        span.record("trace_id", format!("{:032x}", context.trace));
    }
    span
}
