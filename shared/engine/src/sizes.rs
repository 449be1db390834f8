//! Limits on the data that a definition makes. They are checked where the data arises, so that an error handler can
//! act, and nothing too large is ever stored.

use swirl_model::error::names;
use swirl_model::instance::Room;
use swirl_model::scope::BranchResult;
use swirl_model::{Data, WorkflowError};

use crate::ctx::{Ctx, Step};

/// The size of an event without its data and attributes, including the additions at its publication.
const EVENT_OVERHEAD: usize = 1024;

/// The same for all definitions of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// The state data of a scope, and the input of an instance, as JSON text.
    pub data_bytes: usize,
    /// The results of all branches of a fork, as JSON text.
    pub fork_bytes: usize,
    /// The length of a chain of instances that start each other without any of them waiting for anything.
    pub chain: u32,
    /// A produced event.
    pub event_bytes: usize,
}

impl Default for Sizes {
    /// The largest event that nats-server accepts by default.
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
        self.check_data(&data, "the state data")?;
        self.set_data(data);
        Ok(())
    }

    /// # Errors
    /// The data is too large for a scope, or exceeds the size limit of its instance.
    pub(crate) fn check_data(&self, data: &Data, what: &str) -> Step {
        self.def.sizes.check_data(data, what)?;
        self.check_room(&[data])
    }

    /// # Errors
    /// These together are too large for the room that the instance has left.
    pub(crate) fn check_room(&self, parts: &[&Data]) -> Step {
        let Some(room) = self.env.room else {
            return Ok(());
        };
        let mut left = room.bytes;
        for part in parts {
            left = part.left_of(left).ok_or_else(|| no_room(room))?;
        }
        Ok(())
    }

    /// The result of a branch; an error, if it exceeds the size limit of its instance.
    pub(crate) fn result_within(&self, result: BranchResult) -> BranchResult {
        match self.env.room {
            Some(room) if result.is_done() && result.bytes() > room.bytes => {
                BranchResult::Failed(no_room(room))
            }
            _ => result,
        }
    }
}

fn no_room(room: Room) -> WorkflowError {
    let message = format!(
        "the instance would hold more than {} bytes in all of its branches together",
        room.limit
    );
    WorkflowError::new(names::LIMIT_EXCEEDED, message)
}
