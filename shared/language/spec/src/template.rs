//! Finds `${ ... }`, or `{{ ... }}` in older editions, in a text.
//!
//! The closing brace is found by the rules of the expression language: braces nest, and braces in strings and (in jq)
//! comments don't count. `$${` is a literal `${` (docs/language.md#decision-64).

use std::ops::Range;

use swirl_model::workflow::Language;

/// The delimiters around an expression in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delimiters {
    /// `${ ... }`
    Dollar,
    /// `{{ ... }}`
    Braces,
}

impl Delimiters {
    pub fn open(self) -> &'static str {
        match self {
            Delimiters::Dollar => "${",
            Delimiters::Braces => "{{",
        }
    }

    pub fn close(self) -> &'static str {
        match self {
            Delimiters::Dollar => "}",
            Delimiters::Braces => "}}",
        }
    }

    /// Both delimiters, for messages.
    pub fn pair(self) -> &'static str {
        match self {
            Delimiters::Dollar => "${ }",
            Delimiters::Braces => "{{ }}",
        }
    }
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// The text between the delimiters.
    Expression(String),
}

/// An expression that is never closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unclosed;

/// The parts of a text, in order. Fails if an expression is never closed.
pub fn pieces(
    text: &str,
    delimiters: Delimiters,
    language: Language,
) -> Result<Vec<Piece>, Unclosed> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(delimiters.open()) {
        if delimiters == Delimiters::Dollar && rest[..at].ends_with('$') {
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
        let end = match language {
            Language::Jq => closing(inner),
            // Their strings and brackets are similar to those of JSONPath.
            Language::JsonPath | Language::Cel | Language::Jexl | Language::Spel => {
                closing_of_jsonpath(inner)
            }
        };
        let end = end.ok_or(Unclosed)?;
        pieces.push(Piece::Expression(inner[..end].to_owned()));
        rest = inner[end..]
            .strip_prefix(delimiters.close())
            .ok_or(Unclosed)?;
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

/// Where the expressions in a text are, without their delimiters. Nothing follows one that is never closed.
pub fn expressions(text: &str, delimiters: Delimiters, language: Language) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find(delimiters.open()) {
        let open = at + open;
        let start = open + delimiters.open().len();
        if delimiters == Delimiters::Dollar && text[..open].ends_with('$') {
            at = start;
            continue;
        }
        let end = match language {
            Language::Jq => closing(&text[start..]),
            _ => closing_of_jsonpath(&text[start..]),
        };
        let Some(end) = end.map(|end| start + end) else {
            break;
        };
        if !text[end..].starts_with(delimiters.close()) {
            break;
        }
        found.push(start..end);
        at = end + delimiters.close().len();
    }
    found
}

/// Where the variables (`$name`) of a jq expression are. A `$` in a string belongs to its text, unless it is in `\( )`.
pub fn variables(expression: &str) -> Vec<Range<usize>> {
    let bytes = expression.as_bytes();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut found = Vec::new();
    // For each string around the place: how many parentheses are open in its interpolation. `None` in the string itself.
    let mut strings: Vec<Option<usize>> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (strings.last_mut(), byte) {
            (Some(place @ None), b'\\') => {
                if bytes.get(at + 1) == Some(&b'(') {
                    *place = Some(0);
                }
                at += 1;
            }
            (Some(None), b'"') => drop(strings.pop()),
            (Some(None), _) => {}
            (_, b'"') => strings.push(None),
            (Some(Some(open)), b'(') => *open += 1,
            (Some(place @ Some(0)), b')') => *place = None,
            (Some(Some(open)), b')') => *open -= 1,
            (_, b'#') => {
                let rest = bytes[at..].iter();
                at += rest.take_while(|byte| **byte != b'\n').count();
                continue;
            }
            (_, b'$') => {
                let rest = bytes[at + 1..].iter();
                let end = at + 1 + rest.take_while(|byte| is_name(byte)).count();
                if end > at + 1 {
                    found.push(at..end);
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// The expression, if the text consists of a single one and optional white space (docs/language.md#decision-13).
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

/// The offset of the `}` that closes a JSONPath. Braces have no meaning in JSONPath, except in quoted texts and regular
/// expressions.
fn closing_of_jsonpath(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut open = 0usize;
    let mut chars = text.char_indices();
    let mut last = ' ';
    while let Some((at, c)) = chars.next() {
        match (c, quote) {
            ('\\', Some(_)) => drop(chars.next()),
            (c, Some(end)) if c == end => quote = None,
            (_, Some(_)) => {}
            ('\'' | '"', None) => quote = Some(c),
            ('/', None) if last == '~' => quote = Some(c),
            ('{', None) => open += 1,
            ('}', None) if open == 0 => return Some(at),
            ('}', None) => open -= 1,
            _ => {}
        }
        if !c.is_whitespace() {
            last = c;
        }
    }
    None
}

/// The offset of the `}` that closes a jq expression.
pub(crate) fn closing(text: &str) -> Option<usize> {
    /// The open constructs: braces and brackets of code, strings, and code inside `\( )` in a string.
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
                // A brace inside a parenthesis that isn't closed. The compiler will report the error.
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

    fn show(text: &str, language: Language) -> String {
        match pieces(text, Delimiters::Dollar, language) {
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
    fn expressions_in_a_text_have_places() {
        for (text, delimiters, inside) in [
            ("a ${ .a } b ${.b}", Delimiters::Dollar, " .a |.b"),
            (
                "$${ .a } ${ {x: \"}\"} }",
                Delimiters::Dollar,
                " {x: \"}\"} ",
            ),
            ("Hello {{ .a }}, {{.b}}!", Delimiters::Braces, " .a |.b"),
            ("{{ .a }} {{ .b", Delimiters::Braces, " .a "),
            ("{{ .a } }}", Delimiters::Braces, ""),
            ("none", Delimiters::Dollar, ""),
        ] {
            let found = expressions(text, delimiters, Language::Jq);
            let found: Vec<&str> = found.into_iter().map(|place| &text[place]).collect();
            assert_eq!(found.join("|"), inside, "{text}");
        }
    }

    #[test]
    fn variables_in_strings_are_texts() {
        for (text, names) in [
            ("$a.x + $b[\"$c\"]", "$a $b"),
            (
                r#""$a \($b + "$c \($d)" + (1 | $e)) $f" + $g"#,
                "$b $d $e $g",
            ),
            (". # $a\n| $b_1", "$b_1"),
            (r#""\\($a)" + "\"$b""#, ""),
            ("$", ""),
            ("\"$a", ""),
        ] {
            let found = variables(text);
            let found: Vec<&str> = found.into_iter().map(|place| &text[place]).collect();
            assert_eq!(found.join(" "), names, "{text}");
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
            assert_eq!(show(text, Language::Jq), expected, "{text}");
        }
    }

    #[test]
    fn texts_are_split_by_the_rules_of_jsonpath() {
        let cases = [
            ("a ${ $.a } b", "[a ]< $.a >[ b]"),
            ("${ $['}'].a }", "< $['}'].a >"),
            (r#"${ $["}\"}"] }x"#, r#"< $["}\"}"] >[x]"#),
            (r"${ $['\'}'] }", r"< $['\'}'] >"),
            ("${ $['a\"}'] }", "< $['a\"}'] >"),
            ("${ $[?(@.a =~ /x{2}'/)] }", "< $[?(@.a =~ /x{2}'/)] >"),
            ("${ $['#'] }", "< $['#'] >"),
            ("$${ $.a }", "[${ $.a }]"),
            ("${ $['a }", "unclosed"),
        ];
        for (text, expected) in cases {
            assert_eq!(show(text, Language::JsonPath), expected, "{text}");
        }
    }

    #[test]
    fn white_space_around_one_expression_does_not_count() {
        assert_eq!(
            alone(&pieces(" ${ .a } ", Delimiters::Dollar, Language::Jq).unwrap()),
            Some(" .a ")
        );
        assert_eq!(
            alone(&pieces("${ .a } ${ .b }", Delimiters::Dollar, Language::Jq).unwrap()),
            None
        );
        assert_eq!(
            alone(&pieces("x ${ .a }", Delimiters::Dollar, Language::Jq).unwrap()),
            None
        );
    }

    #[test]
    fn two_braces() {
        let of = |text| {
            let pieces = pieces(text, Delimiters::Braces, Language::JsonPath)?;
            let shown = pieces.into_iter().map(|piece| match piece {
                Piece::Text(text) => text,
                Piece::Expression(inner) => format!("<{inner}>"),
            });
            Ok(shown.collect::<String>())
        };
        assert_eq!(of("{{ $.a }}"), Ok("< $.a >".to_owned()));
        assert_eq!(
            of("a {{$.b}} c {{ $.d }}"),
            Ok("a <$.b> c < $.d >".to_owned())
        );
        let quoted = "{{ $.a[?(@.b == '}}')] }}";
        assert_eq!(of(quoted), Ok("< $.a[?(@.b == '}}')] >".to_owned()));
        assert_eq!(of("${ $.a }"), Ok("${ $.a }".to_owned()));
        for text in ["{{ $.a", "{{ $.a }", "{{ $.a } }"] {
            assert_eq!(of(text), Err(Unclosed), "{text}");
        }
    }
}
