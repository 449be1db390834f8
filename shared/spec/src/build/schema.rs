//! `dataInputSchema` and `dataOutputSchema`.

use swirl_model::Data;
use swirl_model::workflow::Schema;

use super::ctx::{Ctx, Obj};
use crate::codes;
use crate::source::Node;

impl Ctx<'_> {
    pub fn schema(&mut self, obj: Obj<'_>, name: &str) -> Option<Schema> {
        let node = obj.get(name)?;
        if node.as_str().is_some() {
            return Some(Schema {
                schema: self.schema_content(node)?,
                fail: true,
            });
        }
        let what = format!("'{name}'");
        if node.members().is_none() {
            self.wrong_type(node, &what, "a URI or an object");
            return None;
        }
        // A JSON Schema put there directly is the most common mistake: report it, once.
        if node.get("schema").is_none() {
            let message = format!("{what} needs 'schema'");
            let hint = "put the JSON Schema (or its URI) under 'schema'".to_owned();
            self.error(node, codes::MISSING_PROPERTY, message, hint);
            self.misspelt(node, &what, "schema");
            return None;
        }
        let obj = self.object(node, &what, &["schema", "failOnValidationErrors"])?;
        let fail = self.boolean(obj, "failOnValidationErrors", true);
        let schema = self.schema_content(obj.get("schema")?)?;
        Some(Schema { schema, fail })
    }

    /// The JSON Schema itself, or the one at a URI.
    fn schema_content(&mut self, node: &Node) -> Option<Data> {
        let content = match node.as_str() {
            Some(uri) => self.fetch(node, uri)?.to_data(),
            None => node.to_data(),
        };
        let json = serde_json::Value::from(&content);
        if !json.is_object() && !json.is_boolean() {
            self.error(node, codes::BAD_SCHEMA, "a JSON Schema is an object", None);
            return None;
        }
        if let Err(message) = swirl_expr::JsonSchema::compile(&json) {
            self.error(node, codes::BAD_SCHEMA, message, None);
        }
        Some(content)
    }
}
