//! The part of GraphQL's grammar that definitions contain.
//!
//! An expression in a selection set inserts data. So a piece is parsed within a query and must fill exactly its place:
//! it cannot end the query and begin another one.

use apollo_parser::cst::{
    CstNode, Definition, Document, OperationDefinition, Selection, SelectionSet,
};
use apollo_parser::{Parser, SyntaxKind};

/// The maximum nesting of a piece.
const DEPTH_MAX: usize = 64;

/// The maximum number of tokens in a piece.
const TOKENS_MAX: usize = 20_000;

/// The maximum length of a piece in bytes, enough for a piece with that many tokens.
const BYTES_MAX: usize = 1024 * 1024;

/// The text before the piece.
const BEFORE: &str = "{ it ";

/// Parses a selection set: `{ id, pets { name } }`. Returns `None` for a blank one and for `{ }`, which mean that the
/// field has no fields.
///
/// # Errors
/// A sentence with the error and its position.
pub fn selection_set(text: &str) -> Result<Option<&str>, String> {
    let text = text.trim();
    let inner = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    if text.is_empty() || inner.is_some_and(|inner| inner.trim().is_empty()) {
        return Ok(None);
    }
    if !text.starts_with('{') {
        return Err("it must be enclosed in `{` and `}`".to_owned());
    }
    // So that a comment at the end can't hide the closing brace.
    let document = parse(&format!("{BEFORE}{text}\n}}"), BEFORE.len(), text)?;
    let operation = only_operation(&document).ok_or("it continues after its last `}`")?;
    let mut selections = operation
        .selection_set()
        .into_iter()
        .flat_map(|set| set.selections());
    match (selections.next(), selections.next()) {
        (Some(Selection::Field(_)), None) => {}
        _ => return Err("it continues after its last `}`".to_owned()),
    }
    for node in document.syntax().descendants() {
        match node.kind() {
            SyntaxKind::VARIABLE => {
                return Err(format!(
                    "the variable `{}` has no value: write the value, or `${{ }}` with an \
                     expression that gives it",
                    node.text()
                ));
            }
            SyntaxKind::FRAGMENT_SPREAD => {
                return Err(format!(
                    "the fragment `{}` is not defined: write its fields in its place",
                    node.text().to_string().trim()
                ));
            }
            _ => {}
        }
    }
    Ok(Some(text))
}

/// A selection in a selection set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selected {
    Field {
        name: String,
        /// The names of its arguments.
        arguments: Vec<String>,
        /// Empty if it has no selection set.
        inner: Vec<Selected>,
    },
    /// An inline fragment, with its type if it states one.
    Fragment {
        of: Option<String>,
        inner: Vec<Selected>,
    },
}

/// The selections in a selection set; empty if it selects nothing or isn't valid.
pub fn selected(text: &str) -> Vec<Selected> {
    let Ok(Some(text)) = selection_set(text) else {
        return Vec::new();
    };
    let Ok(document) = parse(&format!("query {text}"), 0, text) else {
        return Vec::new();
    };
    let set = only_operation(&document).and_then(|operation| operation.selection_set());
    set.map(all_of).unwrap_or_default()
}

/// The parser limits the depth of this recursion.
fn all_of(set: SelectionSet) -> Vec<Selected> {
    let inner = |set: Option<SelectionSet>| set.map(all_of).unwrap_or_default();
    set.selections()
        .filter_map(|selection| match selection {
            Selection::Field(field) => Some(Selected::Field {
                name: field.name()?.text().to_string(),
                arguments: field
                    .arguments()
                    .into_iter()
                    .flat_map(|all| all.arguments())
                    .filter_map(|one| Some(one.name()?.text().to_string()))
                    .collect(),
                inner: inner(field.selection_set()),
            }),
            Selection::InlineFragment(fragment) => Some(Selected::Fragment {
                of: fragment
                    .type_condition()
                    .and_then(|of| Some(of.named_type()?.name()?.text().to_string())),
                inner: inner(fragment.selection_set()),
            }),
            // Rejected before.
            Selection::FragmentSpread(_) => None,
        })
        .collect()
}

/// Whether this is a variable's type in GraphQL notation: `[PetInput!]!`.
pub fn is_type(text: &str) -> bool {
    let Ok(document) = parse(&format!("query ($it: {text}\n) {{ it }}"), 0, text) else {
        return false;
    };
    let Some(variables) = only_operation(&document).and_then(|found| found.variable_definitions())
    else {
        return false;
    };
    let all: Vec<_> = variables.variable_definitions().collect();
    matches!(&all[..], [one] if one.default_value().is_none() && one.directives().is_none())
}

/// Whether this is valid as the name of a field or an argument.
pub fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// `text` begins at `offset` of `whole`.
fn parse(whole: &str, offset: usize, text: &str) -> Result<Document, String> {
    if text.len() > BYTES_MAX {
        return Err(format!(
            "it has {} bytes; at most {BYTES_MAX} are read",
            text.len()
        ));
    }
    let tree = Parser::new(whole)
        .recursion_limit(DEPTH_MAX)
        .token_limit(TOKENS_MAX)
        .parse();
    if let Some(error) = tree.errors().next() {
        let at = error.index().saturating_sub(offset);
        let place = match text.get(..at) {
            Some(before) if at < text.len() => {
                let line = before.matches('\n').count() + 1;
                let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
                format!("line {line}, column {column}")
            }
            _ => "its end".to_owned(),
        };
        return Err(format!("at {place}: {}", worded(error.message())));
    }
    Ok(tree.document())
}

/// The parser's names for symbols are Rust names, so they are replaced.
fn worded(message: &str) -> String {
    let signs = [
        ("L_CURLY", "`{`"),
        ("R_CURLY", "`}`"),
        ("L_PAREN", "`(`"),
        ("R_PAREN", "`)`"),
        ("L_BRACK", "`[`"),
        ("R_BRACK", "`]`"),
        ("COLON", "`:`"),
        ("got EOF", "and it ends"),
    ];
    let replace = |text: String, (from, to): (&str, &str)| text.replace(from, to);
    signs.into_iter().fold(message.to_owned(), replace)
}

fn only_operation(document: &Document) -> Option<OperationDefinition> {
    let mut definitions = document.definitions();
    match (definitions.next(), definitions.next()) {
        (Some(Definition::OperationDefinition(operation)), None) => Some(operation),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection_sets() {
        for text in [
            "{ id }",
            "{ id, name, favoriteTreat { id } }",
            " {id age(useDogYears: true, of: [\"a }\"]) @skip(if: false) { years } } ",
            "{ ... on Dog { barks } alias: id # a comment\n }",
            "{ id } # the end",
        ] {
            assert_eq!(selection_set(text), Ok(Some(text.trim())), "{text}");
        }
        for text in ["", "  ", "{}", "{ }"] {
            assert_eq!(selection_set(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn invalid_selection_sets_are_rejected() {
        for (text, reason) in [
            ("id name", "it must be enclosed"),
            ("{ id", "at its end: expected `}`, and it ends"),
            ("{ id } }", "at "),
            ("{ id } secrets { all }", "it continues after its last `}`"),
            (
                "{ id } } query Q { secrets { all }",
                "it continues after its last `}`",
            ),
            ("{ id name: }", "at line 1, column 12"),
            ("{ id\n  pet(id: ) }", "at line 2, column 11"),
            ("{ pet(id: $id) { id } }", "the variable `$id` has no value"),
            ("{ ...All }", "the fragment `...All` is not defined"),
        ] {
            let error = selection_set(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let deep = format!("{}id{}", "{ a ".repeat(500), "}".repeat(500));
        assert!(selection_set(&deep).is_err());
        let long = format!("{{ {} }}", "a ".repeat(TOKENS_MAX));
        assert!(selection_set(&long).is_err());
    }

    #[test]
    fn selections_are_listed() {
        let field = |name: &str, arguments: &[&str], inner| Selected::Field {
            name: name.to_owned(),
            arguments: arguments.iter().map(|name| (*name).to_owned()).collect(),
            inner,
        };
        let text =
            "{ id, other: age(of: 1, by: {x: 2}) { years } ... on Dog { barks } ... { name } }";
        let expected = [
            field("id", &[], vec![]),
            field("age", &["of", "by"], vec![field("years", &[], vec![])]),
            Selected::Fragment {
                of: Some("Dog".to_owned()),
                inner: vec![field("barks", &[], vec![])],
            },
            Selected::Fragment {
                of: None,
                inner: vec![field("name", &[], vec![])],
            },
        ];
        assert_eq!(selected(text), expected);
        for nothing in ["", "{ }", "{ id", "{ ...All }"] {
            assert_eq!(selected(nothing), [], "{nothing}");
        }
    }

    #[test]
    fn types_and_names() {
        for text in ["Int", "Int!", "[PetInput!]!", "[[ID]]"] {
            assert!(is_type(text), "{text}");
        }
        for text in [
            "",
            "1",
            "Int = 4",
            "[Int",
            "Int, $b: Int",
            "Int) { a } query ($b: Int",
        ] {
            assert!(!is_type(text), "{text}");
        }
        assert!(is_name("_id2") && !is_name("2id") && !is_name("a-b") && !is_name(""));
    }
}
