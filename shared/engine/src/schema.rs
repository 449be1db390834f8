//! JSON Schema checks of a workflow's input and output.

use swirl_model::Data;
use swirl_model::workflow::Schema;

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
