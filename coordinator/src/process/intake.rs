//! Delivers events from NATS to the instances that wait for them.
//!
//! One coordinator reads the events, in the order of the stream. It processes unrelated events concurrently, and
//! [related](swirl_service::keys) events one after another, unless they can only [start
//! instances](Arrival::is_unawaited). If that coordinator fails, another one continues after the last position up to
//! which all events were processed, so the order is kept (`docs/adr/0019-events-in-order.md`).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use swirl_api::events::Via;
use swirl_model::CloudEvent;
use swirl_model::trace::TraceContext;
use swirl_nats::{Incoming, Intake, Streams};
use swirl_redis::{Reading, Redis};
use swirl_service::{Arrival, Service, Taken, read_message};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tracing::{Instrument, Span};

use super::progress::Progress;
use super::turns::{Turn, Turns};

/// A coordinator that is silent for this long loses the role of the reader. Replacing it too early only costs time,
/// since two concurrent readers keep the order. But a server that writes to a slow disk may take a second to respond.
const TTL_MS: u64 = 1_500;
/// How often the reader renews its role and saves its progress.
const KEEP: Duration = Duration::from_millis(250);
/// How often the others check whether there is a reader.
const ASK: Duration = Duration::from_millis(250);
/// The number of events that are fetched ahead of those that are being processed.
const AHEAD: usize = 256;
/// The number of events that are processed at once.
const AT_ONCE: usize = 64;
/// The room for events that wait for their turn, in KiB, and the room that each takes at least.
const PENDING_KIB: usize = 64 << 10;
const EVENT_KIB: usize = 128;
/// The number of events that are examined at a time to find related ones, and their size.
const BATCH: usize = 64;
const BATCH_BYTES: usize = 8 << 20;

/// The time that running work on events may take when the coordinator stops.
const FINISH_MAX: Duration = Duration::from_secs(3);
/// An event that fails while others succeed delays the events related to it for this long, and then becomes a dead
/// letter. The first value is for errors that a retry may fix, the second for others.
const HOLD_MAX: Duration = Duration::from_secs(600);
const FAULTY_MAX: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Shared by all events in progress.
#[derive(Clone)]
struct Work {
    service: Service,
    at_once: Arc<Semaphore>,
    progress: Arc<Progress>,
    stopping: watch::Receiver<bool>,
}

/// Processes events until `stop` is done, while no other coordinator does.
pub async fn run_intake(
    service: Service,
    streams: Streams,
    redis: Redis,
    stop: impl Future<Output = ()>,
) {
    let mut stop = std::pin::pin!(stop);
    loop {
        let intake = tokio::select! {
            biased;
            () = &mut stop => return,
            intake = begin(&streams, &redis) => intake,
        };
        let (over, stopping) = watch::channel(false);
        let work = Work {
            service: service.clone(),
            at_once: Arc::new(Semaphore::new(AT_ONCE)),
            progress: Arc::new(Progress::new(intake.stream(), intake.after())),
            stopping,
        };
        let ended = read_as_reader(intake, work, over, &redis, &mut stop).await;
        if ended == Ended::Stopped {
            return;
        }
        // Another coordinator may be able to read the stream.
        tokio::select! {
            () = &mut stop => return,
            () = sleep(4 * ASK) => {}
        }
    }
}

/// Waits until no other coordinator reads events, and opens the stream.
async fn begin(streams: &Streams, redis: &Redis) -> Intake {
    loop {
        match redis.read_events(TTL_MS, None).await {
            Ok(Reading::Begin(place)) => {
                match Intake::open(streams.clone(), place, AHEAD).await {
                    Ok(intake) => return intake,
                    Err(error) => tracing::warn!(%error, "the stream of events cannot be opened"),
                }
                release_role(redis, None).await;
            }
            // An earlier attempt of this process ended without releasing the role.
            Ok(Reading::On) => release_role(redis, None).await,
            Ok(Reading::Other) => {}
            Err(error) => tracing::warn!(%error, "the reader of the events cannot be determined"),
        }
        sleep(ASK).await;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Stopped,
    /// Another coordinator is the reader, or was in the meantime.
    Lost,
    /// This coordinator cannot read the stream.
    Unreadable,
}

async fn read_as_reader(
    mut intake: Intake,
    work: Work,
    over: watch::Sender<bool>,
    redis: &Redis,
    stop: &mut (impl Future<Output = ()> + Unpin),
) -> Ended {
    tracing::debug!("this coordinator reads the events");
    let progress = work.progress.clone();
    let mut working = JoinSet::new();
    let ended = tokio::select! {
        biased;
        () = stop => Ended::Stopped,
        () = keep_role(redis, &progress) => Ended::Lost,
        () = process_batches(&mut intake, work, &mut working) => Ended::Unreadable,
    };
    over.send_replace(true);
    let finish = async { while working.join_next().await.is_some() {} };
    let (_, finished) = tokio::join!(
        timeout(FINISH_MAX, intake.close()),
        timeout(FINISH_MAX, finish)
    );
    if finished.is_err() {
        tracing::debug!("unfinished events will be read again");
    }
    working.shutdown().await;
    if ended != Ended::Lost {
        release_role(redis, Some(&progress)).await;
    }
    tracing::debug!(?ended, "this coordinator no longer reads the events");
    ended
}

/// Renews the role and saves the progress. Returns when this process is no longer the reader.
async fn keep_role(redis: &Redis, progress: &Progress) {
    loop {
        sleep(KEEP).await;
        match redis.read_events(TTL_MS, progress.place().as_ref()).await {
            Ok(Reading::On) => {}
            Ok(Reading::Other | Reading::Begin(_)) => return,
            // The next reader will read some events twice.
            Err(error) => tracing::debug!(%error, "the progress of the events cannot be saved"),
        }
    }
}

/// Releases the role, so that other coordinators needn't wait until it expires.
async fn release_role(redis: &Redis, progress: Option<&Progress>) {
    let place = progress.and_then(Progress::place);
    if let Err(error) = redis.leave_events(place.as_ref()).await {
        tracing::debug!(%error, "the role of the reader cannot be released; it expires soon");
    }
}

async fn process_batches(intake: &mut Intake, mut work: Work, working: &mut JoinSet<()>) {
    let room = Arc::new(Semaphore::new(PENDING_KIB));
    let mut turns = Turns::default();
    loop {
        while working.try_join_next().is_some() {}
        work.progress.room().await;
        let Some(first) = intake.next().await else {
            return;
        };
        let (mut bytes, mut incoming) = (first.bytes(), vec![first]);
        while incoming.len() < BATCH
            && bytes < BATCH_BYTES
            && let Some(Some(more)) = intake.next().now_or_never()
        {
            bytes += more.bytes();
            incoming.push(more);
        }
        let mut events = Vec::new();
        for incoming in incoming {
            work.progress.begin(incoming.sequence(), incoming.at_ms());
            if incoming.is_correlated() {
                work.progress.end(incoming.sequence());
                continue;
            }
            match read_message(incoming.headers(), incoming.payload()) {
                Ok(event) => events.push((incoming, event)),
                Err(invalid) => {
                    let Some(place) = make_room(&room, &incoming).await else {
                        return;
                    };
                    let reason = format!("this is not a CloudEvent: {invalid}");
                    let now = work.service.clock.now();
                    let said = Some(&*invalid.said);
                    work.service.recent.refused(said, Via::Nats, &reason, now);
                    working.spawn(to_dead_letters(work.clone(), incoming, reason, place));
                }
            }
        }
        let Some(arrivals) = work.arrived(&events).await else {
            return;
        };
        for ((incoming, event), mut arrival) in events.into_iter().zip(arrivals) {
            let Some(place) = make_room(&room, &incoming).await else {
                return;
            };
            if arrival.is_unawaited() && turns.any(arrival.keys()) {
                arrival.in_order();
            }
            let turn = turns.next(&arrival.turn_keys());
            let span = log_span(&event);
            let taken = process_in_turn(work.clone(), incoming, event, (arrival, turn), place);
            working.spawn(taken.instrument(span));
        }
    }
}

/// Waits until there is room for an event.
async fn make_room(room: &Arc<Semaphore>, incoming: &Incoming) -> Option<OwnedSemaphorePermit> {
    let kib = (incoming.bytes() >> 10).clamp(EVENT_KIB, PENDING_KIB);
    let kib = u32::try_from(kib).ok()?;
    room.clone().acquire_many_owned(kib).await.ok()
}

async fn to_dead_letters(
    mut work: Work,
    incoming: Incoming,
    reason: String,
    _place: OwnedSemaphorePermit,
) {
    let mut pause = PAUSE;
    while !incoming.dead(&reason).await {
        if work.unless_stopping(sleep(pause)).await.is_none() {
            return;
        }
        pause = (2 * pause).min(PAUSE_MAX);
    }
    work.progress.end(incoming.sequence());
}

/// Processes an event when its turn comes. The turn ends, and related events follow, when the instances that the event
/// is for have received it, when it has become a dead letter, or when the coordinator stops.
async fn process_in_turn(
    mut work: Work,
    incoming: Incoming,
    event: CloudEvent,
    (mut arrival, mut turn): (Arrival, Turn),
    _place: OwnedSemaphorePermit,
) {
    if turn.come().now_or_never().is_none() {
        arrival.delayed();
        if work.unless_stopping(turn.come()).await.is_none() {
            return;
        }
    }
    let mut turn = Some(turn);
    let (begun, done_before) = (Instant::now(), work.progress.done());
    let mut pause = PAUSE;
    loop {
        let at_once = work.at_once.clone();
        let Some(Ok(permit)) = work.unless_stopping(at_once.acquire()).await else {
            return;
        };
        let given = || drop(turn.take());
        let taken = AssertUnwindSafe(work.service.process_arrived(&event, &mut arrival, given));
        let dead = match taken.catch_unwind().await {
            Ok(Taken::Done) => return work.progress.end(incoming.sequence()),
            Ok(Taken::Never(reason)) => Some(reason),
            Err(_) => Some("processing it panicked".to_owned()),
            Ok(Taken::Later { error, helps }) => {
                let limit = if helps { HOLD_MAX } else { FAULTY_MAX };
                let is_its_own = !helps || work.progress.done() > done_before;
                tracing::warn!(%error, "an event and the events related to it are delayed");
                (is_its_own && begun.elapsed() > limit)
                    .then(|| format!("for {} s: {error}", limit.as_secs()))
            }
        };
        drop(permit);
        if let Some(reason) = dead
            && incoming.dead(&reason).await
        {
            let now = work.service.clock.now();
            work.service
                .recent
                .refused(Some(&event), Via::Nats, &reason, now);
            return work.progress.end(incoming.sequence());
        }
        if work.unless_stopping(sleep(pause)).await.is_none() {
            return;
        }
        pause = (2 * pause).min(PAUSE_MAX);
    }
}

impl Work {
    /// Drops the work once the coordinator stops. The turn must not end then, since later events must not overtake an
    /// unfinished one.
    async fn unless_stopping<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = stopped(&mut self.stopping) => None,
            done = work => Some(done),
        }
    }

    /// Returns which of these events are related. This depends on the deployed definitions and on what instances wait
    /// for, which are read first.
    async fn arrived(&mut self, events: &[(Incoming, CloudEvent)]) -> Option<Vec<Arrival>> {
        let mut pause = PAUSE;
        let all: Vec<&CloudEvent> = events.iter().map(|(_, event)| event).collect();
        loop {
            match self.service.arrived(&all).await {
                Ok(arrivals) => return Some(arrivals),
                Err(error) => tracing::warn!(%error, "events are delayed"),
            }
            self.unless_stopping(sleep(pause)).await?;
            pause = (2 * pause).min(PAUSE_MAX);
        }
    }
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // This also returns if the sender is gone.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// Names the event in all log lines of its processing.
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
