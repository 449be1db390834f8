//! Conditions: expressions that must return true or false.

use swirl_documents::codes;
use swirl_model::workflow::{ExprId, Language};

use super::ctx::{Ctx, Obj};
use super::expression::VisibleVars;

impl Ctx<'_> {
    /// As [`Ctx::opt_expression`]. An assignment is reported, because it returns the data, which is neither true nor
    /// false.
    pub fn opt_condition(
        &mut self,
        obj: Obj<'_>,
        name: &str,
        sight: VisibleVars<'_>,
    ) -> Option<ExprId> {
        let unquoted = obj.get(name).filter(|node| node.as_bool().is_some());
        let id = match unquoted {
            Some(node) => {
                let text = node.to_data().to_string();
                let message = format!("'{name}' is an expression; {text} is taken as one");
                self.loose(node, message, format!("write '${{ {text} }}'"));
                self.compile(&self.location(node), &text, sight)?
            }
            None => self.opt_expression(obj, name, sight)?,
        };
        let source = &self.workflow.expressions[id.0 as usize];
        if source.language == Language::Jq && assigns(&source.text) {
            let text = source.text.trim();
            let message = format!("the condition '{text}' assigns: its result is the changed data");
            let hint = "compare with '=='".to_owned();
            if let Some(node) = obj.get(name) {
                self.warn(node, codes::CONDITION_ASSIGNS, message, hint);
            }
        }
        Some(id)
    }
}

/// Whether the last part of a pipe is an assignment with `=`. Only certain cases are reported: a single `=` outside of
/// texts, brackets and delimited constructs.
fn assigns(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let constructs = ["if", "reduce", "foreach", "def", "try", "as", "label"];
    if words.into_iter().any(|word| constructs.contains(&word)) {
        return false;
    }
    let (mut depth, mut in_text, mut escaped, mut found) = (0_i32, false, false, false);
    let chars: Vec<char> = text.chars().collect();
    for (at, c) in chars.iter().enumerate() {
        if in_text {
            (in_text, escaped) = (escaped || *c != '"', !escaped && *c == '\\');
            continue;
        }
        let before = at.checked_sub(1).map_or(' ', |at| chars[at]);
        let after = chars.get(at + 1).copied().unwrap_or(' ');
        match c {
            '"' => in_text = true,
            '#' => return false,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '|' | ',' if depth == 0 && after != '=' => found = false,
            '=' if depth == 0 => {
                let is_other = |c: char| "=!<>|+-*/%".contains(c);
                found |= after != '=' && !is_other(before);
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::assigns;

    #[test]
    fn assignments() {
        for text in [
            ".x = 1",
            ".x=1",
            ".a | .x = \"=\"",
            ".x = (.y == 1)",
            ".x = 1 and .y == 2",
        ] {
            assert!(assigns(text), "{text}");
        }
        for text in [
            ".x == 1",
            ".x != 1",
            ".x <= 1 and .x >= 0",
            ".x = 1 | .x == 1",
            ".x |= . + 1 | .x > 0",
            ".x += 1 | .x > 0",
            ".x // false",
            "\".x = 1\" == .y",
            "\"a\\\" = b\" == .y",
            "any(.items[]; .n = 1 | .n > 0)",
            "if .x then .y = 1 else false end",
            ".x as $x | $x == 1",
            "{a: 1} == .x",
        ] {
            assert!(!assigns(text), "{text}");
        }
    }
}
