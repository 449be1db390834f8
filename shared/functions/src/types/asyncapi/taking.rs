//! The messages that a subscription takes (DSL 1.0, "AsyncAPI Subscription").

use std::sync::{Mutex, PoisonError};

use swirl_model::messages::{Consumes, MESSAGES_MAX};
use swirl_model::{Data, WorkflowError};
use tokio::time::Instant;

use super::came::{Came, Took};
use super::compile::Sending;
use super::message;
use crate::{CallError, CallErrorKind};

/// Takes messages until there are enough, or their time is over.
pub(super) struct Taking<'a> {
    rule: &'a dyn Consumes,
    sending: &'a Sending,
    /// The limit for the payloads and headers of all messages together.
    bytes_max: usize,
    pub(super) ends: Option<Instant>,
    /// It takes one message, and others stay where they are.
    pub(super) is_one: bool,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    messages: Vec<Data>,
    bytes: usize,
}

impl<'a> Taking<'a> {
    pub(super) fn new(
        rule: &'a dyn Consumes,
        sending: &'a Sending,
        bytes_max: usize,
    ) -> Taking<'a> {
        Taking {
            rule,
            sending,
            bytes_max,
            ends: rule.span().map(|span| Instant::now() + span),
            is_one: rule.subscription().is_some(),
            taken: Mutex::default(),
        }
    }

    /// Whether it has enough before any message comes.
    pub(super) fn is_over(&self) -> Result<bool, CallError> {
        self.rule.is_enough(&[]).map_err(|error| exact(&error))
    }

    /// # Errors
    /// The message can't be read, there are too many, or a condition fails.
    pub(super) fn take(&self, came: &Came, what: &str) -> Result<Took, CallError> {
        let message = message_of(self.sending, came, what)?;
        if !self.rule.takes(&message) {
            return Ok(Took::Dropped);
        }
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.bytes = taken.bytes.saturating_add(came.bytes());
        if taken.bytes > self.bytes_max {
            let limit = self.bytes_max;
            let reason = format!("{what}: the messages have more than {limit} bytes");
            return Err(CallError::new(CallErrorKind::Limit, reason));
        }
        taken.messages.push(message);
        match self.rule.is_enough(&taken.messages) {
            Ok(true) => Ok(Took::Last),
            Ok(false) if taken.messages.len() >= MESSAGES_MAX => {
                let reason =
                    format!("{what}: a subscription takes at most {MESSAGES_MAX} messages");
                Err(CallError::new(CallErrorKind::Limit, reason))
            }
            Ok(false) => Ok(Took::Kept),
            Err(error) => Err(exact(&error)),
        }
    }

    pub(super) fn into_list(self) -> Data {
        let taken = self.taken.into_inner();
        Data::array(taken.unwrap_or_else(PoisonError::into_inner).messages)
    }
}

/// A message as the workflow sees it.
///
/// # Errors
/// It is none of the operation's.
pub(super) fn message_of(sending: &Sending, came: &Came, what: &str) -> Result<Data, CallError> {
    let (payload, of) = message::first_fitting(&sending.messages, came, what)?;
    let mut headers = Data::object();
    for (name, value) in &came.headers {
        headers.set(name, Data::string(value.as_str()));
    }
    let own = came.correlation.clone().map(Data::string);
    let correlation = own.or_else(|| of.correlation(&payload, &headers));
    let mut message = Data::object();
    message.set("payload", payload);
    if !came.headers.is_empty() {
        message.set("headers", headers);
    }
    if let Some(correlation) = correlation {
        message.set("correlationId", correlation);
    }
    Ok(message)
}

/// An error of the definition's own.
fn exact(error: &WorkflowError) -> CallError {
    let mut failed = CallError::new(CallErrorKind::Failed, error.message.clone());
    failed.exact = Some(Box::new(error.clone()));
    failed
}
