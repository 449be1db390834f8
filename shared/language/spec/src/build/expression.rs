//! Expressions (section "Workflow Expressions", docs/language.md#decision-14, #decision-64 and #decision-84).
//!
//! Each expression is stored once per text and parameters in scope. Expressions are compiled here to find their errors;
//! the engine compiles them again to run them.

mod foreign;

use std::sync::Arc;

use swirl_documents::codes;
use swirl_documents::diagnostic::ExpressionPart;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{Count, ExprId, ExprSource, FunctionKind, Language, PathId, shown};

use super::check::{Checked, check_expression};
use super::context::{self, Variable};
use super::ctx::{Ctx, Obj, and, did_you_mean};
use super::location::Location;
use super::pool::Key;
use super::references::CANDIDATES_MAX;
use crate::template::{self, Delimiters, Piece};

/// The values that an expression sees at its location.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VisibleVars<'s> {
    /// Iteration parameters.
    pub params: &'s [Arc<str>],
    /// The value of `$SECRETS` doesn't get into the workflow's data here.
    pub secrets: bool,
    /// `$args` is defined: this is the operation of an expression function that is called.
    pub args: bool,
    /// The variables of the language that are visible here; none: the dialect's.
    pub names: &'static [&'static str],
}

impl VisibleVars<'static> {
    /// Neither parameters nor secrets are visible.
    pub const PLAIN: VisibleVars<'static> = VisibleVars {
        params: &[],
        secrets: false,
        args: false,
        names: &[],
    };
}

impl<'s> VisibleVars<'s> {
    pub fn with_secrets(self) -> VisibleVars<'s> {
        VisibleVars {
            secrets: true,
            ..self
        }
    }
}

/// `fn:name` resolves to the operation of an expression function. This limits how deep such functions may refer to each
/// other.
const FN_DEPTH_MAX: usize = 16;

impl Ctx<'_> {
    /// A property that is always an expression, with or without `${ }`.
    pub fn expression(
        &mut self,
        node: &Node,
        what: &str,
        sight: VisibleVars<'_>,
    ) -> Option<ExprId> {
        let text = self.expression_text(node, what)?;
        self.compile(&self.location(node), &text, sight)
    }

    /// The same for a text, which may have several `${ }` in it (docs/language.md#decision-13).
    pub fn text_expression(
        &mut self,
        node: &Node,
        what: &str,
        sight: VisibleVars<'_>,
    ) -> Option<ExprId> {
        let text = self.string(node, what)?;
        let Ok(pieces) = template::pieces(text.trim(), self.dialect.delimiters, self.language)
        else {
            self.unclosed(node, what);
            return None;
        };
        let is_jq = self.language == Language::Jq;
        if !is_jq || template::alone(&pieces).is_some() {
            return self.expression(node, what, sight);
        }
        let mut whole = String::from("\"");
        for piece in pieces {
            match piece {
                Piece::Text(text) => {
                    let quoted = Data::string(text).to_string();
                    whole.push_str(&quoted[1..quoted.len() - 1]);
                }
                Piece::Expression(inner) => {
                    let inner = self.not_empty(node, what, &inner)?;
                    let inner = self.resolve(&self.location(node), &inner)?;
                    whole.push_str(&format!("\\({inner})"));
                }
            }
        }
        whole.push('"');
        self.compile(&self.location(node), &whole, sight)
    }

    pub fn opt_expression(
        &mut self,
        obj: Obj<'_>,
        name: &str,
        sight: VisibleVars<'_>,
    ) -> Option<ExprId> {
        let node = obj.get(name)?;
        self.expression(node, &format!("'{name}'"), sight)
    }

    /// An expression that is a single path, such as `.orders[0].customer` (docs/language.md#decision-63).
    pub fn path(&mut self, obj: Obj<'_>, name: &str, sight: VisibleVars<'_>) -> Option<PathId> {
        let node = obj.get(name)?;
        let text = self.expression_text(node, &format!("'{name}'"))?;
        let location = self.location(node);
        self.compile_path(&location, &text, sight)
    }

    /// Adds a path (without `${ }`) to the workflow.
    pub fn compile_path(
        &mut self,
        location: &Location,
        text: &str,
        sight: VisibleVars<'_>,
    ) -> Option<PathId> {
        let text = self.resolve(location, text)?;
        self.check(location, &text, sight, true);
        let key = (self.language, text, sight.params.to_vec());
        if let Some(id) = self.expressions.paths.get(&key) {
            return Some(*id);
        }
        let id = PathId(self.workflow.paths.len() as u32);
        let pointer = location.place.pointer.clone();
        let source = self.source(&key, pointer);
        self.workflow.paths.push(source);
        self.expressions.paths.insert(key, id);
        Some(id)
    }

    /// The text between `${` and `}`, or the whole text if it has none.
    pub fn expression_text(&mut self, node: &Node, what: &str) -> Option<String> {
        let text = self.string(node, what)?;
        let trimmed = text.trim();
        if trimmed.is_empty() {
            self.error(
                node,
                codes::BAD_EXPRESSION,
                format!("{what} is an empty expression"),
                None,
            );
            return None;
        }
        let delimiters = self.dialect.delimiters;
        if !trimmed.starts_with(delimiters.open()) {
            return Some(trimmed.to_owned());
        }
        match template::pieces(trimmed, delimiters, self.language) {
            Ok(pieces) => match pieces.as_slice() {
                [Piece::Expression(inner)] => self.not_empty(node, what, inner),
                _ => {
                    let pair = delimiters.pair();
                    let message =
                        format!("{what} must be one expression, but has text next to its '{pair}'");
                    let hint = format!("put the whole expression into one '{pair}'");
                    self.error(node, codes::BAD_EXPRESSION, message, hint);
                    None
                }
            },
            Err(template::Unclosed) => {
                self.unclosed(node, what);
                None
            }
        }
    }

    pub fn not_empty(&mut self, node: &Node, what: &str, inner: &str) -> Option<String> {
        let inner = inner.trim();
        if inner.is_empty() {
            self.error(
                node,
                codes::BAD_EXPRESSION,
                format!(
                    "the '{}' in {what} is empty",
                    self.dialect.delimiters.pair()
                ),
                None,
            );
            return None;
        }
        Some(inner.to_owned())
    }

    pub fn unclosed(&mut self, node: &Node, what: &str) {
        self.error(
            node,
            codes::UNCLOSED_EXPRESSION,
            format!("a '{}' in {what} is never closed", self.dialect.delimiters.open()),
            match self.dialect.delimiters {
                Delimiters::Dollar => "add the '}' (braces and quotes inside the expression count), or write '$${' for a literal '${'",
                Delimiters::Braces => "add the '}}' (braces and quotes inside the expression count)",
            }.to_owned(),
        );
    }

    /// Follows `fn:name` to the operation of that expression function.
    pub fn resolve(&mut self, location: &Location, text: &str) -> Option<String> {
        let mut text = text.to_owned();
        for _ in 0..FN_DEPTH_MAX {
            let Some(name) = text.strip_prefix("fn:") else {
                return Some(text);
            };
            let name = name.trim().to_owned();
            let Some(entry) = self.functions.get(&name) else {
                let alone = name.contains("fn:") || name.contains(['|', '(', ')', '=', '<', '>']);
                let hint = alone.then(|| {
                    "'fn:NAME' must be alone in its '${ }': no operators, no arguments".to_owned()
                });
                self.unknown_function(location, &name, hint);
                return None;
            };
            if entry.kind != FunctionKind::Expression {
                let word = entry.kind.as_str();
                let message = format!("'fn:{name}' names a function of type '{word}'");
                let hint =
                    "only functions of type 'expression' can be used in an expression".to_owned();
                self.error_at(location, codes::NOT_AN_EXPRESSION_FUNCTION, message, hint);
                return None;
            }
            text = entry.operation.clone();
        }
        let message = "the expression functions here refer to each other in a circle";
        self.error_at(location, codes::NOT_AN_EXPRESSION_FUNCTION, message, None);
        None
    }

    /// Adds an expression (without `${ }`) to the workflow.
    pub fn compile(
        &mut self,
        location: &Location,
        text: &str,
        sight: VisibleVars<'_>,
    ) -> Option<ExprId> {
        let text = self.resolve(location, text)?;
        self.check(location, &text, sight, false);
        let key = (self.language, text, sight.params.to_vec());
        if let Some(id) = self.expressions.expressions.get(&key) {
            return Some(*id);
        }
        let id = ExprId(self.workflow.expressions.len() as u32);
        let pointer = location.place.pointer.clone();
        let source = self.source(&key, pointer);
        self.workflow.expressions.push(source);
        self.expressions.expressions.insert(key, id);
        Some(id)
    }

    /// Compiles an expression only to find its errors. Returns whether it compiles.
    pub fn check(
        &mut self,
        location: &Location,
        text: &str,
        sight: VisibleVars<'_>,
        path: bool,
    ) -> bool {
        let text_key = (self.language, text.to_owned(), sight.params.to_vec());
        let sight = VisibleVars {
            names: self.names_in(sight),
            ..sight
        };
        let key = (text_key, sight.args, path, sight.names);
        let checked = match self.expressions.checked.get(&key) {
            Some(checked) => checked.clone(),
            None => {
                let checked = Arc::new(compile(self.language, text, sight, path));
                self.expressions.checked.insert(key, checked.clone());
                checked
            }
        };
        if let Some(problem) = &checked.problem {
            let hint = text.contains("fn:").then(|| {
                "'fn:NAME' must be alone in its '${ }': no operators, no arguments".to_owned()
            });
            let literal = "a string here is an expression: put a literal into quotes of its own, as in '\"done\"'";
            let hint = hint
                .or_else(|| other_language(self.language, text).map(str::to_owned))
                .or(self.literal_hint.then(|| literal.to_owned()))
                .or_else(|| foreign::hint(self.language, text, sight.names));
            let kind = if path {
                codes::BAD_PATH
            } else {
                codes::BAD_EXPRESSION
            };
            let message = format!("in '{}': {problem}", shorten(text));
            let part = problem.span.clone().map(|bytes| ExpressionPart {
                expression: text.to_owned(),
                bytes,
            });
            self.error_in(location, kind, message, hint, part);
        }
        let compiles = checked.problem.is_none();
        if compiles {
            self.context_members(location, text);
        }
        if checked.secrets.is_empty() && !checked.secrets_whole {
            return compiles;
        }
        if !sight.secrets {
            // The language allows this, and the data belongs to the user (docs/language.md#decision-84).
            self.warn_at(
                location,
                codes::SECRET_IN_DATA,
                format!("a secret may get into the workflow's data here, by '{}'", shorten(text)),
                "use it in a function's arguments, auth properties or a condition instead: data is stored, shown and passed on".to_owned(),
            );
        }
        if checked.secrets_whole {
            let (name, list) = match sight.names.contains(&"secrets") {
                true => ("$secrets", "use.secrets"),
                false => ("$SECRETS", "secrets"),
            };
            self.error_at(
                location,
                codes::SECRET_NOT_ALLOWED,
                format!("'{name}' is used as a whole or with a computed name"),
                format!("write '{name}.NAME' with a name that '{list}' lists"),
            );
        }
        // An expression function is compiled again at each call, and its secrets were checked where it is defined.
        if !self.function_texts.contains(text) {
            self.unknown_secrets(location, text, &checked.secrets);
        }
        compiles
    }

    /// Warns of unknown members of `$WORKFLOW` and `$CONST`, which are null.
    fn context_members(&mut self, location: &Location, text: &str) {
        let constants = self.workflow.constants.clone();
        for name in context::members(text, Variable::Const) {
            if constants.get(name).is_some() {
                continue;
            }
            let known = constants.as_object().into_iter().flat_map(|all| all.keys());
            let known: Vec<String> = known
                .take(CANDIDATES_MAX)
                .map(ToString::to_string)
                .collect();
            let hint = did_you_mean(name, known.iter().map(String::as_str))
                .unwrap_or_else(|| format!("add '{name}' to 'constants'"));
            let message = format!("the workflow has no constant '{name}': this is null");
            self.warn_at(location, codes::UNKNOWN_CONSTANT, message, hint);
        }
        let known = context::members_of_workflow(&self.dialect);
        let missing =
            context::members(text, Variable::Workflow).filter(|name| !known.contains(name));
        for name in missing {
            let hint = did_you_mean(name, known.iter().copied())
                .unwrap_or_else(|| format!("it has {}", and(&known)));
            let message = format!("'$WORKFLOW' has no member '{name}': this is null");
            self.warn_at(location, codes::UNKNOWN_CONTEXT, message, hint);
        }
    }

    /// Whether a text would be an expression here, without reporting anything. `$.x` is one in either language.
    pub fn compiles(&self, text: &str) -> bool {
        let params = &self.params;
        let sight = VisibleVars {
            params,
            ..VisibleVars::PLAIN
        };
        let text = match self.language {
            Language::Jq => text.strip_prefix("$.").map(|rest| format!(".{rest}")),
            _ => None,
        }
        .unwrap_or_else(|| text.to_owned());
        self.compiles_in(&text, sight)
    }

    /// Whether a text would be an expression at a place, without reporting anything.
    pub fn compiles_in(&self, text: &str, sight: VisibleVars<'_>) -> bool {
        let sight = VisibleVars {
            names: self.names_in(sight),
            ..sight
        };
        compile(self.language, text, sight, false).problem.is_none()
    }

    fn names_in(&self, sight: VisibleVars<'_>) -> &'static [&'static str] {
        match sight.names {
            [] => self.dialect.variables,
            names => names,
        }
    }

    fn source(&self, key: &Key, pointer: String) -> ExprSource {
        ExprSource {
            language: key.0,
            text: key.1.clone(),
            params: key.2.clone(),
            pointer,
        }
    }

    /// A whole number of at least `min`, given as a number, a text or an expression.
    pub fn count(
        &mut self,
        node: &Node,
        name: &str,
        min: u32,
        code: codes::Code,
        sight: VisibleVars<'_>,
    ) -> Option<Count> {
        let wrong = |ctx: &mut Self| {
            let message = format!(
                "'{name}' must be a whole number of {min} or more, or an expression for one"
            );
            ctx.error(node, code, message, None);
        };
        let text = match node.as_str() {
            Some(text)
                if text
                    .trim_start()
                    .starts_with(self.dialect.delimiters.open()) =>
            {
                return self
                    .expression(node, &format!("'{name}'"), sight)
                    .map(Count::Expression);
            }
            Some(text) => text.trim(),
            None if node.is_number() => node.raw(),
            None => {
                wrong(self);
                return None;
            }
        };
        match whole(text) {
            Some(count) if count >= min => Some(Count::Fixed(count)),
            _ => {
                wrong(self);
                None
            }
        }
    }
}

/// A whole number, which may be written as `3.0`.
pub(crate) fn whole(text: &str) -> Option<u32> {
    text.parse::<u32>().ok().or_else(|| {
        let number = text.parse::<f64>().ok()?;
        let fits = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
        fits.then_some(number as u32)
    })
}

fn compile(language: Language, text: &str, sight: VisibleVars<'_>, path: bool) -> Checked {
    let mut vars = sight.names.to_vec();
    vars.extend(sight.args.then_some("args"));
    vars.extend(sight.params.iter().map(|param| &**param));
    check_expression(language, text, &vars, path)
}

/// The jq form of something that is written in another language.
fn other_language(language: Language, text: &str) -> Option<&'static str> {
    let text = text.trim();
    let is_path = text == "$" || text.starts_with("$.") || text.starts_with("$[");
    if language == Language::JsonPath && text.starts_with("${") {
        Some(
            "'${ }' is of edition 0.6 and later: an expression here is JSONPath in '{{ }}', such as '{{ $.name }}'",
        )
    } else if language == Language::JsonPath && text.starts_with("{{") {
        Some(
            "'{{ }}' is of edition 0.5: an expression here is JSONPath in '${ }', such as '${ $.name }'",
        )
    } else if language != Language::Jq {
        None
    } else if text.starts_with("{{") {
        Some("'{{ }}' is of edition 0.5: an expression here is jq in '${ }', such as '${ .name }'")
    } else if is_path || text.contains("[?(") {
        Some(
            "this is JSONPath, and expressions here are jq: '.orders' is '$.orders', '[.orders[] | select(.done)]' is \
             '$.orders[?(@.done)]'; or set 'expressionLang: jsonpath'",
        )
    } else if text.starts_with("fn(") {
        Some("an expression function is named as 'fn:NAME', alone in its '${ }'")
    } else {
        None
    }
}

/// Shortens long expressions for messages.
pub(crate) fn shorten(text: &str) -> String {
    shown(text, 100)
}

#[cfg(test)]
mod tests;
