//! URIs with members of the input in them (DSL 1.0, "URI Template").

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::Data;
use swirl_model::workflow::{SHOWN_AS, Template, TextPart};

use super::Reader;
use super::value::DEFINITION;
use crate::build::expression::VisibleVars;
use crate::template::{self, Delimiters, Piece};

impl Reader<'_, '_> {
    /// A URI, in which `{name}` stands for a member of the input. `secrets`: it doesn't get into the workflow's data.
    pub fn uri(&mut self, node: &Node, what: &str, secrets: bool) -> Option<Template> {
        let text = self.string(node, what)?;
        // `{name}` is an object in jq, and no address.
        let is_template = text.trim_start().starts_with('{');
        if !is_template && self.is_bare_expression(&text, DEFINITION) {
            return self.text_value(node, DEFINITION, secrets);
        }
        let Ok(pieces) = template::pieces(&text, Delimiters::Dollar, self.language) else {
            self.unclosed(node, what);
            return None;
        };
        let has_members = |piece: &Piece| matches!(piece, Piece::Text(text) if text.contains('{'));
        if !pieces.iter().any(has_members) {
            return self.value(node, DEFINITION, secrets);
        }
        let mut parts = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.uri_text(node, &text, what, &mut parts)?,
                Piece::Expression(inner) => {
                    let inner = self.not_empty(node, what, &inner)?;
                    parts.push(self.uri_part(node, &inner, secrets)?);
                }
            }
        }
        Some(Template::Text(parts))
    }

    /// A URI of a service that is called over HTTP. It is refused if it can't be one whatever its expressions give.
    pub fn web_address(&mut self, node: &Node, what: &str) -> Option<Template> {
        let uri = self.uri(node, what, true)?;
        let text = node.as_str().unwrap_or_default();
        let pieces = template::pieces(text, Delimiters::Dollar, self.language).ok()?;
        if self.loose {
            // The text may be an expression.
            return Some(uri);
        }
        let has_space = pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Text(text) if text.contains(char::is_whitespace)));
        let start = match pieces.first() {
            Some(Piece::Text(text)) => text.split('{').next().unwrap_or(text),
            Some(Piece::Expression(_)) | None => "",
        };
        let lower = start.to_ascii_lowercase();
        let is_web = ["http://", "https://"].iter().any(|scheme| {
            // An expression may complete the scheme.
            lower.starts_with(scheme) || start.len() < text.len() && scheme.starts_with(&lower)
        });
        // A reference without a scheme is one to what encloses it ("URI Template"). Nothing does yet, so the call fails.
        let scheme = start.split_once(':').map(|(scheme, _)| scheme);
        let is_web = is_web || scheme.is_none_or(|scheme| scheme.contains('/'));
        let message = match (has_space, is_web) {
            (true, _) => format!("{what} has a space in it, so it isn't a URI"),
            (false, false) => format!("{what} isn't the address of a service over HTTP"),
            (false, true) => return Some(uri),
        };
        let hint = "write an address such as 'https://example.com/orders'".to_owned();
        self.error(node, codes::BAD_URI, message, hint);
        None
    }

    /// The parts of a text with members in it.
    fn uri_text(
        &mut self,
        node: &Node,
        text: &str,
        what: &str,
        parts: &mut Vec<TextPart>,
    ) -> Option<()> {
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, behind)) = after.split_once('}') else {
                let message = format!("a '{{' in {what} is never closed");
                self.error(node, codes::BAD_URI, message, "add the '}'".to_owned());
                return None;
            };
            if !is_member(name) {
                let message = format!("'{{{name}}}' in {what} isn't the name of a member");
                let hint =
                    "write '{name}', which stands for a member of the task's input".to_owned();
                self.error(node, codes::BAD_URI, message, hint);
                return None;
            }
            if !before.is_empty() {
                parts.push(TextPart::Text(before.to_owned()));
            }
            let member = Data::string(name).to_string();
            let expression = format!(
                "{SHOWN_AS}{{{name}}}\nif type == \"object\" then .[{member}] else null end | if . == null then \"\" elif type == \"object\" or type == \"array\" then error({}) else tostring | @uri end",
                Data::string(format!("the value of {{{name}}} is an object or a list"))
            );
            parts.push(self.uri_part(node, &expression, true)?);
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(TextPart::Text(rest.to_owned()));
        }
        Some(())
    }

    fn uri_part(&mut self, node: &Node, expression: &str, secrets: bool) -> Option<TextPart> {
        let location = self.location(node);
        let params = self.params.clone();
        let sight = VisibleVars {
            params: &params,
            secrets,
            names: DEFINITION,
            ..VisibleVars::PLAIN
        };
        let id = self.compile(&location, expression, sight);
        id.map(TextPart::Expression)
    }
}

/// Whether a text between braces is the name of a member.
fn is_member(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '%' | '-');
    !name.is_empty() && name.chars().all(plain)
}

/// Whether a text has the name of a member in braces, and isn't a regular expression such as `a{2}`.
pub(super) fn has_member(text: &str) -> bool {
    let mut open = text.split('{').skip(1);
    open.any(|rest| {
        let name = rest.split_once('}').map(|(name, _)| name);
        name.is_some_and(|name| is_member(name) && !name.starts_with(|c: char| c.is_ascii_digit()))
    })
}
