//! The compiled JSON Schema of a workflow's or a state's input or output.

use swirl_expr::JsonSchema;
use swirl_model::workflow::Schema;

#[derive(Debug)]
pub struct Validator {
    pub(crate) inner: JsonSchema,
    pub fail: bool,
}

impl Validator {
    pub fn compile(schema: &Schema) -> Result<Validator, String> {
        let json = serde_json::Value::from(&schema.schema);
        JsonSchema::compile(&json).map(|inner| Validator {
            inner,
            fail: schema.fail,
        })
    }
}
