//! JSON Schema checks of input and output.

use swirl_expr::SchemaError;
use swirl_model::error::names;
use swirl_model::event::Event;
use swirl_model::{Data, WorkflowError};

use crate::definition::schema::Validator;
use crate::scope::{Check, Ctx};

/// The data that is checked against a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checked {
    Input,
    Output,
}

impl Ctx<'_> {
    /// A mismatch is an error, or only an entry in the history with `failOnValidationErrors: false`
    /// (docs/language.md#decision-19). Data that cannot be checked within the limits is always an error.
    pub fn validate(&mut self, schema: &Validator, data: &Data, what: Checked) -> Check {
        let limits = self.view().expr_limits();
        let (name, of) = match what {
            Checked::Input => (names::INPUT_VALIDATION, "input"),
            Checked::Output => (names::OUTPUT_VALIDATION, "output"),
        };
        let message = match schema.inner.check(data, &limits) {
            Ok(()) => return Ok(()),
            Err(error @ SchemaError::Invalid { .. }) => error.to_string(),
            Err(error @ SchemaError::Limit(_)) => {
                return Err(WorkflowError::new(names::LIMIT_EXCEEDED, error.to_string()));
            }
        };
        if schema.fail {
            return Err(WorkflowError::new(name, message));
        }
        let of = of.into();
        self.emit(Event::ValidationFailed { of, message });
        Ok(())
    }
}
