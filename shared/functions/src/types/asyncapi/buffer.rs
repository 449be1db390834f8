//! The messages of a subscription that wait for the calls of their task.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use swirl_model::Data;
use swirl_model::messages::{Consumes, MESSAGES_MAX};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::came::{Came, Took};
use super::compile::Sending;
use super::taking::message_of;
use crate::{CallError, CallErrorKind};

/// A subscription ends if no call has taken a message from it for this long.
const UNUSED_MAX: Duration = Duration::from_secs(600);
/// How often that is checked.
const CHECK_EVERY: Duration = Duration::from_secs(15);

/// The messages that have come and aren't taken yet.
#[derive(Debug)]
pub(super) struct Buffer {
    held: Mutex<Held>,
    news: Notify,
    bytes_max: usize,
}

#[derive(Debug)]
struct Held {
    messages: VecDeque<(u64, Came)>,
    bytes: usize,
    /// The number of messages that have come.
    came: u64,
    calls: usize,
    used: Instant,
    /// No more messages come.
    is_over: bool,
    failed: Option<CallError>,
}

impl Buffer {
    pub(super) fn new(bytes_max: usize) -> Buffer {
        Buffer {
            held: Mutex::new(Held {
                messages: VecDeque::new(),
                bytes: 0,
                came: 0,
                calls: 0,
                used: Instant::now(),
                is_over: false,
                failed: None,
            }),
            news: Notify::new(),
            bytes_max,
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// There is no room for the message.
    pub(super) fn put(&self, came: Came, what: &str) -> Result<Took, CallError> {
        let mut held = self.held();
        held.bytes += came.bytes();
        if held.bytes > self.bytes_max || held.messages.len() >= MESSAGES_MAX {
            let reason = format!(
                "{what}: messages arrive faster than they are processed: more than {MESSAGES_MAX}, or {} bytes, wait",
                self.bytes_max
            );
            return Err(CallError::new(CallErrorKind::Limit, reason));
        }
        held.came += 1;
        let number = held.came;
        held.messages.push_back((number, came));
        drop(held);
        self.news.notify_one();
        Ok(Took::Dropped)
    }

    pub(super) fn ends(&self, over: Result<(), CallError>) {
        let mut held = self.held();
        held.is_over = true;
        held.failed = over.err();
        drop(held);
        self.news.notify_one();
    }

    pub(super) fn forget(&self, number: u64) {
        let mut held = self.held();
        if held
            .messages
            .front()
            .is_some_and(|(first, _)| *first == number)
            && let Some((_, came)) = held.messages.pop_front()
        {
            held.bytes = held.bytes.saturating_sub(came.bytes());
        }
    }

    /// The first message that the rule takes, with its number; `None`: no more come.
    pub(super) async fn next(
        &self,
        rule: &dyn Consumes,
        sending: &Sending,
        what: &str,
    ) -> Result<Option<(u64, Data)>, CallError> {
        loop {
            let read = {
                let mut held = self.held();
                match held.messages.front() {
                    Some((number, came)) => Some((*number, message_of(sending, came, what)?)),
                    None => match (held.failed.take(), held.is_over) {
                        (Some(error), _) => return Err(error),
                        (None, true) => return Ok(None),
                        (None, false) => None,
                    },
                }
            };
            match read {
                Some((number, message)) if rule.takes(&message) => {
                    return Ok(Some((number, message)));
                }
                Some((number, _)) => self.forget(number),
                None => self.news.notified().await,
            }
        }
    }

    pub(super) async fn is_unused(&self) {
        loop {
            tokio::time::sleep(CHECK_EVERY).await;
            let held = self.held();
            if held.calls == 0 && held.used.elapsed() > UNUSED_MAX {
                return;
            }
        }
    }

    /// How many messages wait.
    pub(super) fn len(&self) -> usize {
        self.held().messages.len()
    }

    /// A call takes from it, as long as this lives.
    pub(super) fn in_use(&self) -> InUse<'_> {
        self.held().calls += 1;
        InUse(self)
    }
}

pub(super) struct InUse<'b>(&'b Buffer);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let mut held = self.0.held();
        held.calls -= 1;
        held.used = Instant::now();
    }
}
