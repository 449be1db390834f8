//! JSON (RFC 8259) with locations. The depth limit bounds recursion.

use std::collections::HashSet;

use super::budget::Budget;
use super::node::{Member, Node, Value, child};
use super::{Limits, Result_, fatal, number, quoted};
use crate::codes;
use crate::diagnostic::{Diagnostic, Diagnostics, SourceLocation};

/// The hint for a comment.
pub(super) const NO_COMMENTS: &str =
    "JSON has no comments: remove this one, or write the document in YAML";

/// The hint for a comma after the last element.
const NO_LAST_COMMA: &str =
    "JSON has no comma after the last element: remove it, or write the document in YAML";

pub(super) fn parse(text: &str, limits: &Limits, diagnostics: &mut Diagnostics) -> Result_<Node> {
    let budget = Budget::new(limits);
    let mut parser = Parser {
        rest: text.chars(),
        line: 1,
        column: 1,
        budget,
        diagnostics,
        last_comma: None,
    };
    parser.space();
    let root = parser.value(String::new(), 0)?;
    parser.space();
    match (parser.peek(), parser.last_comma.take()) {
        (None, None) => Ok(root),
        (None, Some(place)) => {
            let message = "a comma is followed by the end of its list or object";
            let mut error = fatal(codes::SYNTAX_ERROR, place, message);
            error.hint = Some(NO_LAST_COMMA.to_owned());
            // The rest is clear, so that an editor can still help.
            parser.diagnostics.push(*error);
            Ok(root)
        }
        (Some(c), _) => Err(parser.wrong(format!(
            "nothing may follow the document's value, but {c:?} does"
        ))),
    }
}

struct Parser<'t> {
    rest: std::str::Chars<'t>,
    line: usize,
    column: usize,
    budget: Budget<'t>,
    diagnostics: &'t mut Diagnostics,
    /// The first comma after a last element. YAML permits it, so the document is rejected for it only if everything
    /// else is JSON.
    last_comma: Option<SourceLocation>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        // A carriage return alone also ends a line.
        if c == '\n' || (c == '\r' && self.peek() != Some('\n')) {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn space(&mut self) {
        while let Some(' ' | '\t' | '\n' | '\r') = self.peek() {
            self.bump();
        }
    }

    fn here(&self) -> SourceLocation {
        SourceLocation {
            pointer: String::new(),
            line: self.line,
            column: self.column,
        }
    }

    fn wrong(&self, message: impl Into<String>) -> Box<Diagnostic> {
        fatal(codes::SYNTAX_ERROR, self.here(), message)
    }

    fn expected(&self, wanted: &str) -> Box<Diagnostic> {
        let rest = self.rest.as_str();
        if rest.starts_with("//") || rest.starts_with("/*") {
            let mut error = self.wrong(format!("expected {wanted}, found a comment"));
            error.hint = Some(NO_COMMENTS.to_owned());
            return error;
        }
        match self.peek() {
            Some(c) => self.wrong(format!("expected {wanted}, found {c:?}")),
            None => self.wrong(format!("expected {wanted}, but the document ends here")),
        }
    }

    fn value(&mut self, pointer: String, depth: usize) -> Result_<Node> {
        let (line, column) = (self.line, self.column);
        let place = || SourceLocation {
            pointer: pointer.clone(),
            line,
            column,
        };
        let value = match self.peek() {
            Some('{') => {
                self.budget.deeper(depth + 1, place)?;
                self.object(&pointer, depth + 1)?
            }
            Some('[') => {
                self.budget.deeper(depth + 1, place)?;
                self.array(&pointer, depth + 1)?
            }
            Some('"') => Value::String(self.string()?.into()),
            Some('-' | '0'..='9') => self.number(place)?,
            Some('a'..='z' | 'A'..='Z') => self.word()?,
            _ => return Err(self.expected("a value")),
        };
        let bytes = pointer.len()
            + match &value {
                Value::String(text) | Value::Number(text) => text.len(),
                _ => 0,
            };
        self.budget.take(bytes, place)?;
        Ok(Node {
            value,
            pointer: pointer.into(),
            line,
            column,
        })
    }

    fn word(&mut self) -> Result_<Value> {
        let (line, column) = (self.line, self.column);
        let mut word = String::new();
        while let Some(c) = self.peek().filter(char::is_ascii_alphanumeric) {
            word.push(c);
            self.bump();
        }
        match word.as_str() {
            "null" => Ok(Value::Null(word.into())),
            "true" => Ok(Value::Bool(true, word.into())),
            "false" => Ok(Value::Bool(false, word.into())),
            _ => {
                let place = SourceLocation {
                    pointer: String::new(),
                    line,
                    column,
                };
                let message = format!("expected a value, found {}", quoted(&word));
                let mut error = fatal(codes::SYNTAX_ERROR, place, message);
                error.hint = Some("strings need double quotes".to_owned());
                Err(error)
            }
        }
    }

    fn digits(&mut self, into: &mut String) -> Result_<()> {
        let before = into.len();
        while let Some(c) = self.peek().filter(char::is_ascii_digit) {
            into.push(c);
            self.bump();
        }
        if into.len() == before {
            Err(self.expected("a digit"))
        } else {
            Ok(())
        }
    }

    fn number(&mut self, place: impl Fn() -> SourceLocation) -> Result_<Value> {
        let mut raw = String::new();
        if self.peek() == Some('-') {
            raw.extend(self.bump());
        }
        if self.peek() == Some('0') {
            raw.extend(self.bump());
            if self.peek().is_some_and(|c| c.is_ascii_digit()) {
                return Err(self.wrong("a number cannot begin with a zero"));
            }
        } else {
            self.digits(&mut raw)?;
        }
        if self.peek() == Some('.') {
            raw.extend(self.bump());
            self.digits(&mut raw)?;
        }
        if let Some('e' | 'E') = self.peek() {
            raw.extend(self.bump());
            if let Some('+' | '-') = self.peek() {
                raw.extend(self.bump());
            }
            self.digits(&mut raw)?;
        }
        if number::as_f64(&raw).is_none() {
            let message = format!("the number {} is too large", quoted(&raw));
            return Err(fatal(codes::NUMBER_NOT_FINITE, place(), message));
        }
        Ok(Value::Number(raw.into()))
    }

    fn string(&mut self) -> Result_<String> {
        self.bump();
        let mut text = String::new();
        loop {
            match self.peek() {
                None => return Err(self.wrong("a string is not closed with a double quote")),
                Some('"') => {
                    self.bump();
                    return Ok(text);
                }
                Some('\\') => {
                    self.bump();
                    text.push(self.escape()?);
                }
                Some(c) if c < ' ' => {
                    let message = format!("the character {c:?} must be escaped in a string");
                    return Err(self.wrong(message));
                }
                Some(c) => {
                    text.push(c);
                    self.bump();
                }
            }
        }
    }

    fn escape(&mut self) -> Result_<char> {
        let escaped = match self.peek() {
            Some(c @ ('"' | '\\' | '/')) => c,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                self.bump();
                return self.unicode();
            }
            _ => return Err(self.expected("one of \" \\ / b f n r t u after the backslash")),
        };
        self.bump();
        Ok(escaped)
    }

    fn unicode(&mut self) -> Result_<char> {
        let first = self.hex()?;
        let code = match first {
            0xd800..=0xdbff => {
                if self.peek() != Some('\\') {
                    return Err(self.wrong("half a surrogate pair: the other half is missing"));
                }
                self.bump();
                if self.peek() != Some('u') {
                    return Err(self.wrong("half a surrogate pair: the other half is missing"));
                }
                self.bump();
                match self.hex()? {
                    low @ 0xdc00..=0xdfff => 0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00),
                    _ => return Err(self.wrong("the second half of a surrogate pair is not valid")),
                }
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| self.wrong("half of a surrogate pair is missing"))
    }

    fn hex(&mut self) -> Result_<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) else {
                return Err(self.expected("four hexadecimal digits after \\u"));
            };
            code = code * 16 + digit;
            self.bump();
        }
        Ok(code)
    }

    /// Reads a comma. If only the end of the list or object follows, reads that too; it is reported later.
    fn comma(&mut self, end: char) -> bool {
        let place = self.here();
        self.bump();
        self.space();
        let is_last = self.peek() == Some(end);
        if is_last {
            self.last_comma.get_or_insert(place);
            self.bump();
        }
        is_last
    }

    fn array(&mut self, pointer: &str, depth: usize) -> Result_<Value> {
        self.bump();
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(']') {
            self.bump();
            return Ok(Value::Array(items));
        }
        loop {
            self.space();
            items.push(self.value(format!("{pointer}/{}", items.len()), depth)?);
            self.space();
            match self.peek() {
                Some(',') if self.comma(']') => return Ok(Value::Array(items)),
                Some(',') => {}
                Some(']') => {
                    self.bump();
                    return Ok(Value::Array(items));
                }
                _ => return Err(self.expected("',' or ']'")),
            }
        }
    }

    fn object(&mut self, pointer: &str, depth: usize) -> Result_<Value> {
        self.bump();
        let mut members: Vec<Member> = Vec::new();
        let mut keys: HashSet<String> = HashSet::new();
        self.space();
        if self.peek() == Some('}') {
            self.bump();
            return Ok(Value::Object(members));
        }
        loop {
            self.space();
            let (key_line, key_column) = (self.line, self.column);
            if self.peek() != Some('"') {
                return Err(self.expected("a key in double quotes"));
            }
            let key = self.string()?;
            self.space();
            if self.peek() != Some(':') {
                return Err(self.expected("':'"));
            }
            self.bump();
            self.space();
            let value = self.value(child(pointer, &key), depth)?;
            let member = Member {
                key: key.as_str().into(),
                key_line,
                key_column,
                value,
            };
            if keys.contains(&key) {
                duplicate(self.diagnostics, &members, &member, pointer.to_owned());
            } else {
                keys.insert(key);
                members.push(member);
            }
            self.space();
            match self.peek() {
                Some(',') if self.comma('}') => return Ok(Value::Object(members)),
                Some(',') => {}
                Some('}') => {
                    self.bump();
                    return Ok(Value::Object(members));
                }
                _ => return Err(self.expected("',' or '}'")),
            }
        }
    }
}

/// Reports a duplicate key in the object at `pointer`. The first one counts.
pub(super) fn duplicate(
    diagnostics: &mut Diagnostics,
    members: &[Member],
    again: &Member,
    pointer: String,
) {
    if diagnostics.is_full() {
        return;
    }
    let message = format!("the key {} appears twice", quoted(&again.key));
    let first = members.iter().find(|member| member.key == again.key);
    // Pointers of members may not have been set yet.
    let pointer = child(&pointer, &again.key);
    let place = SourceLocation {
        pointer,
        ..again.key_place()
    };
    let diagnostic = diagnostics
        .error(codes::DUPLICATE_KEY, place, message)
        .hint("remove one of the two, or rename it");
    if let Some(first) = first {
        let pointer = diagnostic.pointer.clone();
        diagnostic.related(
            SourceLocation {
                pointer,
                ..first.key_place()
            },
            "first here",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> String {
        let mut diagnostics = Diagnostics::default();
        match parse(text, &Limits::default(), &mut diagnostics) {
            Ok(root) => root.to_data().to_string(),
            Err(error) => format!("{}:{} {}", error.line, error.column, error.message),
        }
    }

    #[test]
    fn values() {
        for (text, value) in [
            (
                r#" {"a":[1,-2.50,1e2,null,true,false,"x"],"b":{}} "#,
                r#"{"a":[1,-2.5,100,null,true,false,"x"],"b":{}}"#,
            ),
            (
                r#""\u00e9\ud83d\ude00\/\"\\\n""#,
                "\"\u{e9}\u{1f600}/\\\"\\\\\\n\"",
            ),
            (
                "[18446744073709551615, 12345678901234567890123]",
                "[18446744073709551615,1.2345678901234568e+22]",
            ),
            ("\t[\r\n\t1\t]\r\n", "[1]"),
            ("[]", "[]"),
        ] {
            assert_eq!(show(text), value, "{text}");
        }
        let long = format!("{{\"{}\": 1}}", "k".repeat(5000));
        assert!(show(&long).ends_with(":1}"));
    }

    #[test]
    fn comments_get_a_hint() {
        for text in [
            "{\n// x\n\"a\": 1}",
            "[1 /* x */]",
            // In YAML these would be unintended keys and values.
            "{\"a\": 1, // x\n \"b\": 2}",
            "{\"a\": // x\n 2}",
        ] {
            let parsed = crate::source::read(text.as_bytes(), &Limits::default());
            let hint = parsed
                .diagnostics
                .iter()
                .find_map(|found| found.hint.clone());
            assert!(
                hint.is_some_and(|hint| hint.contains("no comments")),
                "{text}"
            );
        }
    }

    #[test]
    fn errors_have_their_location() {
        for (text, error) in [
            (
                "[1,\n 2",
                "2:3 expected ',' or ']', but the document ends here",
            ),
            (
                "[1] 2",
                "1:5 nothing may follow the document's value, but '2' does",
            ),
            ("[01]", "1:3 a number cannot begin with a zero"),
            ("[1.]", "1:4 expected a digit, found ']'"),
            ("[nope]", "1:2 expected a value, found 'nope'"),
            (
                "[\"a\n\"]",
                "1:4 the character '\\n' must be escaped in a string",
            ),
            (
                "[\"\\x\"]",
                "1:4 expected one of \" \\ / b f n r t u after the backslash, found 'x'",
            ),
            (
                "[\"\\ud800\"]",
                "1:9 half a surrogate pair: the other half is missing",
            ),
            ("[\"\\udc00\"]", "1:9 half of a surrogate pair is missing"),
            (
                "[\"\\ud800\\u0041\"]",
                "1:15 the second half of a surrogate pair is not valid",
            ),
            ("[\"\u{e9}\" 1]", "1:6 expected ',' or ']', found '1'"),
            ("[1e999]", "1:2 the number '1e999' is too large"),
            ("\r\r[?", "3:2 expected a value, found '?'"),
        ] {
            assert_eq!(show(text), error, "{text}");
        }
    }

    #[test]
    fn a_trailing_comma_is_an_error_but_the_rest_is_read() {
        let mut found = Diagnostics::default();
        let root = parse("{\"a\": 1,}", &Limits::default(), &mut found).unwrap();
        assert!(root.get("a").is_some());
        let error = found.first_error().unwrap();
        assert_eq!(error.code, codes::SYNTAX_ERROR);
        assert_eq!(
            error.message,
            "a comma is followed by the end of its list or object"
        );
    }

    #[test]
    fn limits() {
        let deep = "[".repeat(100_000);
        assert!(show(&deep).contains("at most 64 levels"));
        let limits = Limits {
            nodes_max: 3,
            ..Limits::default()
        };
        let error = parse("[1,2,3]", &limits, &mut Diagnostics::default()).unwrap_err();
        assert_eq!(error.code, codes::TOO_MANY_VALUES);
    }
}
