//! Function definitions (section "Function Definition", docs/language.md#decision-54).

use swirl_model::workflow::{Function, FunctionId, FunctionKind};

use super::Reader;
use crate::build::ctx::{Obj, words};
use crate::build::names::FunctionEntry;
use crate::codes;
use crate::source::Node;

const PROPERTIES: &[&str] = &["name", "resource", "operation", "type", "metadata"];

/// Types of the runtime, whose operation is the resource.
const TYPES: [&str; 6] = ["rest", "asyncapi", "rpc", "graphql", "odata", "expression"];

/// The type of a function without one.
const CUSTOM: &str = "custom";

impl Reader<'_, '_> {
    pub fn function_definitions(&mut self, node: &Node) {
        let Some(items) = self.list(node, "'functions'") else {
            self.functions.unread = true;
            return;
        };
        for item in items {
            if self.function_definition(item).is_none() {
                self.functions.unread = true;
            }
        }
    }

    fn function_definition(&mut self, node: &Node) -> Option<()> {
        let obj = self.object(node, "a function", PROPERTIES)?;
        let metadata = self.metadata(obj);
        let kind = self.function_kind(obj);
        let resource = self.named(obj, "resource", &["operation"]);
        if resource.is_none() {
            self.without_resource(obj, kind.as_ref());
        }
        let operation = resource.and_then(|node| self.string(node, "'resource'"));
        let name = self.need_string(obj, "a function", "name")?;
        let name_node = obj.get("name").unwrap_or(node);
        self.check_name(name_node, "a function's name", &name);
        if self.functions.get(&name).is_some() {
            self.duplicate(name_node, "function", &name);
        }
        let kind = kind.unwrap_or_else(|| FunctionKind::Custom(CUSTOM.to_owned()));
        let is_given = self.options.provided.contains(&name);
        if let (FunctionKind::Custom(word), false) = (&kind, is_given) {
            if self.given_function(name_node, &name).is_some() {
                return Some(());
            }
            let place = obj.get("type").unwrap_or(node);
            self.custom_function(place, &name, word);
        }
        let operation = operation.unwrap_or_default();
        let operation_node = resource.unwrap_or(node);
        if !operation.is_empty() && !is_given {
            self.operation_format(operation_node, &kind, &operation);
        }
        let entry = FunctionEntry {
            id: FunctionId(self.workflow.functions.len() as u32),
            kind: kind.clone(),
            operation: operation.clone(),
            location: self.location(obj.get("type").unwrap_or(node)),
            operation_location: self.location(operation_node),
        };
        self.functions.add(name.clone(), entry);
        self.workflow.functions.push(Function {
            name: name.into(),
            kind,
            operation,
            resource_auth: None,
            auth: None,
            metadata,
        });
        Some(())
    }

    /// Existing documents omit the resource if the type is sufficient (docs/language.md#decision-96).
    fn without_resource(&mut self, obj: Obj<'_>, kind: Option<&FunctionKind>) {
        match kind {
            Some(FunctionKind::Custom(word)) => {
                let message = format!(
                    "the function has no 'resource': the connector of '{word}' goes by its name and metadata"
                );
                self.loose(obj.node, message, "add 'resource'".to_owned());
            }
            _ => self.missing(obj, "a function", &["resource"]),
        }
    }

    /// A function without a document is rejected unless its type has an implementation. If that isn't known, it is a
    /// warning.
    fn custom_function(&mut self, place: &Node, name: &str, word: &str) {
        let known = self.options.custom_types.as_ref();
        if known.is_some_and(|known| known.contains(word)) {
            return;
        }
        let what = match place.as_str() {
            Some(word) => format!("is of the type '{word}'"),
            None => "has no type".to_owned(),
        };
        let message =
            format!("the function '{name}' {what}, and no implementation of it is available here");
        let mut hint = format!(
            "name its connector where workflows run: --connector {word}=http://host/path, or give the \
             function with --functions FILE; types with a document are {}",
            words(&TYPES)
        );
        if let Some(known) = known.filter(|known| !known.is_empty()) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            hint = format!("{hint}. Carried out here are {}", words(&known));
        }
        let is_refused = known.is_some();
        if is_refused {
            self.error(place, codes::FUNCTION_TYPE_UNKNOWN, message, hint);
        } else {
            self.warn(place, codes::FUNCTION_TYPE_UNKNOWN, message, hint);
        }
    }

    /// One of the runtime's types, in any case; otherwise a connector's type.
    fn function_kind(&mut self, obj: Obj<'_>) -> Option<FunctionKind> {
        let word = self.opt_string(obj, "type")?;
        Some(match word.to_ascii_lowercase().as_str() {
            "rest" => FunctionKind::Rest,
            "asyncapi" => FunctionKind::Asyncapi,
            "rpc" => FunctionKind::Rpc,
            "graphql" => FunctionKind::Graphql,
            "odata" => FunctionKind::Odata,
            "expression" => FunctionKind::Expression,
            _ => FunctionKind::Custom(word),
        })
    }
}
