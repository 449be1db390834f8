//! Functions, which are defined where they are called (section "Function Definition", docs/language.md#decision-103).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{Function, FunctionId, FunctionKind, Template};

use super::Reader;
use crate::build::expression::VisibleVars;
use crate::build::given::{Early, EarlyFunction};
use crate::build::paths::is_path;

const PROPERTIES: &[&str] = &["name", "type", "parameters"];

impl Reader<'_, '_> {
    /// The function and its arguments. `None` as the arguments means the data itself.
    pub fn function(&mut self, node: &Node) -> Option<(FunctionId, Option<Template>)> {
        if let Some(name) = node.as_str() {
            let message = "'function' is a name only, and needs an object with 'name' and 'type'";
            let hint = format!("write {{name: '{name}', type: ...}}");
            self.ctx.warn(node, codes::MISSING_PROPERTY, message, hint);
            let name = self.ctx.string(node, "'function'")?;
            return Some((self.function_named(node, node, &name, ""), None));
        }
        let obj = self.ctx.object(node, "a function", PROPERTIES)?;
        let arguments = match obj.get("parameters") {
            Some(node) => self.parameters(node).map(Some),
            None => Some(None),
        };
        let kind = match obj.get("type") {
            Some(node) => self.ctx.string(node, "'type'"),
            None => {
                let message = "a function needs 'type'";
                let hint = "add 'type', such as 'rest'".to_owned();
                self.ctx.warn(node, codes::MISSING_PROPERTY, message, hint);
                Some(String::new())
            }
        };
        let name = self.ctx.need_string(obj, "a function", "name")?;
        let place = obj.get("type").unwrap_or(node);
        let name_node = obj.get("name").unwrap_or(node);
        self.ctx.check_name(name_node, "a function's name", &name);
        let id = self.function_named(name_node, place, &name, &kind?);
        Some((id, arguments?))
    }

    /// The function with this name and type. All calls share it.
    fn function_named(
        &mut self,
        name_node: &Node,
        place: &Node,
        name: &str,
        word: &str,
    ) -> FunctionId {
        let key = (name.to_owned(), word.to_owned());
        if let Some(id) = self.functions.get(&key) {
            return *id;
        }
        let found = self.ctx.early_function(&EarlyFunction {
            name,
            name_node,
            word,
            place,
            operation: name,
            operation_node: name_node,
            is_resource: false,
        });
        let id = match found {
            Early::Given(id) => id,
            // In the drafts, a name is no URL to call.
            Early::Own(kind, operation) | Early::Posted(kind, operation) => {
                self.plain_function(name, kind, &operation)
            }
        };
        self.functions.insert(key, id);
        id
    }

    pub fn plain_function(
        &mut self,
        name: &str,
        kind: FunctionKind,
        operation: &str,
    ) -> FunctionId {
        let id = FunctionId(self.ctx.workflow.functions.len() as u32);
        self.ctx.workflow.functions.push(Function {
            name: name.into(),
            kind,
            operation: operation.to_owned(),
            place: String::new(),
            resource_auth: None,
            auth: None,
            metadata: swirl_model::Data::NULL,
            within: None,
        });
        id
    }

    /// The arguments of a function: an object, in which a text that is a path is replaced by the value that it selects.
    fn parameters(&mut self, node: &Node) -> Option<Template> {
        if node.as_str().is_some_and(is_path) {
            let message = "'parameters' is a path, and needs an object: the selected value is sent";
            let hint = "write an object".to_owned();
            self.ctx.warn(node, codes::WRONG_TYPE, message, hint);
            return self.argument(node);
        }
        if node.members().is_none() {
            self.ctx.wrong_type(node, "'parameters'", "an object");
            return None;
        }
        self.argument(node)
    }

    fn argument(&mut self, node: &Node) -> Option<Template> {
        if let Some(text) = node.as_str().filter(|text| is_path(text)) {
            let text = match text.trim() {
                "$." => "$",
                text => text,
            };
            let location = self.ctx.location(node);
            let id = self.ctx.compile(&location, text, VisibleVars::PLAIN)?;
            return Some(Template::Expression(id));
        }
        if let Some(items) = node.items() {
            let list: Vec<_> = items.iter().map(|item| self.argument(item)).collect();
            return list.into_iter().collect::<Option<_>>().map(Template::Array);
        }
        if let Some(members) = node.members() {
            let values: Vec<_> = members
                .iter()
                .map(|member| Some((member.key().to_owned(), self.argument(member.value())?)))
                .collect();
            return values
                .into_iter()
                .collect::<Option<_>>()
                .map(Template::Object);
        }
        Some(Template::Literal(node.to_data()))
    }
}
