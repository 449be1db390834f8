//! Texts of jq: which variables they have, and whether they give one value.

/// A part of an expression's text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// A variable without its `$`.
    Variable(&'t str),
    /// An identifier or keyword; fields and keys of objects aren't among them.
    Word(&'t str),
    /// Everything else: operators, white space, numbers, fields, the texts of strings.
    Other(&'t str),
}

/// Splits an expression. What stands in a string isn't a variable or word, unless it is interpolated.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    // For each string that is open: the depth of the parentheses of its interpolation.
    let mut strings: Vec<usize> = Vec::new();
    let (mut at, mut from, mut in_string) = (0, 0, false);
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    while at < bytes.len() {
        let byte = bytes[at];
        if in_string {
            match byte {
                b'\\' if bytes.get(at + 1) == Some(&b'(') => {
                    at += 2;
                    strings.push(0);
                    in_string = false;
                }
                b'\\' => at += 2,
                b'"' => {
                    at += 1;
                    in_string = false;
                }
                _ => at += 1,
            }
            continue;
        }
        match byte {
            b'"' => {
                in_string = true;
                at += 1;
            }
            b'#' => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    at += 1;
                }
            }
            b'(' => {
                if let Some(depth) = strings.last_mut() {
                    *depth += 1;
                }
                at += 1;
            }
            b')' => {
                at += 1;
                match strings.last_mut() {
                    Some(0) => {
                        strings.pop();
                        in_string = true;
                    }
                    Some(depth) => *depth -= 1,
                    None => {}
                }
            }
            b'$' if bytes.get(at + 1).is_some_and(|next| is_word(*next)) => {
                let end = end_of(bytes, at + 1, is_word);
                push_other(&mut found, text, from, at);
                found.push(Piece::Variable(&text[at + 1..end]));
                (at, from) = (end, end);
            }
            b'.' | b'@' if bytes.get(at + 1).is_some_and(|next| is_word(*next)) => {
                at = end_of(bytes, at + 1, is_word);
            }
            _ if byte.is_ascii_alphabetic() || byte == b'_' => {
                let end = end_of(bytes, at, is_word);
                let rest = text[end..].trim_start();
                if rest.starts_with(':') && !rest.starts_with("::") {
                    at = end;
                    continue;
                }
                push_other(&mut found, text, from, at);
                found.push(Piece::Word(&text[at..end]));
                (at, from) = (end, end);
            }
            _ => at += 1,
        }
    }
    push_other(&mut found, text, from, text.len());
    found
}

fn push_other<'t>(found: &mut Vec<Piece<'t>>, text: &'t str, from: usize, to: usize) {
    if let Some(other) = text.get(from..to).filter(|other| !other.is_empty()) {
        found.push(Piece::Other(other));
    }
}

fn end_of(bytes: &[u8], from: usize, is_word: impl Fn(u8) -> bool) -> usize {
    let mut end = from;
    while bytes.get(end).is_some_and(|byte| is_word(*byte)) {
        end += 1;
    }
    end
}

/// Whether it reads `$WORKFLOW.error`.
pub(super) fn reads_error(text: &str) -> bool {
    let mut after = false;
    for piece in pieces(text) {
        match piece {
            Piece::Variable("WORKFLOW") => after = true,
            Piece::Other(rest) if after => {
                let key = member(rest).map(|(key, _)| key);
                if key.is_none_or(|key| key == "error") {
                    return true;
                }
                after = false;
            }
            _ if after => return true,
            _ => {}
        }
    }
    after
}

/// The member that is selected here, and its length in the text.
pub(super) fn member(text: &str) -> Option<(&str, usize)> {
    let rest = text.strip_prefix('.')?;
    let end = rest
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(rest.len());
    let key = &rest[..end];
    let first = key.chars().next()?;
    (first.is_ascii_alphabetic() || first == '_').then_some((key, end + 1))
}

/// Words that give one value for each input.
const SINGLE: [&str; 33] = [
    "and",
    "or",
    "not",
    "true",
    "false",
    "null",
    "if",
    "then",
    "elif",
    "else",
    "end",
    "as",
    "length",
    "tostring",
    "tonumber",
    "type",
    "keys",
    "add",
    "map",
    "has",
    "contains",
    "join",
    "split",
    "sort",
    "sort_by",
    "unique",
    "unique_by",
    "any",
    "all",
    "floor",
    "ascii_downcase",
    "startswith",
    "tojson",
];

/// Whether the expression certainly gives exactly one value, or an error.
pub(super) fn is_single(text: &str) -> bool {
    let mut brackets = Vec::new();
    let mut before = ' ';
    for piece in pieces(text) {
        let other = match piece {
            Piece::Variable(_) => {
                before = 'a';
                continue;
            }
            Piece::Word(word) if SINGLE.contains(&word) => {
                before = if word.ends_with("map") { 'm' } else { 'a' };
                continue;
            }
            // `{name}` is short for `{name: .name}`.
            Piece::Word(_) if brackets.last() == Some(&'{') && matches!(before, '{' | ',') => {
                before = 'a';
                continue;
            }
            Piece::Word(_) => return false,
            Piece::Other(other) => other,
        };
        if other.contains('"') && (other.contains('?') || other.contains("..")) {
            return false;
        }
        let mut in_string = false;
        let mut chars = other.chars().peekable();
        while let Some(c) = chars.next() {
            if in_string {
                match c {
                    '\\' => {
                        chars.next();
                    }
                    '"' => in_string = false,
                    _ => {}
                }
                continue;
            }
            match c {
                '"' => in_string = true,
                '?' => return false,
                '.' if chars.peek() == Some(&'.') => return false,
                '[' => {
                    // `.[]` gives many values, unless a list is around it.
                    let inside = brackets.contains(&'[');
                    if chars.peek() == Some(&']')
                        && (before == '.' || before == 'a' || before == ')' || before == ']')
                        && !inside
                    {
                        return false;
                    }
                    brackets.push(match before {
                        '.' | 'a' | ')' | ']' => 'i',
                        _ => '[',
                    });
                }
                '{' | '(' => brackets.push(c),
                ']' | '}' | ')' => {
                    brackets.pop();
                }
                ',' if !brackets.contains(&'[') && brackets.last() != Some(&'{') => return false,
                _ => {}
            }
            if !c.is_whitespace() {
                before = if c.is_alphanumeric() || c == '_' {
                    'a'
                } else {
                    c
                };
            }
        }
    }
    true
}

/// Whether it certainly gives an object: it is one, from its first sign to its last.
pub(super) fn is_object(text: &str) -> bool {
    let text = text.trim();
    if !text.starts_with('{') || !is_single(text) {
        return false;
    }
    let (mut depth, mut in_string) = (0usize, false);
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if in_string => {
                chars.next();
            }
            '"' => in_string = !in_string,
            '{' if !in_string => depth += 1,
            '}' if !in_string => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1 == text.len();
                }
            }
            _ => {}
        }
    }
    false
}

/// One value: what the expression gives, null if it gives none, an error if it gives several.
pub(super) fn one(text: &str) -> String {
    match is_single(text) {
        true => text.to_owned(),
        false => format!(
            "[{text}{}] | if length > 1 then error(\"an expression gives several values\") else .[0] end",
            if text.contains('#') { "\n" } else { "" }
        ),
    }
}

/// In parentheses, unless it is a plain path.
pub(super) fn grouped(text: &str) -> String {
    let is_plain = text
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '$'));
    match is_plain {
        true => text.to_owned(),
        false if text.contains('#') => format!("({text}\n)"),
        false => format!("({text})"),
    }
}

/// Whether an expression reads a variable.
pub(super) fn uses_variable(text: &str, name: &str) -> bool {
    pieces(text).contains(&Piece::Variable(name))
}

/// A filter over the state data: what it selects, or the data itself if it selects nothing.
pub(super) fn filter(text: &str) -> String {
    if text.trim() == "." {
        return ".".to_owned();
    }
    match is_object(text) {
        true => text.to_owned(),
        false => {
            let one = grouped(&one(text));
            format!("{one} as $found | if $found == null then . else $found end")
        }
    }
}

/// One after the other. `.` changes nothing.
pub(super) fn piped(first: &str, then: &str) -> String {
    match (first, then) {
        (".", then) => then.to_owned(),
        (first, ".") => first.to_owned(),
        (first, then) => {
            let end = if first.contains('#') { "\n" } else { " " };
            format!("{first}{end}| {then}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_outside_of_texts() {
        let found = pieces(r#"$A.b + "$B \($C | "x\($D)")" # $E"#);
        let names: Vec<&str> = found
            .iter()
            .filter_map(|piece| match piece {
                Piece::Variable(name) => Some(*name),
                _ => None,
            })
            .collect();
        assert_eq!(names, ["A", "C", "D"]);
    }

    #[test]
    fn expressions_of_one_value() {
        for text in [
            ".a.b",
            "{a: .b, c: [.d[]]}",
            "[.a[] | .b]",
            ".a + 1",
            "if .a then 1 else 2 end",
            "(.a | length) > 1",
            r#".a == "x, y""#,
        ] {
            assert!(is_single(text), "{text}");
        }
        for text in [
            ".a[]",
            ".a, .b",
            "empty",
            ".a?",
            "..",
            "select(.a)",
            "{a: .b[]}",
        ] {
            assert!(!is_single(text), "{text}");
        }
    }

    #[test]
    fn objects() {
        for text in ["{a}", "{a: .b, c: {d: 1}}", r#"{a: "x"}"#] {
            assert!(is_object(text), "{text}");
        }
        for text in [".a", "{a} | .a", "{a: .b}.a", "[{a}]", "{a: (.b[])}"] {
            assert!(!is_object(text), "{text}");
        }
    }
}
