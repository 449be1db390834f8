//! The state data with which a state begins that events start.

use swirl_model::workflow::StateId;

use super::jq_text::{filter, piped};
use super::writer::Writer;

impl Writer<'_> {
    /// It isn't in the input of the state's task, which is the list of the events. `None` for any other state.
    pub fn data_at_start(&mut self, id: StateId) -> Option<String> {
        if !self.starts_by_event(id) {
            return None;
        }
        Some(match self.workflow[id].input {
            Some(input) => {
                let text = self.expr(input, ".");
                piped("{}", &filter(&text))
            }
            None => "{}".to_owned(),
        })
    }
}
