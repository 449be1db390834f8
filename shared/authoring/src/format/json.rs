//! JSON with an indentation of two spaces. An object or list stays on one line if it fits and its author did not break
//! the line after its bracket. Texts and numbers stay as written.
//!
//! Deliberately not a full parser, because the text has been parsed before and is well-formed.

use super::{Error, WIDTH};

enum Value<'t> {
    Scalar(&'t str),
    /// An object or list: its brackets, and its members, with keys in an object.
    Group {
        brackets: (char, char),
        is_broken: bool,
        members: Vec<(Option<&'t str>, Value<'t>)>,
    },
}

pub fn print(text: &str) -> Result<String, Error> {
    let mut tokens = Tokens { rest: text };
    let value = read(&mut tokens).ok_or_else(|| Error::Unfaithful("broken JSON".to_owned()))?;
    let mut out = String::with_capacity(text.len() * 2);
    write(&value, 0, 0, true, &mut out);
    out.push('\n');
    Ok(out)
}

struct Tokens<'t> {
    rest: &'t str,
}

impl<'t> Tokens<'t> {
    /// Reads the next token: a symbol, a text with its quotes, a number or a word.
    fn take(&mut self) -> Option<&'t str> {
        self.rest = self.rest.trim_start();
        let length = match self.rest.chars().next()? {
            '"' => {
                let mut escaped = false;
                let end = self.rest[1..].find(|c| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                })?;
                end + 2
            }
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => {
                let ends = |c: char| c.is_whitespace() || "{}[],:\"".contains(c);
                self.rest.find(ends).unwrap_or(self.rest.len())
            }
        };
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(token)
    }

    /// Whether the line ends here.
    fn breaks(&self) -> bool {
        let blank = self.rest.len() - self.rest.trim_start().len();
        self.rest[..blank].contains('\n')
    }
}

fn read<'t>(tokens: &mut Tokens<'t>) -> Option<Value<'t>> {
    let token = tokens.take()?;
    let brackets = match token {
        "{" => ('{', '}'),
        "[" => ('[', ']'),
        scalar => return Some(Value::Scalar(scalar)),
    };
    let is_broken = tokens.breaks();
    let mut members = Vec::new();
    loop {
        let ahead = Tokens { rest: tokens.rest }.take()?;
        match ahead {
            "}" | "]" => {
                tokens.take()?;
                break;
            }
            "," => {
                tokens.take()?;
            }
            key if brackets.0 == '{' => {
                tokens.take()?;
                tokens.take()?;
                members.push((Some(key), read(tokens)?));
            }
            _ => members.push((None, read(tokens)?)),
        }
    }
    Some(Value::Group {
        brackets,
        is_broken,
        members,
    })
}

/// The line already has `used` characters. An outermost object takes several lines.
fn write(value: &Value<'_>, depth: usize, used: usize, outermost: bool, out: &mut String) {
    let Value::Group {
        brackets, members, ..
    } = value
    else {
        return in_one_line(value, out);
    };
    let mut line = String::new();
    in_one_line(value, &mut line);
    // One more for a comma that may follow.
    let fits = used + line.chars().count() < WIDTH;
    let is_object = brackets.0 == '{';
    if members.is_empty() || fits && !has_break(value) && !(outermost && is_object) {
        out.push_str(&line);
        return;
    }
    let indent = 2 * (depth + 1);
    out.push(brackets.0);
    for (index, (key, member)) in members.iter().enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        out.extend(std::iter::repeat_n(' ', indent));
        let mut used = indent;
        if let Some(key) = key {
            out.push_str(key);
            out.push_str(": ");
            used += key.chars().count() + 2;
        }
        write(member, depth + 1, used, false, out);
    }
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', 2 * depth));
    out.push(brackets.1);
}

fn has_break(value: &Value<'_>) -> bool {
    match value {
        Value::Scalar(_) => false,
        Value::Group {
            is_broken, members, ..
        } => {
            !members.is_empty()
                && (*is_broken || members.iter().any(|(_, member)| has_break(member)))
        }
    }
}

fn in_one_line(value: &Value<'_>, out: &mut String) {
    match value {
        Value::Scalar(text) => out.push_str(text),
        Value::Group {
            brackets, members, ..
        } => {
            out.push(brackets.0);
            for (index, (key, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                if let Some(key) = key {
                    out.push_str(key);
                    out.push_str(": ");
                }
                in_one_line(member, out);
            }
            out.push(brackets.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts() {
        let long = format!("[{}]", ["\"0123456789\""; 12].join(","));
        let long_shown = long
            .replace('[', "[\n  ")
            .replace(',', ",\n  ")
            .replace(']', "\n]\n");
        for (text, shown) in [
            ("{}", "{}\n"),
            ("{ }", "{}\n"),
            ("[1,[ ],{}]", "[1, [], {}]\n"),
            ("{\"a\":{\"b\":1}}", "{\n  \"a\": {\"b\": 1}\n}\n"),
            (
                "{\"a\":{\n\"b\":1}}",
                "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n",
            ),
            (
                "{\"a\":[{\n\"b\":1}]}",
                "{\n  \"a\": [\n    {\n      \"b\": 1\n    }\n  ]\n}\n",
            ),
            ("[\"a\\\\\",\"\\\"]\"]", "[\"a\\\\\", \"\\\"]\"]\n"),
            (&long, &long_shown),
        ] {
            assert_eq!(print(text).unwrap(), shown, "{text}");
        }
    }
}
