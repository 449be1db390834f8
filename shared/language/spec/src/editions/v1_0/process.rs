//! `run` of a shell command, a script or a container (DSL 1.0, "Container Process", "Script Process", "Shell Process").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{
    Action, ActionKind, Call, Function, FunctionId, FunctionKind, ResultRule, StateKind, Template,
    TextPart,
};

use super::Reader;
use super::value::DEFINITION;
use crate::build::ctx::Obj;
use crate::build::expression::VisibleVars;
use crate::template::closing;

const CONTAINER: &[&str] = &[
    "image",
    "name",
    "command",
    "ports",
    "volumes",
    "environment",
    "stdin",
    "arguments",
    "lifetime",
    "pullPolicy",
];
const SCRIPT: &[&str] = &[
    "language",
    "code",
    "source",
    "stdin",
    "arguments",
    "environment",
];
const SHELL: &[&str] = &["command", "stdin", "arguments", "environment"];

/// How a process is run, besides its own properties.
pub(super) struct Process {
    /// `container`, `script` or `shell`.
    pub word: &'static str,
    /// `return`
    pub gives: Option<&'static str>,
    pub awaited: bool,
}

type Parts = Vec<(String, Template)>;

impl Reader<'_, '_> {
    /// `task` is the name of the task, `pointer` its place.
    pub fn process(
        &mut self,
        process: &Process,
        node: &Node,
        task: &str,
        pointer: String,
    ) -> Option<StateKind> {
        let what = format!("'{}'", process.word);
        let (known, required) = match process.word {
            "container" => (CONTAINER, "image"),
            "script" => (SCRIPT, "language"),
            _ => (SHELL, "command"),
        };
        let obj = self.object(node, &what, known)?;
        if !obj.has(required) {
            self.missing(obj, &what, &[required]);
        }
        let clean = self.is_clean();
        let mut parts = Parts::new();
        match process.word {
            "container" => self.container(obj, &mut parts),
            "script" => self.script(obj, &mut parts),
            _ => self.program(obj, "command", &mut parts, is_expression_in_shell),
        }
        self.text_part(obj, "stdin", &mut parts);
        self.process_arguments(obj, process.word, &mut parts);
        self.mapping(obj, "environment", &mut parts);
        if let Some(word) = process.gives {
            let word = Template::Literal(Data::string(word));
            parts.push(("return".to_owned(), word));
        }
        if clean && !self.is_clean() {
            return None;
        }
        let function = FunctionId(self.workflow.functions.len() as u32);
        self.workflow.functions.push(Function {
            name: task.into(),
            kind: FunctionKind::Process,
            operation: process.word.to_owned(),
            resource_auth: None,
            auth: None,
            metadata: Data::object(),
            place: pointer.clone(),
            within: None,
        });
        let action = Action {
            kind: ActionKind::Call(Call {
                function,
                arguments: Some(Template::Object(parts)),
                selection_set: None,
                detached: !process.awaited,
                subscription: None,
            }),
            pointer,
            results: ResultRule {
                ignore: !process.awaited,
                whole: true,
                ..ResultRule::default()
            },
            ..Action::default()
        };
        Some(StateKind::Operation(self.only(action)))
    }

    fn container(&mut self, obj: Obj<'_>, parts: &mut Parts) {
        for name in ["image", "name"] {
            self.text_part(obj, name, parts);
        }
        self.program(obj, "command", parts, is_expression_in_shell);
        for name in ["ports", "volumes"] {
            self.mapping(obj, name, parts);
        }
        if let Some(word) = self.word(obj, "pullPolicy", &["ifNotPresent", "always", "never"]) {
            let word = Template::Literal(Data::string(word));
            parts.push(("pullPolicy".to_owned(), word));
        }
        let Some(node) = obj.get("lifetime") else {
            return;
        };
        let Some(obj) = self.object(node, "'lifetime'", &["cleanup", "after"]) else {
            return;
        };
        if !obj.has("cleanup") {
            self.missing(obj, "'lifetime'", &["cleanup"]);
        }
        let cleanup = self.word(obj, "cleanup", &["always", "never", "eventually"]);
        match (cleanup, obj.get("after")) {
            (Some("eventually"), None) => self.missing(obj, "'lifetime'", &["after"]),
            (Some("always" | "never"), Some(node)) => {
                let message = "'after' is only for the cleanup 'eventually'".to_owned();
                let hint = "remove it, or write 'cleanup: eventually'".to_owned();
                self.error(node, codes::EXCLUSIVE_PROPERTIES, message, hint);
            }
            (_, Some(node)) => drop(self.length(node, "'after'")),
            (_, None) => {}
        }
        if let Some(lifetime) = self.value(node, DEFINITION, true) {
            parts.push(("lifetime".to_owned(), lifetime));
        }
    }

    fn script(&mut self, obj: Obj<'_>, parts: &mut Parts) {
        if let Some(word) = self.word(obj, "language", &["js", "python"]) {
            let word = Template::Literal(Data::string(word));
            parts.push(("language".to_owned(), word));
        }
        match (obj.get("code"), obj.get("source")) {
            (Some(_), Some(_)) => self.exclusive(obj, "'script'", &["code", "source"]),
            (None, None) => self.missing(obj, "'script'", &["code", "source"]),
            (Some(_), None) => self.program(obj, "code", parts, is_expression_in_script),
            (None, Some(node)) => {
                if let Some(uri) = self.resource(node)
                    && let Some(address) = uri.as_str()
                    && let Some(code) = self.fetch_text(&uri, address)
                {
                    let code = Template::Literal(Data::string(code));
                    parts.push(("code".to_owned(), code));
                }
            }
        }
    }

    /// A text, in which expressions are evaluated.
    fn text_part(&mut self, obj: Obj<'_>, name: &str, parts: &mut Parts) {
        let Some(node) = obj.get(name) else {
            return;
        };
        let what = format!("'{name}'");
        let text = match name {
            "stdin" => self.any_text(node, &what),
            _ => self.string(node, &what),
        };
        if text.is_some()
            && let Some(value) = self.text_value(node, DEFINITION, true)
        {
            parts.push((name.to_owned(), value));
        }
    }

    /// An object of texts, or an expression for one.
    pub fn mapping(&mut self, obj: Obj<'_>, name: &str, parts: &mut Parts) {
        let Some(node) = obj.get(name) else {
            return;
        };
        if node.members().is_none() && !self.is_expression(node, DEFINITION) {
            self.wrong_type(node, &format!("'{name}'"), "an object or an expression");
            return;
        }
        for member in node.members().unwrap_or_default() {
            self.scalar(member.value(), &format!("'{}'", member.key()));
        }
        if let Some(value) = self.scalars(node, DEFINITION, true) {
            parts.push((name.to_owned(), value));
        }
    }

    /// A list; before 1.0.3, for shells and scripts, an object, of which scripts get variables.
    fn process_arguments(&mut self, obj: Obj<'_>, word: &str, parts: &mut Parts) {
        let Some(node) = obj.get("arguments") else {
            return;
        };
        if let Some(members) = node.members().filter(|_| word != "container") {
            for member in members {
                let is_name = |text: &str| {
                    let mut chars = text.chars();
                    let first = chars.next();
                    first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
                        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
                };
                if word == "script" && !is_name(member.key()) {
                    let message = format!("'{}' can't be a variable of the script", member.key());
                    let hint = "use letters, digits and '_', or write the arguments as a list";
                    let place = self.place(member.key_place());
                    self.error_at(&place, codes::BAD_NAME, message, hint.to_owned());
                }
            }
        } else if let Some(items) = node.items() {
            for item in items {
                self.scalar(item, "an argument");
            }
        } else if !self.is_expression(node, DEFINITION) {
            self.wrong_type(node, "'arguments'", "a list");
            return;
        }
        if let Some(value) = self.scalars(node, DEFINITION, true) {
            parts.push(("arguments".to_owned(), value));
        }
    }

    pub fn scalar(&mut self, node: &Node, what: &str) {
        if node.members().is_some() || node.items().is_some() {
            self.wrong_type(node, what, "a string");
        }
    }

    /// The text of a program. The `${` of its own language stays as it is.
    fn program(
        &mut self,
        obj: Obj<'_>,
        name: &str,
        parts: &mut Parts,
        is_expression: fn(&str, bool) -> bool,
    ) {
        let Some(node) = obj.get(name) else {
            return;
        };
        let Some(text) = self.any_text(node, &format!("'{name}'")) else {
            return;
        };
        let params = self.params.clone();
        let sight = VisibleVars {
            params: &params,
            secrets: true,
            names: DEFINITION,
            ..VisibleVars::PLAIN
        };
        let location = self.location(node);
        let mut found = Vec::new();
        let mut plain = String::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find("${") {
            let inner = &rest[at + 2..];
            let end = closing(inner);
            let expression = end.map(|end| inner[..end].trim());
            let expression = expression.filter(|it| is_expression(it, self.compiles_in(it, sight)));
            let (Some(end), Some(expression)) = (end, expression) else {
                plain.push_str(&rest[..at + 2]);
                rest = inner;
                continue;
            };
            plain.push_str(&rest[..at]);
            if !plain.is_empty() {
                found.push(TextPart::Text(std::mem::take(&mut plain)));
            }
            if let Some(id) = self.compile(&location, expression, sight) {
                found.push(TextPart::Expression(id));
            }
            rest = &inner[end + 1..];
        }
        plain.push_str(rest);
        if !plain.is_empty() || found.is_empty() {
            found.push(TextPart::Text(plain));
        }
        let value = match found.as_slice() {
            [TextPart::Text(text)] => Template::Literal(Data::string(text.as_str())),
            [TextPart::Expression(id)] => Template::Expression(*id),
            _ => Template::Text(found),
        };
        parts.push((name.to_owned(), value));
    }
}

/// `${NAME}`, `${NAME:-x}` and the like are the shell's, unless they are expressions. Everything else is meant as one.
fn is_expression_in_shell(text: &str, compiles: bool) -> bool {
    let first = text.chars().next();
    let is_variable = first.is_some_and(|c| c.is_ascii_alphanumeric() || "_#!?@*-".contains(c));
    compiles || !is_variable
}

/// The `${ }` of a template literal holds an expression of the script, which begins with neither a dot nor `$`.
fn is_expression_in_script(text: &str, compiles: bool) -> bool {
    compiles && text.starts_with(['.', '$'])
}
