//! Input, output, export and schemas (DSL 1.0, "Data Flow").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{Schema, Template};

use super::Reader;
use crate::build::schema_files::joined;

#[derive(Default)]
pub(super) struct Input {
    pub from: Option<Template>,
    pub schema: Option<Schema>,
}

#[derive(Default)]
pub(super) struct Output {
    pub value: Option<Template>,
    pub schema: Option<Schema>,
}

impl Reader<'_, '_> {
    pub fn input(&mut self, node: &Node, names: &'static [&'static str]) -> Input {
        let Some(obj) = self.object(node, "'input'", &["schema", "from"]) else {
            return Input::default();
        };
        Input {
            from: obj
                .get("from")
                .and_then(|node| self.transform(node, "'from'", names)),
            schema: obj.get("schema").and_then(|node| self.json_schema(node)),
        }
    }

    pub fn output(&mut self, node: &Node, names: &'static [&'static str]) -> Output {
        self.transformed(node, "'output'", names)
    }

    pub fn export(&mut self, node: &Node, names: &'static [&'static str]) -> Output {
        self.transformed(node, "'export'", names)
    }

    fn transformed(&mut self, node: &Node, what: &str, names: &'static [&'static str]) -> Output {
        let Some(obj) = self.object(node, what, &["schema", "as"]) else {
            return Output::default();
        };
        Output {
            value: obj
                .get("as")
                .and_then(|node| self.transform(node, "'as'", names)),
            schema: obj.get("schema").and_then(|node| self.json_schema(node)),
        }
    }

    /// A schema in place, or at an address.
    fn json_schema(&mut self, node: &Node) -> Option<Schema> {
        let obj = self.object(node, "'schema'", &["format", "document", "resource"])?;
        if let Some(node) = obj.get("format")
            && let Some(format) = self.string(node, "'format'")
            && format != "json"
            && !format.starts_with("json:")
        {
            let message = format!("a schema in the format '{format}' can't be checked");
            self.error(node, codes::UNKNOWN_VALUE, message, "use 'json'".to_owned());
        }
        let content = match (obj.get("document"), obj.get("resource")) {
            (Some(_), Some(_)) => {
                self.exclusive(obj, "'schema'", &["document", "resource"]);
                return None;
            }
            (Some(node), None) => self.schema_content(node)?,
            (None, Some(node)) => {
                let uri = self.resource(node)?;
                self.schema_content(&uri)?
            }
            (None, None) => {
                self.missing(obj, "'schema'", &["document", "resource"]);
                return None;
            }
        };
        Some(Schema {
            schema: content,
            fail: true,
        })
    }

    /// The `endpoint` of an external resource.
    pub fn resource_endpoint<'n>(&mut self, node: &'n Node) -> Option<&'n Node> {
        if let Some(text) = node.as_str() {
            let message = "a resource must be an object, but is a string".to_owned();
            let hint = format!("write '{{endpoint: {text}}}'");
            self.error(node, codes::WRONG_TYPE, message, hint);
            return None;
        }
        let obj = self.object(node, "a resource", &["name", "endpoint"])?;
        self.opt_string(obj, "name");
        let endpoint = obj.get("endpoint");
        if endpoint.is_none() {
            self.missing(obj, "a resource", &["endpoint"]);
        }
        endpoint
    }

    /// An external resource: the node of its address.
    pub fn resource(&mut self, node: &Node) -> Option<Node> {
        let endpoint = self.resource_endpoint(node)?;
        if endpoint.as_str().is_some() {
            return Some(self.relative(endpoint));
        }
        let obj = self.object(endpoint, "'endpoint'", &["uri", "authentication"])?;
        let Some(node) = obj.get("uri") else {
            self.missing(obj, "'endpoint'", &["uri"]);
            return None;
        };
        self.string(node, "'uri'")?;
        let uri = self.relative(node);
        if let Some(node) = obj.get("authentication")
            && let Some(auth) = self.authentication(node)
            && let Some(address) = uri.as_str()
        {
            let address = address.split('#').next().unwrap_or(address);
            self.credentials.push((address.to_owned(), auth));
        }
        Some(uri)
    }

    /// An address in the document of a function is relative to that document.
    pub fn relative(&self, node: &Node) -> Node {
        match (&self.origin, node.as_str()) {
            (Some((uri, _)), Some(address)) => node.text_here(joined(Some(uri), address)),
            _ => node.clone(),
        }
    }
}
