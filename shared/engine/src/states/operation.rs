//! Operation state (0.8, "Operation State"): actions, in sequence or in parallel.

use swirl_model::workflow::ListId;

use crate::ctx::{Ctx, Step};

impl Ctx<'_> {
    pub(super) fn begin_operation(&mut self, list: ListId) -> Step {
        self.begin_list(list)
    }
}
