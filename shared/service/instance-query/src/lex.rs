//! A query as words and signs, each with its place.

use crate::error::QueryError;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    /// Letters, digits and the other characters of instants, versions and ids.
    Word(String),
    /// Between quotes.
    Text(String),
    /// `@name`
    Attribute(String),
    /// One of [`SIGNS`].
    Sign(&'static str),
}

/// A token, where it begins, and how long it is, in characters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Placed {
    pub token: Token,
    pub at: usize,
    pub length: usize,
}

/// Longer ones first: `<=` isn't `<`.
const SIGNS: [&str; 10] = ["!=", "^=", "<=", ">=", "=", "<", ">", "(", ")", ","];

pub(crate) fn tokens(text: &str) -> Result<Vec<Placed>, QueryError> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&first) = chars.get(at) {
        let begun = at;
        let token = if first.is_whitespace() {
            at += 1;
            continue;
        } else if first == '"' || first == '\'' {
            let (text, end) = quoted(&chars, at)?;
            at = end;
            Token::Text(text)
        } else if let Some(sign) = sign(&chars[at..]) {
            at += sign.len();
            Token::Sign(sign)
        } else if first == '@' {
            at += 1;
            let name = word(&chars, &mut at);
            if name.is_empty() {
                let message = "expected the name of a search attribute after '@'";
                return Err(QueryError::new(begun, 1, message));
            }
            Token::Attribute(name)
        } else if is_of_word(first) {
            Token::Word(word(&chars, &mut at))
        } else {
            let message = format!("'{first}' is not allowed here; put strings in quotes");
            return Err(QueryError::new(begun, 1, message));
        };
        tokens.push(Placed {
            token,
            at: begun,
            length: at - begun,
        });
    }
    Ok(tokens)
}

fn is_of_word(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-' | '+' | '.' | ':' | '/')
}

fn word(chars: &[char], at: &mut usize) -> String {
    let found: String = chars[*at..]
        .iter()
        .take_while(|char| is_of_word(**char))
        .collect();
    *at += found.chars().count();
    found
}

fn sign(rest: &[char]) -> Option<&'static str> {
    let begins = |sign: &&&str| {
        let mut rest = rest.iter();
        sign.chars().all(|char| rest.next() == Some(&char))
    };
    SIGNS.iter().find(begins).copied()
}

/// The text, and the place after it. A backslash escapes a quote or another backslash.
fn quoted(chars: &[char], begun: usize) -> Result<(String, usize), QueryError> {
    let quote = chars[begun];
    let mut text = String::new();
    let mut at = begun + 1;
    while let Some(&char) = chars.get(at) {
        match char {
            '\\' => match chars.get(at + 1) {
                Some(&next) if next == quote || next == '\\' => {
                    text.push(next);
                    at += 1;
                }
                _ => {
                    let message = "a backslash is only allowed before a quote or another backslash; write it twice";
                    return Err(QueryError::new(at, 1, message));
                }
            },
            _ if char == quote => return Ok((text, at + 1)),
            _ => text.push(char),
        }
        at += 1;
    }
    let message = format!("this string has no closing {quote}");
    Err(QueryError::new(begun, chars.len() - begun, message))
}
