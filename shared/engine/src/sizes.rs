//! How large what a definition makes may become: checked where it is made, so that an error handler can act,
//! and nothing of it is ever stored.

use swirl_model::error::names;
use swirl_model::{Data, WorkflowError};

use crate::ctx::{Ctx, Step};

/// What an event has beside its data and attributes, and what is added where it is published.
const EVENT_OVERHEAD: usize = 1024;

/// The same for all definitions of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The state data of a scope, and the input of an instance, as JSON text.
    pub data_bytes: usize,
    /// The results of all branches of a fork, as JSON text.
    pub fork_bytes: usize,
    /// How many instances may start each other, one after the other, without one of them waiting for anything.
    pub chain: u32,
    /// A produced event.
    pub event_bytes: usize,
}

impl Default for Sizes {
    /// Events as nats-server takes them unless it is told otherwise.
    fn default() -> Sizes {
        Sizes {
            data_bytes: 4 << 20,
            fork_bytes: 32 << 20,
            chain: 1_000,
            event_bytes: (1 << 20) - 4096,
        }
    }
}

impl Sizes {
    /// # Errors
    /// The data is too large.
    pub(crate) fn check_data(&self, data: &Data, what: &str) -> Step {
        if data.exceeds(self.data_bytes) {
            let message = format!("{what} would be larger than {} bytes", self.data_bytes);
            return Err(WorkflowError::new(names::LIMIT_EXCEEDED, message));
        }
        Ok(())
    }

    /// # Errors
    /// The event is too large to be published.
    pub(crate) fn check_event(&self, name: &str, parts: &[&Data]) -> Step {
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

impl Ctx<'_> {
    /// Changes the state data, if it is not too large then.
    pub(crate) fn put_data(&mut self, data: Data) -> Step {
        self.def.sizes.check_data(&data, "the state data")?;
        self.set_data(data);
        Ok(())
    }
}
