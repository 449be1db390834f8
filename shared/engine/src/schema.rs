//! JSON Schema checks of a workflow's input and output.

use swirl_model::error::names;
use swirl_model::event::Event;
use swirl_model::workflow::Schema;
use swirl_model::{Data, WorkflowError};

use crate::ctx::{Ctx, Step};

/// What a schema is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checked {
    Input,
    Output,
}

impl Ctx<'_> {
    /// An error, or with `failOnValidationErrors: false` an entry of the history (decision 19).
    pub fn validate(&mut self, schema: &Validator, data: &Data, what: Checked) -> Step {
        let Err(message) = schema.check(data) else {
            return Ok(());
        };
        let (name, of) = match what {
            Checked::Input => (names::INPUT_VALIDATION, "input"),
            Checked::Output => (names::OUTPUT_VALIDATION, "output"),
        };
        if schema.fail {
            return Err(WorkflowError::new(name, message));
        }
        let of = of.into();
        self.emit(Event::ValidationFailed { of, message });
        Ok(())
    }
}

#[derive(Debug)]
pub struct Validator {
    inner: jsonschema::Validator,
    pub fail: bool,
}

impl Validator {
    pub fn compile(schema: &Schema) -> Result<Validator, String> {
        let json = serde_json::Value::from(&schema.schema);
        jsonschema::validator_for(&json)
            .map(|inner| Validator {
                inner,
                fail: schema.fail,
            })
            .map_err(|error| format!("this is no valid JSON Schema: {error}"))
    }

    /// What is wrong with the data: the first few findings, with their places.
    pub fn check(&self, data: &Data) -> Result<(), String> {
        let json = serde_json::Value::from(data);
        let mut findings = self.inner.iter_errors(&json).peekable();
        if findings.peek().is_none() {
            return Ok(());
        }
        let texts: Vec<String> = findings
            .take(3)
            .map(|error| format!("{} at '{}'", error, error.instance_path()))
            .collect();
        Err(texts.join("; "))
    }
}
