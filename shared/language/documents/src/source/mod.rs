//! Parses JSON and YAML text to a tree that has the location of each value.
//!
//! Two parsers produce the same tree: our own strict JSON parser, because YAML parsers accept texts that aren't JSON
//! and limit the length of keys; and a parser for YAML 1.2 events. Nothing here knows the language. Every input results
//! in a tree or in a finding with a location. Limits bound the growth of aliases.

mod budget;
mod edit;
mod json;
mod node;
mod number;
mod scalar;
mod yaml;

pub use node::{Member, Node, NodeKind};
pub use yaml::{Notation, Written, written};

use crate::codes;
use crate::diagnostic::{Diagnostic, Diagnostics, SourceLocation};

/// The limits for a document. A larger one is rejected with a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The length of the text.
    pub bytes_max: usize,
    /// The nesting of objects and lists.
    pub depth_max: usize,
    /// The number of values, after aliases were replaced by their values.
    pub nodes_max: usize,
    /// The bytes of all texts, keys and pointers, after aliases were replaced.
    pub expanded_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            bytes_max: 1 << 20,
            depth_max: 64,
            nodes_max: 200_000,
            expanded_bytes_max: 64 << 20,
        }
    }
}

/// The outcome of reading a document.
#[derive(Debug)]
pub struct Parsed {
    /// The text without a byte order mark. Lines and columns refer to it.
    pub text: String,
    /// `None` if the text has no tree. A tree may come with errors (duplicate keys).
    pub root: Option<Node>,
    pub diagnostics: Diagnostics,
}

/// The tree, or the first error. [`read`] returns all findings.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Node, Diagnostic> {
    let parsed = read(bytes, limits);
    match (parsed.diagnostics.first_error().cloned(), parsed.root) {
        (None, Some(root)) => Ok(root),
        (Some(error), _) => Err(error),
        (None, None) => Err(empty()),
    }
}

/// Reads JSON or YAML. A text that begins with `{` or `[` is read as JSON if possible.
pub fn read(bytes: &[u8], limits: &Limits) -> Parsed {
    let mut diagnostics = Diagnostics::default();
    let text = match decode(bytes, limits) {
        Ok(text) => text,
        Err(diagnostic) => {
            diagnostics.push(*diagnostic);
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(limits.bytes_max)]);
            return Parsed {
                text: text.into_owned(),
                root: None,
                diagnostics,
            };
        }
    };
    let root = if text.trim_start().starts_with(['{', '[']) {
        // A YAML document may also begin with a brace. If it is neither, JSON's finding is clearer.
        let mut as_json = Diagnostics::default();
        match json::parse(&text, limits, &mut as_json) {
            Ok(root) => {
                diagnostics = as_json;
                Some(root)
            }
            Err(json_error)
                if json_error.code != codes::SYNTAX_ERROR
                    // YAML would read a JavaScript comment as a part of the next key.
                    || json_error.hint.as_deref() == Some(json::NO_COMMENTS) =>
            {
                diagnostics.push(*json_error);
                None
            }
            Err(json_error) => match yaml::parse(&text, limits, &mut diagnostics) {
                Ok(root) => Some(root),
                Err(yaml_error) if yaml_error.code != codes::SYNTAX_ERROR => {
                    diagnostics.push(*yaml_error);
                    None
                }
                Err(_) => {
                    diagnostics = Diagnostics::default();
                    diagnostics.push(*json_error);
                    None
                }
            },
        }
    } else {
        match yaml::parse(&text, limits, &mut diagnostics) {
            Ok(root) => Some(root),
            Err(error) => {
                diagnostics.push(*error);
                None
            }
        }
    };
    Parsed {
        text,
        root,
        diagnostics,
    }
}

/// Diagnostics are large, so parsers return them boxed.
type Result_<T> = Result<T, Box<Diagnostic>>;

fn fatal(code: codes::Code, place: SourceLocation, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, place, message))
}

fn empty() -> Diagnostic {
    Diagnostic::error(
        codes::EMPTY_DOCUMENT,
        SourceLocation::default(),
        "the document is empty",
    )
    .with_hint(
        "a workflow definition is an object with at least 'document' and 'do', or in the older editions 'id', \
         'specVersion' and 'states'",
    )
}

fn decode(bytes: &[u8], limits: &Limits) -> Result_<String> {
    if bytes.len() > limits.bytes_max {
        let message = format!(
            "the document has {} bytes, and at most {} are allowed",
            bytes.len(),
            limits.bytes_max
        );
        let hint = "move large constants or schemas into separate documents";
        let error = Diagnostic::error(
            codes::DOCUMENT_TOO_LARGE,
            SourceLocation::default(),
            message,
        );
        return Err(Box::new(error.with_hint(hint)));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        let message = "the document is UTF-16, and must be UTF-8";
        let error = Diagnostic::error(codes::NOT_UTF8, SourceLocation::default(), message);
        return Err(Box::new(error.with_hint("save it as UTF-8")));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let (mut line, mut column) = (1, 1);
        for c in before.chars() {
            (line, column) = if c == '\n' {
                (line + 1, 1)
            } else {
                (line, column + 1)
            };
        }
        let place = SourceLocation {
            pointer: String::new(),
            line,
            column,
        };
        let error = Diagnostic::error(codes::NOT_UTF8, place, "the document is not valid UTF-8");
        Box::new(error.with_hint("save it as UTF-8"))
    })?;
    if text.trim().is_empty() {
        return Err(Box::new(empty()));
    }
    Ok(text.to_owned())
}

/// A text in quotes, shortened if it is long.
pub(crate) fn quoted(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('\u{2026}');
    }
    format!("'{short}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `code line:column pointer` of each finding.
    fn findings(bytes: &[u8]) -> Vec<String> {
        let parsed = read(bytes, &Limits::default());
        let rows = parsed.diagnostics.iter();
        rows.map(|d| format!("{} {}:{} {}", d.code, d.line, d.column, d.pointer))
            .collect()
    }

    #[test]
    fn encodings_and_empty_files() {
        assert_eq!(findings(b""), ["empty-document 1:1 "]);
        assert_eq!(findings(b" \r\n\t\n"), ["empty-document 1:1 "]);
        assert_eq!(findings(b"# only a comment\n"), ["empty-document 1:1 "]);
        assert_eq!(findings(b"---\n"), ["empty-document 1:1 "]);
        assert_eq!(findings(b"\xef\xbb\xbf"), ["empty-document 1:1 "]);
        assert_eq!(findings(b"a: 1\nb: \xff"), ["not-utf8 2:4 "]);
        assert_eq!(findings(b"\xff\xfea\0"), ["not-utf8 1:1 "]);
        assert_eq!(
            findings(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n"),
            Vec::<String>::new()
        );
        let root = parse(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n", &Limits::default()).unwrap();
        assert_eq!(root.to_data().to_string(), r#"{"a":1,"b":2}"#);
        assert_eq!(root.get("b").map(|b| (b.line(), b.column())), Some((2, 4)));
    }

    #[test]
    fn size_is_limited() {
        let limits = Limits {
            bytes_max: 10,
            ..Limits::default()
        };
        let error = parse(b"a: 12345678", &limits).unwrap_err();
        assert_eq!(error.code, codes::DOCUMENT_TOO_LARGE);
    }

    #[test]
    fn braces_may_be_yaml() {
        let root = parse(b"{a: [1, two,], b: 'x'}", &Limits::default()).unwrap();
        assert_eq!(root.to_data().to_string(), r#"{"a":[1,"two"],"b":"x"}"#);
        let root = parse(b"{\"a\": [1,], b: 2}", &Limits::default()).unwrap();
        assert_eq!(root.to_data().to_string(), r#"{"a":[1],"b":2}"#);
        assert_eq!(findings(b"{\"a\": [1,], \"b\": 2,}"), ["syntax-error 1:9 "]);
        assert_eq!(findings(b"{\"a\": 1,\n \"b\" 2}"), ["syntax-error 2:6 "]);
        assert_eq!(findings(b"{\"a\": 1, \"a\": 2}"), ["duplicate-key 1:10 /a"]);
    }

    #[test]
    fn mutated_documents_never_panic() {
        let seeds: [&[u8]; 3] = [
            b"a: &x [1, 2.5, {b: 'c'}]\nd:\n  <<: {e: ~}\n  f: *x\n? g\n: |\n  text\n",
            br#"{"a": [1, -2.5e3, "\u00e9\ud83d\ude00\/"], "b": {"c": null, "d": true}}"#,
            b"- >-\n  folded\n- !!str 1\n- 0x1F\n- \"\\x41\"\n--- \n",
        ];
        let bytes = b"{}[]:,&*!|>'\"%@`#-?~<\\\n\t \x00\xff0eux";
        let mut state = 0x2545_f491_4f6c_dd1du64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        for round in 0..6000 {
            let mut text = seeds[round % 3].to_vec();
            for _ in 0..=random(4) {
                let at = random(text.len());
                match random(3) {
                    0 => text[at] = bytes[random(bytes.len())],
                    1 => text.insert(at, bytes[random(bytes.len())]),
                    _ => drop(text.remove(at)),
                }
            }
            let parsed = read(&text, &Limits::default());
            assert!(
                parsed.root.is_some() || parsed.diagnostics.has_errors(),
                "{text:?}"
            );
        }
    }
}
