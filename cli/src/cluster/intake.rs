//! Events from NATS on their way to those who wait for them.

use std::time::Duration;

use swirl_coordinator::{Service, Taken, lane, read_message};
use swirl_model::CloudEvent;
use swirl_model::trace::TraceContext;
use swirl_nats::{Incoming, Intake};
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{Instrument, Span};

/// How many events are taken in at once, and how many wait for each of those.
const LANES: usize = 64;
const QUEUE: usize = 8;

/// How long what is under way may take when there is to be no more.
const FINISH_MAX: Duration = Duration::from_secs(3);

type Work = (Incoming, CloudEvent);

/// Takes events in until `stop` is done; what it fetched ahead goes to the others then. Events that could
/// belong together keep their order within this process.
pub async fn take_in(service: Service, mut intake: Intake, stop: impl Future<Output = ()>) {
    let mut working = JoinSet::new();
    let lanes: Vec<Sender<Work>> = (0..LANES)
        .map(|_| open(&mut working, service.clone()))
        .collect();
    spread(&mut intake, &lanes, stop).await;
    drop(lanes);
    let finish = async { while working.join_next().await.is_some() {} };
    let (_, finished) = tokio::join!(
        timeout(FINISH_MAX, intake.close()),
        timeout(FINISH_MAX, finish)
    );
    if finished.is_err() {
        tracing::debug!("events that are under way are delivered again");
    }
}

async fn spread(intake: &mut Intake, lanes: &[Sender<Work>], stop: impl Future<Output = ()>) {
    let mut stop = std::pin::pin!(stop);
    loop {
        let incoming = tokio::select! {
            biased;
            () = &mut stop => return,
            incoming = intake.next() => incoming,
        };
        match read_message(incoming.headers(), incoming.payload()) {
            Ok(event) => {
                let lane = lane(&event, LANES);
                if lanes[lane].send((incoming, event)).await.is_err() {
                    // Only if a lane panicked; the message is delivered again.
                    return;
                }
            }
            Err(invalid) => {
                let reason = format!("this is no CloudEvent: {invalid}");
                incoming.dead(&reason).await;
            }
        }
    }
}

fn open(working: &mut JoinSet<()>, service: Service) -> Sender<Work> {
    let (sender, mut receiver) = channel::<Work>(QUEUE);
    working.spawn(async move {
        while let Some((incoming, event)) = receiver.recv().await {
            let span = log_span(&event);
            take(&service, &incoming, &event).instrument(span).await;
        }
    });
    sender
}

async fn take(service: &Service, incoming: &Incoming, event: &CloudEvent) {
    match service.take_in(event).await {
        Taken::Done => incoming.done().await,
        Taken::Later(error) => {
            tracing::warn!(%error, "an event is put off");
            incoming.again().await;
        }
        Taken::Never(reason) => incoming.dead(&reason).await,
    }
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
