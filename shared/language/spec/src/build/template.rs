//! Values that contain expressions, and values that don't (docs/language.md#decision-13 and #decision-64).

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{Template, TextPart};

use super::ctx::Ctx;
use super::expression::VisibleVars;
use crate::template::{self, Piece};

impl Ctx<'_> {
    /// A value that may contain expressions.
    pub fn template(&mut self, node: &Node, sight: VisibleVars<'_>) -> Option<Template> {
        if let Some(text) = node.as_str() {
            return self.text_template(node, text, sight);
        }
        if let Some(items) = node.items() {
            let parts: Vec<Option<Template>> = items
                .iter()
                .map(|item| self.template(item, sight))
                .collect();
            let parts: Vec<Template> = parts.into_iter().collect::<Option<_>>()?;
            return Some(if parts.iter().all(is_literal) {
                Template::Literal(Data::array(parts.into_iter().filter_map(literal).collect()))
            } else {
                Template::Array(parts)
            });
        }
        let Some(members) = node.members() else {
            return Some(Template::Literal(node.to_data()));
        };
        let mut parts = Vec::with_capacity(members.len());
        let mut whole = true;
        for member in members {
            if member.key().contains(self.dialect.delimiters.open()) {
                let message = format!(
                    "the key '{}' is plain text: keys are not evaluated",
                    member.key()
                );
                let hint = "write the whole object as one expression instead".to_owned();
                self.warn(
                    member.value(),
                    codes::EXPRESSION_NOT_EVALUATED,
                    message,
                    hint,
                );
            }
            match self.template(member.value(), sight) {
                Some(value) => parts.push((member.key().to_owned(), value)),
                None => whole = false,
            }
        }
        if !whole {
            return None;
        }
        if parts.iter().any(|(_, value)| !is_literal(value)) {
            return Some(Template::Object(parts));
        }
        let mut data = Data::object();
        for (key, value) in parts {
            data.set(&key, literal(value).unwrap_or_default());
        }
        Some(Template::Literal(data))
    }

    fn text_template(
        &mut self,
        node: &Node,
        text: &str,
        sight: VisibleVars<'_>,
    ) -> Option<Template> {
        let Ok(pieces) = template::pieces(text, self.dialect.delimiters, self.language) else {
            self.unclosed(node, "this text");
            return None;
        };
        if let Some(inner) = template::alone(&pieces) {
            let inner = self.not_empty(node, "this text", inner)?;
            return self
                .compile(&self.location(node), &inner, sight)
                .map(Template::Expression);
        }
        let mut parts = Vec::with_capacity(pieces.len());
        let mut whole = true;
        for piece in pieces {
            match piece {
                Piece::Text(text) => parts.push(TextPart::Text(text)),
                Piece::Expression(inner) => {
                    let id = self
                        .not_empty(node, "this text", &inner)
                        .and_then(|inner| self.compile(&self.location(node), &inner, sight));
                    match id {
                        Some(id) => parts.push(TextPart::Expression(id)),
                        None => whole = false,
                    }
                }
            }
        }
        if !whole {
            return None;
        }
        Some(match parts.as_slice() {
            [] => Template::Literal(Data::string("")),
            [TextPart::Text(text)] => Template::Literal(Data::string(text.as_str())),
            _ => Template::Text(parts),
        })
    }

    /// Data that is used literally. An expression in it gets a warning (docs/language.md#decision-64).
    pub fn static_data(&mut self, node: &Node, what: &str) -> Data {
        self.warn_static(node, what);
        node.to_data()
    }

    fn warn_static(&mut self, node: &Node, what: &str) {
        if let Some(text) = node.as_str()
            && text.contains(self.dialect.delimiters.open())
            && !text.contains("$${")
        {
            let open = self.dialect.delimiters.open();
            let message = format!("{what} is static: the '{open}' here is plain text");
            self.warn(
                node,
                codes::EXPRESSION_NOT_EVALUATED,
                message,
                "compute the value in an action or a filter instead".to_owned(),
            );
        }
        for item in node.items().unwrap_or_default() {
            self.warn_static(item, what);
        }
        for member in node.members().unwrap_or_default() {
            self.warn_static(member.value(), what);
        }
    }
}

fn is_literal(template: &Template) -> bool {
    matches!(template, Template::Literal(_))
}

fn literal(template: Template) -> Option<Data> {
    match template {
        Template::Literal(data) => Some(data),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::parts::testing::{in_actions, workflow};
    use swirl_model::workflow::{ActionKind, Call, ExprId};

    /// The arguments of a call, with their expressions as text.
    fn argument(text: &str) -> String {
        let actions = format!("{{functionRef: {{refName: f, arguments: {{x: {text}}}}}}}");
        let workflow = workflow(&in_actions(&actions));
        let ActionKind::Call(Call {
            arguments: Some(arguments),
            ..
        }) = &workflow.actions[0].kind
        else {
            panic!()
        };
        let show = |id: &ExprId| format!("<{}>", workflow[*id].text);
        match arguments {
            Template::Literal(data) => data.to_string(),
            Template::Object(members) => match &members[0].1 {
                Template::Expression(id) => show(id),
                Template::Text(parts) => parts
                    .iter()
                    .map(|part| match part {
                        TextPart::Text(text) => format!("[{text}]"),
                        TextPart::Expression(id) => show(id),
                    })
                    .collect(),
                other => format!("{other:?}"),
            },
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn templates() {
        for (text, expected) in [
            ("7", r#"{"x":7}"#),
            ("' plain '", r#"{"x":" plain "}"#),
            ("'$${ .a }'", r#"{"x":"${ .a }"}"#),
            ("' ${ .a } '", "<.a>"),
            ("'a ${ .a } b'", "[a ]<.a>[ b]"),
            ("'${ fn:e }'", "<.a>"),
            ("'${ {a: {b: 1}} }'", "<{a: {b: 1}}>"),
        ] {
            assert_eq!(argument(text), expected, "{text}");
        }
    }
}
