//! `call: http` and `call: openapi` (DSL 1.0, "HTTP Call", "OpenAPI Call").

use swirl_documents::codes;
use swirl_model::Data;
use swirl_model::workflow::{FunctionKind, StateKind, Template};

use super::Reader;
use super::called::Called;
use super::value::DEFINITION;
use crate::build::ctx::Obj;

const HTTP: &[&str] = &[
    "method", "endpoint", "headers", "body", "query", "output", "redirect",
];
const OPENAPI: &[&str] = &[
    "document",
    "operationId",
    "parameters",
    "authentication",
    "output",
    "redirect",
];
const OUTPUTS: [&str; 3] = ["raw", "content", "response"];

impl Reader<'_, '_> {
    pub fn http_call(&mut self, task: Obj<'_>) -> Option<StateKind> {
        let Some(with) = task.get("with") else {
            self.missing(task, "a task with 'call: http'", &["with"]);
            return None;
        };
        let mut with = with.clone();
        if with.get("endpoint").is_none()
            && let Some(uri) = with.take("uri")
        {
            let message = "'uri' is read as 'endpoint'".to_owned();
            self.loose(&uri, message, "write 'endpoint'".to_owned());
            with.put("endpoint", uri);
        }
        let obj = self.with_of(&with, HTTP, &["method", "endpoint"])?;
        let mut arguments = Vec::new();
        let method = obj.get("method").and_then(|node| {
            let text = self.string(node, "'method'")?;
            let is_literal = !text.contains("${") && !self.loose;
            if is_literal && !text.bytes().all(is_token) {
                let message = format!("'method' cannot be '{text}'");
                let hint = "write the name of a method, such as GET".to_owned();
                self.error(node, codes::UNKNOWN_VALUE, message, hint);
                return None;
            }
            self.text_value(node, DEFINITION, false)
        });
        arguments.push(("method".to_owned(), method));
        let (uri, auth) = match obj.get("endpoint") {
            Some(node) => self.endpoint(node),
            None => (None, None),
        };
        arguments.push(("uri".to_owned(), uri));
        for name in ["headers", "query"] {
            let Some(node) = obj.get(name) else {
                continue;
            };
            if node.members().is_none() && !self.is_expression(node, DEFINITION) {
                self.wrong_type(node, &format!("'{name}'"), "an object or an expression");
                continue;
            }
            arguments.push((name.to_owned(), self.scalars(node, DEFINITION, true)));
        }
        if let Some(node) = obj.get("body") {
            arguments.push(("body".to_owned(), self.value(node, DEFINITION, true)));
        }
        if let Some(word) = self.word(obj, "output", &OUTPUTS) {
            let value = Template::Literal(Data::string(word));
            arguments.push(("output".to_owned(), Some(value)));
        }
        if self.truth(obj, "redirect", false) {
            let value = Template::Literal(Data::from(serde_json::Value::Bool(true)));
            arguments.push(("redirect".to_owned(), Some(value)));
        }
        let arguments: Option<Vec<_>> = arguments
            .into_iter()
            .map(|(name, value)| value.map(|value| (name, value)))
            .collect();
        let called = Called {
            kind: FunctionKind::HttpCall,
            operation: String::new(),
            resource_auth: None,
            auth,
            metadata: Data::object(),
            arguments: Template::Object(arguments?),
            timeout: None,
        };
        Some(self.calling(task, called))
    }

    pub fn openapi_call(&mut self, task: Obj<'_>) -> Option<StateKind> {
        let required = &["document", "operationId"];
        let obj = self.with(task, "openapi", OPENAPI, required)?;
        let document = obj.get("document").map(|node| self.described_by(node));
        let operation = obj
            .get("operationId")
            .map(|node| self.string(node, "'operationId'"));
        let arguments = self.named_values(obj, "parameters");
        let auth = self.auth_of(obj);
        let mut metadata = Data::object();
        if let Some(word) = self.word(obj, "output", &OUTPUTS) {
            metadata.set("output", Data::string(word));
        }
        if self.truth(obj, "redirect", false) {
            metadata.set("redirect", Data::from(serde_json::Value::Bool(true)));
        }
        let (uri, resource_auth) = document??;
        let called = Called {
            kind: FunctionKind::Rest,
            operation: format!("{uri}#{}", operation??),
            resource_auth,
            auth: auth?,
            metadata,
            arguments: arguments?,
            timeout: None,
        };
        Some(self.calling(task, called))
    }
}

/// The signs of an HTTP method (RFC 9110, "Tokens").
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
