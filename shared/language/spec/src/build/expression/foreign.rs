//! Hints for jq expressions with the words and signs of other languages.

use swirl_model::workflow::Language;

/// Signs between or before values, and what jq has in their place.
const SIGNS: [(&str, &str); 6] = [
    ("===", "'==' compares in jq, not '==='"),
    ("!==", "'!=' compares in jq, not '!=='"),
    ("&&", "write 'and' in place of '&&'"),
    ("||", "write 'or' in place of '||'"),
    ("<>", "write '!=' in place of '<>'"),
    ("'", "strings are in double quotes in jq: \"a\""),
];

const WORDS: [(&str, &str); 9] = [
    ("eq", "write '==' in place of 'eq'"),
    ("ne", "write '!=' in place of 'ne'"),
    ("gt", "write '>' in place of 'gt'"),
    ("ge", "write '>=' in place of 'ge'"),
    ("lt", "write '<' in place of 'lt'"),
    ("le", "write '<=' in place of 'le'"),
    ("AND", "write 'and' in lower case"),
    ("OR", "write 'or' in lower case"),
    ("NOT", "write '(...) | not'"),
];

/// The hint for an expression that doesn't compile.
/// `variables`: those of the language.
pub(super) fn hint(language: Language, text: &str, variables: &[&str]) -> Option<String> {
    if language != Language::Jq {
        return None;
    }
    let outside = outside_texts(text);
    let sign = SIGNS.iter().find(|(sign, _)| outside.contains(sign));
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    let words: Vec<&str> = outside.split(|c| !is_word(c)).collect();
    let word = || WORDS.iter().find(|(word, _)| words.contains(word));
    if let Some((_, hint)) = sign.or_else(word) {
        return Some((*hint).to_owned());
    }
    if has_exclamation_mark(&outside) {
        return Some("write '(...) | not' in place of '!'".to_owned());
    }
    let variable = words.iter().find_map(|word| {
        let name = word.split('.').next()?.strip_prefix('$')?;
        if variables.contains(&name) {
            return None;
        }
        let is_near = |known: &str| {
            let singular = known.trim_end_matches(['s', 'S']);
            known.eq_ignore_ascii_case(name) || singular.eq_ignore_ascii_case(name)
        };
        variables.iter().find(|known| is_near(known))
    });
    if let Some(variable) = variable {
        return Some(format!("the variable is called '${variable}'"));
    }
    let is_path = |path: &str| {
        let mut names = path.split('.');
        names.all(|name| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_'))
            && path.starts_with(|c: char| c.is_alphabetic() || c == '_')
    };
    is_path(text.trim()).then(|| format!("a member of the data is written '.{}'", text.trim()))
}

/// The expression without its texts in double quotes.
fn outside_texts(text: &str) -> String {
    let mut outside = String::with_capacity(text.len());
    let mut chars = text.chars();
    let mut inside = false;
    while let Some(c) = chars.next() {
        match c {
            '"' => inside = !inside,
            '\\' if inside => drop(chars.next()),
            c if !inside => outside.push(c),
            _ => {}
        }
    }
    outside
}

/// `!` that isn't a part of `!=`.
fn has_exclamation_mark(text: &str) -> bool {
    let mut after = text.split('!').skip(1);
    after.any(|rest| !rest.starts_with('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_languages_have_hints() {
        for (text, expected) in [
            (".a && .b", "write 'and' in place of '&&'"),
            (".a || .b", "write 'or' in place of '||'"),
            ("!.a", "write '(...) | not' in place of '!'"),
            (".a === 1", "'==' compares in jq, not '==='"),
            (".a eq 1", "write '==' in place of 'eq'"),
            (".a == 'b'", "strings are in double quotes in jq: \"a\""),
            ("$secrets.x", "the variable is called '$SECRETS'"),
            ("$SECRET.x", "the variable is called '$SECRETS'"),
            ("items", "a member of the data is written '.items'"),
            (
                "order.items",
                "a member of the data is written '.order.items'",
            ),
        ] {
            let hint = hint(Language::Jq, text, &["SECRETS", "CONST", "WORKFLOW"]);
            assert_eq!(hint.as_deref(), Some(expected), "{text}");
        }
        for text in [".a[", "\"a && b\" + ", ".eq + ", ".a != ", "map(.x"] {
            assert_eq!(hint(Language::Jq, text, &[]), None, "{text}");
        }
        let names = ["secrets", "workflow", "input"];
        for (text, expected) in [
            ("$SECRETS.k", Some("the variable is called '$secrets'")),
            ("$WORKFLOW.id", Some("the variable is called '$workflow'")),
            ("$inputt == $workflow.input", None),
        ] {
            assert_eq!(
                hint(Language::Jq, text, &names).as_deref(),
                expected,
                "{text}"
            );
        }
    }
}
