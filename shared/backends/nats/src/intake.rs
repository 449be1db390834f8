//! Events of users on their way in.

use std::time::Duration;

use async_nats::jetstream::{AckKind, Message};

use crate::bus::{CORRELATED, message_id_of};
use crate::counts::Which;
use crate::dead::DeadLetters;
use crate::pulling::Pulling;
use crate::streams::Streams;

const AGAIN_MS_MAX: u64 = 30_000;

/// The events stream, as coordinators read it.
pub struct Intake {
    pulling: Pulling,
    dead: DeadLetters,
    streams: Streams,
}

impl Intake {
    pub fn new(streams: Streams, ahead: usize) -> Intake {
        Intake {
            dead: DeadLetters::new(streams.clone()),
            streams: streams.clone(),
            pulling: Pulling::new(streams, Which::Events, ahead),
        }
    }

    /// Nothing will be taken any more: what was fetched ahead goes to the others.
    pub async fn close(&mut self) {
        self.pulling.close().await;
    }

    /// Whether it comes from this installation, which has done with it. A mark of another one, or one
    /// that was passed on with another event, says nothing here.
    fn is_correlated(&self, incoming: &Incoming) -> bool {
        let mut headers = incoming.headers();
        let mark = headers.find(|(name, _)| name.eq_ignore_ascii_case(CORRELATED));
        mark.is_some_and(|(_, mark)| {
            message_id_of(incoming.payload()).is_some_and(|id| self.streams.mark(&id) == mark)
        })
    }

    /// The next message that isn't known to have been taken in.
    pub async fn next(&mut self) -> Incoming {
        loop {
            let message = self.pulling.next().await;
            let incoming = Incoming {
                message,
                dead: self.dead.clone(),
            };
            if !self.is_correlated(&incoming) {
                return incoming;
            }
            incoming.done().await;
        }
    }
}

/// A message of the events stream. It comes again until one of the three is said.
pub struct Incoming {
    message: Message,
    dead: DeadLetters,
}

impl Incoming {
    pub fn subject(&self) -> &str {
        &self.message.subject
    }

    pub fn payload(&self) -> &[u8] {
        &self.message.payload
    }

    /// Names and values, in no order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self
            .message
            .headers
            .iter()
            .flat_map(|headers| headers.iter());
        headers.flat_map(|(name, values)| {
            values
                .iter()
                .map(move |value| (name.as_ref(), value.as_str()))
        })
    }

    /// All that it does has been committed.
    pub async fn done(&self) {
        self.say(AckKind::Ack).await;
    }

    /// It is under way, or waits for those before it.
    pub async fn progress(&self) {
        self.say(AckKind::Progress).await;
    }

    /// To others, at once: this process is about to end.
    pub async fn back(&self) {
        self.say(AckKind::Nak(None)).await;
    }

    /// It could not be taken in now.
    pub async fn again(&self) {
        let delivered = self.message.info().map_or(1, |info| info.delivered);
        let wait_ms = (100u64 << delivered.clamp(0, 10)).min(AGAIN_MS_MAX);
        self.say(AckKind::Nak(Some(Duration::from_millis(wait_ms))))
            .await;
    }

    /// It can never be taken in: it is kept where people look.
    pub async fn dead(&self, reason: &str) {
        self.dead.bury(&self.message, Which::Events, reason).await;
    }

    async fn say(&self, kind: AckKind) {
        if let Err(error) = self.message.ack_with(kind).await {
            tracing::debug!(%error, "an event will be delivered again");
        }
    }
}
