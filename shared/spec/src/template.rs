//! Finds `${ ... }` in a text.
//!
//! The closing brace is found by jq's own rules: braces nest, and those in strings and comments
//! don't count. `$${` is a literal `${` (decision 64).

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// What stands between `${` and `}`.
    Expression(String),
}

/// A `${` that is never closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unclosed;

/// The text's parts, in order. Fails if a `${` is never closed.
pub fn pieces(text: &str) -> Result<Vec<Piece>, Unclosed> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            plain.push_str(&rest[..at - 1]);
            plain.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        plain.push_str(&rest[..at]);
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        let inner = &rest[at + 2..];
        let end = closing(inner).ok_or(Unclosed)?;
        pieces.push(Piece::Expression(inner[..end].to_owned()));
        rest = &inner[end + 1..];
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

/// The one expression that the text is, white space around it aside (decision 13).
pub fn alone(pieces: &[Piece]) -> Option<&str> {
    let mut found = None;
    for piece in pieces {
        match piece {
            Piece::Text(text) if text.trim().is_empty() => {}
            Piece::Expression(inner) if found.is_none() => found = Some(inner.as_str()),
            _ => return None,
        }
    }
    found
}

/// The offset of the `}` that closes an expression.
fn closing(text: &str) -> Option<usize> {
    /// What is open: braces and brackets of code, strings, and code inside `\( )` in a string.
    #[derive(PartialEq)]
    enum Open {
        Brace,
        Paren,
        Text,
    }
    let bytes = text.as_bytes();
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if open.last() == Some(&Open::Text) {
            match byte {
                b'"' => drop(open.pop()),
                b'\\' if bytes.get(at + 1) == Some(&b'(') => {
                    open.push(Open::Paren);
                    at += 1;
                }
                b'\\' => at += 1,
                _ => {}
            }
        } else {
            match byte {
                b'"' => open.push(Open::Text),
                b'{' => open.push(Open::Brace),
                b'(' => open.push(Open::Paren),
                b')' if open.last() == Some(&Open::Paren) => drop(open.pop()),
                b'}' if open.is_empty() => return Some(at),
                b'}' if open.last() == Some(&Open::Brace) => drop(open.pop()),
                // A brace in a parenthesis that isn't closed: the compiler will say what is wrong.
                b'}' if !open.contains(&Open::Brace) && !open.contains(&Open::Text) => {
                    return Some(at);
                }
                b'#' => at += bytes[at..].iter().position(|byte| *byte == b'\n')?,
                _ => {}
            }
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> String {
        match pieces(text) {
            Err(Unclosed) => "unclosed".to_owned(),
            Ok(pieces) => pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Text(text) => format!("[{text}]"),
                    Piece::Expression(text) => format!("<{text}>"),
                })
                .collect(),
        }
    }

    #[test]
    fn texts_are_split() {
        let cases = [
            ("plain", "[plain]"),
            ("", ""),
            ("${ .a }", "< .a >"),
            ("a ${.b} c ${.d}", "[a ]<.b>[ c ]<.d>"),
            ("${ {a: {b: .c}} }!", "< {a: {b: .c}} >[!]"),
            (r#"${ "}" + .a }"#, r#"< "}" + .a >"#),
            (r#"${ "\"}" }"#, r#"< "\"}" >"#),
            (
                r#"${ "x\({a: "}"} | .a)}" }"#,
                r#"< "x\({a: "}"} | .a)}" >"#,
            ),
            ("${ .a # }\n }", "< .a # }\n >"),
            ("cost: $${ 5 }", "[cost: ${ 5 }]"),
            ("$5 {", "[$5 {]"),
            ("${ .a", "unclosed"),
            ("${ {a: 1 }", "unclosed"),
            ("${ \"a }", "unclosed"),
            ("${ .a # }", "unclosed"),
            ("${ (.a }", "< (.a >"),
            ("${}", "<>"),
            ("ü${ \"ü\" }ü", "[ü]< \"ü\" >[ü]"),
        ];
        for (text, expected) in cases {
            assert_eq!(show(text), expected, "{text}");
        }
    }

    #[test]
    fn white_space_around_one_expression_does_not_count() {
        assert_eq!(alone(&pieces(" ${ .a } ").unwrap()), Some(" .a "));
        assert_eq!(alone(&pieces("${ .a } ${ .b }").unwrap()), None);
        assert_eq!(alone(&pieces("x ${ .a }").unwrap()), None);
    }
}
