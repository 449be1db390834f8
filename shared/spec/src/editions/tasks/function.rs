//! Function definitions (section "Function Definition", docs/language.md#decision-103).

use swirl_documents::source::Node;
use swirl_model::workflow::{Function, FunctionId};

use super::Reader;
use crate::build::ctx::Obj;
use crate::build::given::{Early, EarlyFunction, is_known_type};
use crate::build::names::FunctionEntry;

const PROPERTIES: &[&str] = &["name", "resource", "operation", "type", "metadata"];

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
        let word = self.opt_string(obj, "type");
        let resource = self.named(obj, "resource", &["operation"]);
        if resource.is_none() {
            self.without_resource(obj, word.as_deref());
        }
        let operation = resource.and_then(|node| self.string(node, "'resource'"));
        let name = self.need_string(obj, "a function", "name")?;
        let name_node = obj.get("name").unwrap_or(node);
        self.check_name(name_node, "a function's name", &name);
        if self.functions.get(&name).is_some() {
            self.duplicate(name_node, "function", &name);
        }
        let operation_node = resource.unwrap_or(node);
        let found = self.early_function(&EarlyFunction {
            name: &name,
            name_node,
            word: word.as_deref().unwrap_or_default(),
            place: obj.get("type").unwrap_or(node),
            operation: operation.as_deref().unwrap_or_default(),
            operation_node,
            is_resource: true,
        });
        let Early::Own(kind, operation) = found else {
            return Some(());
        };
        let metadata = self.function_metadata(obj, &kind);
        let entry = FunctionEntry {
            id: FunctionId(self.workflow.functions.len() as u32),
            kind: kind.clone(),
            kind_known: true,
            operation: operation.clone(),
            location: self.location(obj.get("type").unwrap_or(node)),
            operation_location: self.location(operation_node),
        };
        self.functions.add(name.clone(), entry);
        self.workflow.functions.push(Function {
            name: name.into(),
            kind,
            operation,
            place: String::new(),
            resource_auth: None,
            auth: None,
            metadata,
            within: None,
        });
        Some(())
    }

    /// Existing documents omit the resource if the type is sufficient (docs/language.md#decision-96).
    fn without_resource(&mut self, obj: Obj<'_>, word: Option<&str>) {
        match word.filter(|word| !is_known_type(word)) {
            Some(word) => {
                let message = format!(
                    "the function has no 'resource': the connector of '{word}' goes by its name and metadata"
                );
                self.loose(obj.node, message, "add 'resource'".to_owned());
            }
            _ => self.missing(obj, "a function", &["resource"]),
        }
    }
}
