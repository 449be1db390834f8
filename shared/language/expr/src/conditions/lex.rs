//! Converts text to tokens, one at a time.

use jaq_json::{Num, Val};

use super::Dialect;
use crate::order;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'s> {
    End,
    Word(&'s str),
    Number(Val),
    Text(String),
    Sign(&'static str),
}

/// The token at a position and its end; or the position of an error and its reason.
pub(super) type Lexed<'s> = Result<(Token<'s>, usize), (usize, String)>;

/// The position of the next token.
pub(super) fn space(source: &str, mut at: usize, dialect: Dialect) -> usize {
    let comment = match dialect {
        Dialect::Spel => None,
        Dialect::Jexl => Some("##"),
        Dialect::Cel => Some("//"),
    };
    loop {
        let rest = &source[at..];
        at += rest.len() - rest.trim_start().len();
        match comment {
            Some(sign) if source[at..].starts_with(sign) => {
                let rest = &source[at..];
                at += rest.find('\n').unwrap_or(rest.len());
            }
            _ => return at,
        }
    }
}

/// The token at a position where there is no space.
pub(super) fn token(source: &str, at: usize, dialect: Dialect) -> Lexed<'_> {
    let rest = &source[at..];
    let Some(first) = rest.chars().next() else {
        return Ok((Token::End, at));
    };
    let raw = dialect == Dialect::Cel && (rest.starts_with("r'") || rest.starts_with("r\""));
    match first {
        '\'' | '"' => text(source, at, dialect, false),
        _ if raw => text(source, at + 1, dialect, true),
        '0'..='9' => number(source, at, dialect),
        '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit())
            && starts_operand(source, at) =>
        {
            number(source, at, dialect)
        }
        '~' if dialect == Dialect::Jexl && rest.starts_with("~/") => pattern(source, at),
        c if c.is_alphabetic() || c == '_' => {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
            let end = end.unwrap_or(rest.len());
            Ok((Token::Word(&rest[..end]), at + end))
        }
        _ => {
            let mut signs = dialect.signs().iter();
            let sign = signs.find(|sign| rest.starts_with(**sign) && fits(rest, sign));
            match sign {
                Some(sign) => Ok((Token::Sign(sign), at + sign.len())),
                None => Err((at, format!("there is no `{first}` in {}", dialect.name()))),
            }
        }
    }
}

/// `a ?.5 : 1` is a conditional expression.
fn fits(rest: &str, sign: &str) -> bool {
    sign != "?." || !rest[2..].starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a number with a leading point can begin here. It can't after something that has members.
fn starts_operand(source: &str, at: usize) -> bool {
    let before = source[..at].chars().next_back();
    !before.is_some_and(|c| {
        c.is_alphanumeric() || matches!(c, '_' | ')' | ']' | '}' | '\'' | '"' | '.')
    })
}

fn number(source: &str, at: usize, dialect: Dialect) -> Lexed<'_> {
    let rest = &source[at..];
    let digits = |from: usize| {
        let end = rest[from..].find(|c: char| !c.is_ascii_digit());
        from + end.unwrap_or(rest.len() - from)
    };
    let hex = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X"));
    let (value, mut end) = if let Some(hex) = hex {
        let end = hex
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(hex.len());
        let value = isize::from_str_radix(&hex[..end], 16).ok().map(Num::Int);
        (value, 2 + end)
    } else {
        let mut end = digits(0);
        if rest[end..].starts_with('.') && rest[end + 1..].starts_with(|c: char| c.is_ascii_digit())
        {
            end = digits(end + 1);
        }
        if rest[end..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
            let exponent = digits(end + 1 + sign);
            if exponent > end + 1 + sign {
                end = exponent;
            }
        }
        let value = order::parse(&rest[..end]).map(order::bounded);
        (value.filter(|value| order::float(value).is_finite()), end)
    };
    let float = |value: Num| Num::Float(order::float(&value));
    let (value, suffix) = match (dialect, rest[end..].chars().next()) {
        (Dialect::Spel, Some('L' | 'l')) => (value, 1),
        (Dialect::Jexl, Some('L' | 'l' | 'H' | 'h')) => (value, 1),
        (Dialect::Jexl, Some('B' | 'b')) => (value.map(float), 1),
        (Dialect::Spel | Dialect::Jexl, Some('F' | 'f' | 'D' | 'd')) => (value.map(float), 1),
        (Dialect::Cel, Some('u' | 'U')) => (value, 1),
        _ => (value, 0),
    };
    end += suffix;
    let joined = rest[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    match value.filter(|_| !joined) {
        Some(value) => Ok((Token::Number(Val::Num(value)), at + end)),
        None => Err((at, "this is not a number".to_owned())),
    }
}

/// A text, beginning at its quote.
fn text(source: &str, at: usize, dialect: Dialect, raw: bool) -> Lexed<'_> {
    let rest = &source[at..];
    let quote = rest.chars().next().unwrap_or('\'');
    let triple = dialect == Dialect::Cel && (rest.starts_with("'''") || rest.starts_with("\"\"\""));
    let quotes = if triple { 3 } else { 1 };
    let close = &rest[..quotes];
    let unclosed = || (at, format!("the string has no closing `{close}`"));
    let mut out = String::new();
    let mut here = quotes;
    loop {
        let left = &rest[here..];
        let c = left.chars().next().ok_or_else(unclosed)?;
        // SpEL escapes a quote by doubling it.
        if dialect == Dialect::Spel && c == quote && left[1..].starts_with(quote) {
            out.push(quote);
            here += 2;
        } else if left.starts_with(close) {
            return Ok((Token::Text(out), at + here + quotes));
        } else if c == '\\' && !raw && dialect != Dialect::Spel {
            here += escape(&left[1..], &mut out, dialect).map_err(|why| (at + here, why))? + 1;
        } else if c == '\n' && dialect == Dialect::Cel && !triple {
            return Err(unclosed());
        } else {
            out.push(c);
            here += c.len_utf8();
        }
    }
}

/// Reads the characters after a backslash, and returns their length.
fn escape(rest: &str, out: &mut String, dialect: Dialect) -> Result<usize, String> {
    let c = rest.chars().next().unwrap_or(' ');
    let plain = match c {
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'a' if dialect == Dialect::Cel => Some('\u{7}'),
        'v' if dialect == Dialect::Cel => Some('\u{b}'),
        '\\' | '\'' | '"' | '`' | '?' | '/' => Some(c),
        _ => None,
    };
    if let Some(plain) = plain {
        out.push(plain);
        return Ok(1);
    }
    let digits = match c {
        'u' => 4,
        'x' if dialect == Dialect::Cel => 2,
        'U' if dialect == Dialect::Cel => 8,
        // JEXL keeps the backslash, because patterns are written in this way.
        _ if dialect == Dialect::Jexl => {
            out.push('\\');
            return Ok(0);
        }
        _ => return Err(format!("there is no escape `\\{c}`")),
    };
    let hex = rest.get(1..1 + digits);
    let code = hex.filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    let code = code.and_then(|hex| u32::from_str_radix(hex, 16).ok());
    match code.and_then(char::from_u32) {
        Some(c) => {
            out.push(c);
            Ok(1 + digits)
        }
        None => Err(format!(
            "`\\{c}` needs {digits} hexadecimal digits of a character"
        )),
    }
}

/// `~/pattern/` in JEXL.
fn pattern(source: &str, at: usize) -> Lexed<'_> {
    let rest = &source[at + 2..];
    let mut escaped = false;
    let end = rest.find(|c| {
        let end = c == '/' && !escaped;
        escaped = c == '\\' && !escaped;
        end
    });
    match end {
        Some(end) => Ok((
            Token::Text(rest[..end].replace("\\/", "/")),
            at + 2 + end + 1,
        )),
        None => Err((at, "the regular expression has no closing `/`".to_owned())),
    }
}
