//! The members of `$WORKFLOW` and `$CONST` that an expression names.

use super::dialect::Dialect;

/// A variable whose members are known when a definition is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variable {
    Workflow,
    Const,
}

impl Variable {
    pub fn as_str(self) -> &'static str {
        match self {
            Variable::Workflow => "$WORKFLOW",
            Variable::Const => "$CONST",
        }
    }
}

/// The members of `$WORKFLOW` (docs/language.md#decision-15).
const MEMBERS: [&str; 9] = [
    "error",
    "id",
    "input",
    "instanceId",
    KEY,
    "name",
    "scheduledAt",
    "startedAt",
    "version",
];

/// Only in editions whose instances have keys.
const KEY: &str = "key";

/// The members of `$WORKFLOW` in an edition.
pub(crate) fn members_of_workflow(dialect: &Dialect) -> Vec<&'static str> {
    let has_key = dialect.parts.instance_key;
    let known = MEMBERS.into_iter();
    known.filter(|name| has_key || *name != KEY).collect()
}

/// The members that are named outside of quotes.
pub(super) fn members(text: &str, of: Variable) -> impl Iterator<Item = &str> {
    let places = text.match_indices(of.as_str());
    let outside = places.filter(|(place, _)| !is_quoted(text, *place));
    let names = outside.filter_map(move |(place, variable)| {
        let rest = text[place + variable.len()..].strip_prefix('.')?;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        Some(&rest[..end.unwrap_or(rest.len())])
    });
    names.filter(|name| !name.is_empty())
}

/// Whether the position is inside a text in double quotes.
fn is_quoted(text: &str, place: usize) -> bool {
    let mut quoted = false;
    let mut escaped = false;
    for c in text[..place].chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            _ => {}
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_outside_of_quotes() {
        let of = |text| members(text, Variable::Workflow).collect::<Vec<&str>>();
        assert_eq!(of("$WORKFLOW.input.id + $WORKFLOW.name"), ["input", "name"]);
        assert_eq!(of("$WORKFLOW.headers[\"a\"]"), ["headers"]);
        assert!(of("\"$WORKFLOW.headers\"").is_empty());
        assert!(of("\"a \\\" $WORKFLOW.headers\"").is_empty());
        assert!(of("$WORKFLOW | .input").is_empty());
        assert!(of("$WORKFLOW.").is_empty());
        assert!(of("$WORKFLOWS.headers").is_empty());
        let constants: Vec<&str> =
            members("$CONST.rate * $CONST.unit.size", Variable::Const).collect();
        assert_eq!(constants, ["rate", "unit"]);
    }
}
