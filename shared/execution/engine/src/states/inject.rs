//! Inject state (0.8, "Inject State"): static data, merged into the state data.

use swirl_model::Data;

use super::{At, Kind};
use crate::scope::Step;

impl Kind for Data {
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        // An inject state that only filters has no data.
        if !self.is_null() {
            at.merge(None, self)?;
        }
        at.done()
    }
}
