//! The members of `$WORKFLOW` that an expression refers to.

const VARIABLE: &str = "$WORKFLOW.";

/// The existing members (docs/language.md#decision-15); `key` belongs to edition 0.9.
pub(super) const MEMBERS: [&str; 8] = [
    "error",
    "id",
    "input",
    "instanceId",
    "key",
    "name",
    "startedAt",
    "version",
];

/// The members that are referred to outside of quotes.
pub(super) fn members(text: &str) -> impl Iterator<Item = &str> {
    let places = text.match_indices(VARIABLE);
    let outside = places.filter(|(place, _)| !is_quoted(text, *place));
    let names = outside.map(|(place, _)| {
        let rest = &text[place + VARIABLE.len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        &rest[..end.unwrap_or(rest.len())]
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
        let of = |text| members(text).collect::<Vec<&str>>();
        assert_eq!(of("$WORKFLOW.input.id + $WORKFLOW.name"), ["input", "name"]);
        assert_eq!(of("$WORKFLOW.headers[\"a\"]"), ["headers"]);
        assert!(of("\"$WORKFLOW.headers\"").is_empty());
        assert!(of("\"a \\\" $WORKFLOW.headers\"").is_empty());
        assert!(of("$WORKFLOW | .input").is_empty());
        assert!(of("$WORKFLOW.").is_empty());
    }
}
