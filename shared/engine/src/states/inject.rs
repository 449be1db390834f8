//! Inject state (0.8, "Inject State"): static data, merged into the state data.

use swirl_model::Data;
use swirl_model::scope::Exit;
use swirl_model::workflow::StateId;

use crate::ctx::{Ctx, Step};

impl Ctx<'_> {
    pub(super) fn begin_inject(&mut self, id: StateId, data: &Data) -> Step {
        // An inject state that only filters has no data.
        if !data.is_null() {
            self.merge_into_data(None, data)?;
        }
        self.finish(Exit::State(id))
    }
}
