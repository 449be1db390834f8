//! Function definitions (section "Function Definition", docs/language.md#decision-103).

use swirl_documents::source::Node;
use swirl_model::Data;
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
        let operation = match resource {
            Some(node) => self.string(node, "'resource'").map(Some),
            None => Some(None),
        };
        let name = self.need_string(obj, "a function", "name")?;
        let name_node = obj.get("name").unwrap_or(node);
        self.check_name(name_node, "a function's name", &name);
        if self.functions.get(&name).is_some() {
            self.duplicate(name_node, "function", &name);
        }
        if resource.is_none() {
            self.without_resource(obj, word.as_deref(), &name);
        }
        let operation = operation?;
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
        let (kind, operation, is_posted) = match found {
            Early::Given(_) => return Some(()),
            Early::Own(kind, operation) => (kind, operation, false),
            Early::Posted(kind, operation) => (kind, operation, true),
        };
        let mut metadata = self.function_metadata(obj, &kind);
        if is_posted {
            if !metadata.is_object() {
                metadata = Data::object();
            }
            metadata.set("argumentsAreBody", Data::bool(true));
        }
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

    /// Existing documents omit the resource if the type or the name is sufficient (docs/language.md#decision-96 and
    /// #decision-103). If neither is, what refuses the function says so.
    fn without_resource(&mut self, obj: Obj<'_>, word: Option<&str>, name: &str) {
        let name_node = obj.get("name").unwrap_or(obj.node);
        let is_given = self.given_function(name_node, name).is_some();
        let message = if is_given || self.options.provided.contains(name) {
            format!("the function has no 'resource': '{name}' is given, and is called by its name")
        } else {
            match word {
                Some(word) if !is_known_type(word) => format!(
                    "the function has no 'resource': the connector of '{word}' goes by its name and metadata"
                ),
                _ => return,
            }
        };
        self.loose(obj.node, message, "add 'resource'".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use crate::editions::tasks::testing::{of_tasks, show, workflow};
    use crate::options::Options;
    use crate::resource::MapResources;

    const TASKS: &str = "tasks: [{name: A, type: operation, start: {kind: default}, actions: [{functionRef: {refName: f}}], end: {kind: default}}]\n";

    fn findings(function: &str, given: &str, mocks: &[&str]) -> String {
        let mut resources = MapResources::default();
        if !given.is_empty() {
            resources.insert("functions.yaml", given.as_bytes().to_vec());
        }
        let options = Options {
            provided: mocks.iter().map(|name| (*name).to_owned()).collect(),
            custom_types: Some(std::collections::BTreeSet::new()),
            ..Options::default()
        };
        let text = of_tasks(&format!("functions: [{{name: f{function}}}]\n{TASKS}"));
        show(&crate::reader::read(text.as_bytes(), &resources, &options))
    }

    #[test]
    fn a_function_that_is_given_needs_no_resource() {
        let given = "[{name: f, type: expression, operation: .a}]";
        let loose = "warning loose-form /functions/0 4";
        for kind in [
            "",
            ", type: rest",
            ", type: expression",
            ", type: custom",
            ", type: faas",
        ] {
            assert_eq!(findings(kind, given, &[]), loose, "{kind}");
            assert_eq!(findings(kind, "", &["f"]), loose, "{kind}");
        }
        for (kind, expected) in [
            (", type: rest", "error missing-property /functions/0 4"),
            (
                ", type: expression",
                "error missing-property /functions/0 4",
            ),
            ("", "error function-type-unknown /functions/0 4"),
            (
                ", type: faas",
                "warning loose-form /functions/0 4\nerror function-type-unknown /functions/0/type 4",
            ),
            (
                ", type: rest, resource: 5",
                "error wrong-type /functions/0/resource 4",
            ),
        ] {
            assert_eq!(findings(kind, "", &[]), expected, "{kind}");
        }
    }

    #[test]
    fn the_parameters_of_a_url_are_its_body() {
        let text = format!(
            "functions: [{{name: f, type: rest, resource: 'http://h/echo', metadata: {{team: a}}}}]\n{TASKS}"
        );
        let function = workflow(&text).functions.swap_remove(0);
        assert_eq!(function.operation, "rest:POST:http://h/echo");
        let metadata = function.metadata.to_string();
        assert_eq!(metadata, r#"{"team":"a","argumentsAreBody":true}"#);
    }
}
