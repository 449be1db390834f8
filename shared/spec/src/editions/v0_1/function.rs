//! Functions, which are defined where they are called (section "Function Definition", docs/language.md#decision-54).

use swirl_model::workflow::{FunctionId, FunctionKind, Template};

use super::Reader;
use crate::build::ctx::words;
use crate::build::expression::VisibleVars;
use crate::codes;
use crate::source::Node;

const PROPERTIES: &[&str] = &["name", "type", "parameters"];

/// Function types of the runtime. The name of a function with such a type is its operation.
const TYPES: [(&str, FunctionKind); 6] = [
    ("rest", FunctionKind::Rest),
    ("asyncapi", FunctionKind::Asyncapi),
    ("rpc", FunctionKind::Rpc),
    ("graphql", FunctionKind::Graphql),
    ("odata", FunctionKind::Odata),
    ("expression", FunctionKind::Expression),
];

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
        let of_ours = TYPES
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(word));
        let given = match of_ours {
            true => None,
            false => self.ctx.given_function(name_node, name),
        };
        let id = given.unwrap_or_else(|| {
            let kind = self.function_kind(name_node, place, name, word);
            self.plain_function(name, kind, name)
        });
        self.functions.insert(key, id);
        id
    }

    fn function_kind(
        &mut self,
        name_node: &Node,
        place: &Node,
        name: &str,
        word: &str,
    ) -> FunctionKind {
        let provided = self.ctx.options.provided.contains(name);
        let known = TYPES
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(word));
        if let Some((_, kind)) = known {
            if !provided {
                self.ctx.operation_format(name_node, kind, name);
            }
            return kind.clone();
        }
        if !provided && !word.eq_ignore_ascii_case("custom") {
            self.custom_type(place, name, word);
        }
        FunctionKind::Custom(match word {
            "" => "custom".to_owned(),
            word => word.to_owned(),
        })
    }

    /// A custom type. It is rejected unless it has an implementation here; if that isn't known, it is a warning.
    fn custom_type(&mut self, place: &Node, name: &str, word: &str) {
        let known = self.ctx.options.custom_types.as_ref();
        if known.is_some_and(|known| known.contains(word)) {
            return;
        }
        let types: Vec<&str> = TYPES.iter().map(|(word, _)| *word).collect();
        let (message, connector) = match word {
            "" => (
                format!(
                    "the function '{name}' has no type, and no implementation of it is available here"
                ),
                "TYPE",
            ),
            _ => (
                format!(
                    "the function '{name}' has the type '{word}', and no implementation of it is available here"
                ),
                word,
            ),
        };
        let mut hint = format!(
            "types with a document are {}; for another, name its connector where workflows run: \
             --connector {connector}=http://host/path, or give the function with --functions FILE",
            words(&types)
        );
        if let Some(known) = known.filter(|known| !known.is_empty()) {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            hint = format!("{hint}. Carried out here are {}", words(&known));
        }
        let is_refused = known.is_some();
        let location = self.ctx.location(place);
        match is_refused {
            true => self
                .ctx
                .error_at(&location, codes::FUNCTION_TYPE_UNKNOWN, message, hint),
            false => self
                .ctx
                .warn_at(&location, codes::FUNCTION_TYPE_UNKNOWN, message, hint),
        }
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
            let mut list = Vec::with_capacity(items.len());
            for item in items {
                list.push(self.argument(item)?);
            }
            return Some(Template::Array(list));
        }
        if let Some(members) = node.members() {
            let mut list = Vec::with_capacity(members.len());
            for member in members {
                list.push((member.key().to_owned(), self.argument(member.value())?));
            }
            return Some(Template::Object(list));
        }
        Some(Template::Literal(node.to_data()))
    }
}

/// Whether it is a JSONPath, and not just a text that begins with a dollar sign.
fn is_path(text: &str) -> bool {
    let text = text.trim();
    let begins = text == "$" || text == "$." || text.starts_with("$.") || text.starts_with("$[");
    begins && (text == "$." || swirl_expr::Program::jsonpath(text, &[]).is_ok())
}
