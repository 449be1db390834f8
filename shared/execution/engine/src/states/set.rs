//! `set` (DSL 1.0, "Set"): the data becomes a value.

use swirl_model::workflow::Template;

use super::{At, Kind};
use crate::scope::Step;

impl Kind for Template {
    fn begin(&self, at: &mut At<'_, '_>) -> Step {
        let value = at.view().template(self, at.data())?;
        at.put_data(value)?;
        at.done()
    }
}
