//! Checks the data of a step against the limit for a scope and the room that its instance has left.

use swirl_model::error::names;
use swirl_model::instance::Room;
use swirl_model::scope::BranchResult;
use swirl_model::{Data, WorkflowError};

use crate::scope::{Check, Ctx};

impl Ctx<'_> {
    /// Changes the state data, unless that makes it too large.
    pub(crate) fn put_data(&mut self, data: Data) -> Check {
        self.check_data(&data, "the state data")?;
        self.set_data(data);
        Ok(())
    }

    /// # Errors
    /// The data is too large for a scope, or for the room that its instance has left.
    pub(crate) fn check_data(&self, data: &Data, what: &str) -> Check {
        self.def.sizes.check_data(data, what)?;
        self.check_room(&[data])
    }

    /// # Errors
    /// The data exceeds the room that the instance has left.
    pub(crate) fn check_room(&self, parts: &[&Data]) -> Check {
        let Some(room) = self.env.room else {
            return Ok(());
        };
        let mut left = room.bytes;
        for part in parts {
            left = part.left_of(left).ok_or_else(|| no_room(room))?;
        }
        Ok(())
    }

    /// # Errors
    /// Checks that the events of a task that listens fit into a scope, and into the room that the instance has left.
    pub(crate) fn check_held(&self, bytes: usize, what: &str) -> Check {
        self.def.sizes.check_bytes(bytes, what)?;
        let Some(room) = self.env.room else {
            return Ok(());
        };
        match self.scope.data.left_of(room.bytes) {
            Some(left) if bytes <= left => Ok(()),
            _ => Err(no_room(room)),
        }
    }

    /// The result of a branch, or an error if its instance has no room for it.
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
