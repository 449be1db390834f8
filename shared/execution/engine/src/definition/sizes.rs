//! Limits on the data that a definition creates. They are checked where the data is created, so that an error handler
//! can act, and nothing too large is ever stored.

use std::time::Duration;

use swirl_model::error::names;
use swirl_model::{Data, WorkflowError};

/// The size of an event without its data and attributes, including what its publication adds.
const EVENT_OVERHEAD: usize = 1024;

/// Limits that are the same for all definitions of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The state data of a scope, and the input of an instance, as JSON text. The tasks around the current one may hold
    /// twice as much together.
    pub data_bytes: usize,
    /// The results of all branches of a fork, as JSON text.
    pub fork_bytes: usize,
    /// The length of a chain of instances that start each other while none of them waits for anything.
    pub chain: u32,
    /// A produced event.
    pub event_bytes: usize,
    /// The processor time of one evaluation ([`swirl_expr::Limits::time`]).
    pub expression_time: Duration,
}

impl Default for Sizes {
    /// The largest event that nats-server accepts by default.
    fn default() -> Sizes {
        Sizes {
            data_bytes: 4 << 20,
            fork_bytes: 32 << 20,
            chain: 1_000,
            event_bytes: (1 << 20) - 4096,
            expression_time: swirl_expr::Limits::default().time,
        }
    }
}

impl Sizes {
    /// # Errors
    /// The data is too large.
    pub(crate) fn check_data(&self, data: &Data, what: &str) -> Result<(), WorkflowError> {
        match data.exceeds(self.data_bytes) {
            true => Err(self.too_large(what)),
            false => Ok(()),
        }
    }

    /// The same, for something of this many bytes.
    pub(crate) fn check_bytes(&self, bytes: usize, what: &str) -> Result<(), WorkflowError> {
        match bytes > self.data_bytes {
            true => Err(self.too_large(what)),
            false => Ok(()),
        }
    }

    /// What the tasks around the current one hold. Without this limit, a scope's record could become larger than a store
    /// takes.
    pub(crate) fn held_bytes(&self) -> usize {
        self.data_bytes.saturating_mul(2)
    }

    pub(crate) fn too_large_around(&self) -> WorkflowError {
        let message = format!(
            "the tasks around it would hold more than {} bytes, with their inputs and lists",
            self.held_bytes()
        );
        WorkflowError::new(names::LIMIT_EXCEEDED, message)
    }

    fn too_large(&self, what: &str) -> WorkflowError {
        let message = format!("{what} would be larger than {} bytes", self.data_bytes);
        WorkflowError::new(names::LIMIT_EXCEEDED, message)
    }

    /// # Errors
    /// The event is too large to be published.
    pub(crate) fn check_event(&self, name: &str, parts: &[&Data]) -> Result<(), WorkflowError> {
        let size_max = self.event_bytes.saturating_sub(EVENT_OVERHEAD);
        let parts = Data::array(parts.iter().map(|part| (*part).clone()).collect());
        if parts.exceeds(size_max) {
            let message = format!(
                "the event '{name}' would be larger than the {} bytes that can be published",
                self.event_bytes
            );
            return Err(WorkflowError::new(names::LIMIT_EXCEEDED, message));
        }
        Ok(())
    }
}
