//! Operands: literals, lists, calls, queries and parentheses.

use jaq_json::Val;

use super::ast::{Expr, FUNCTIONS, Function};
use super::functions;
use super::parse::Parser;
use crate::error::CompileError;
use crate::order;

type Result<T> = std::result::Result<T, CompileError>;

impl Parser<'_> {
    pub fn operand(&mut self) -> Result<Expr> {
        self.space();
        let rest = self.rest();
        let mut operand = match rest.chars().next() {
            Some('$' | '@') => Expr::Query(self.query()?),
            Some('(') => {
                self.at += 1;
                self.in_parentheses()?
            }
            Some('\'' | '"') => Expr::Literal(Val::from(self.text()?)),
            Some('[') => {
                self.at += 1;
                Expr::Literal(self.nested(Self::list)?)
            }
            Some('-' | '0'..='9') => Expr::Literal(self.number()?),
            _ => match (self.word(), self.method()) {
                (_, Some(name)) => self.call(name, None)?,
                ("true", _) => self.literal("true", Val::Bool(true)),
                ("false", _) => self.literal("false", Val::Bool(false)),
                ("null", _) => self.literal("null", Val::Null),
                _ => return Err(self.unexpected("a path, which begins with `$`,")),
            },
        };
        // `$.a.length()`, `$.a.keys().length()`.
        let mut links = 0;
        while matches!(operand, Expr::Query(_) | Expr::Call(..)) && self.rest().starts_with('.') {
            self.at += 1;
            let Some(name) = self.method() else {
                return Err(self.unexpected("the name of a function"));
            };
            links += 1;
            if links > 8 {
                return Err(self.fail("there are too many functions in a row"));
            }
            operand = self.call(name, Some(operand))?;
        }
        Ok(operand)
    }

    fn literal(&mut self, word: &str, value: Val) -> Expr {
        self.at += word.len();
        Expr::Literal(value)
    }

    /// A call, beginning at the function's name.
    fn call(&mut self, name: &str, of: Option<Expr>) -> Result<Expr> {
        let Some((_, function, least, most)) = FUNCTIONS.iter().find(|(known, ..)| *known == name)
        else {
            let known: Vec<&str> = FUNCTIONS.iter().map(|(known, ..)| *known).collect();
            let known = known.join(", ");
            return Err(self.fail(&format!("there is no function `{name}`, only {known}")));
        };
        let begin = self.at;
        self.at += name.len() + 1;
        let arguments = self.nested(|parser| parser.arguments(of))?;
        if !(*least..=*most).contains(&arguments.len()) {
            self.at = begin;
            let message = format!(
                "`{name}` takes {least} argument{}{}, and gets {}",
                if *least == 1 { "" } else { "s" },
                if least == most { "" } else { " or more" },
                arguments.len()
            );
            return Err(self.fail(&message));
        }
        if let (Function::Match | Function::Search, [_, Expr::Literal(pattern)]) =
            (function, arguments.as_slice())
        {
            let whole = *function == Function::Match;
            functions::matches(&Val::from(String::new()), pattern, whole)
                .map_err(|message| self.fail(&message))?;
        }
        Ok(Expr::Call(*function, arguments))
    }

    fn arguments(&mut self, of: Option<Expr>) -> Result<Vec<Expr>> {
        let mut arguments: Vec<Expr> = of.into_iter().collect();
        self.space();
        if self.take(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.operand()?);
            self.space();
            if self.take(")") {
                return Ok(arguments);
            }
            if !self.take(",") {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
    }

    /// A list of literals, beginning after its `[`.
    fn list(&mut self) -> Result<Val> {
        let mut items = Vec::new();
        self.space();
        if self.take("]") {
            return Ok(items.into_iter().collect());
        }
        loop {
            match self.operand()? {
                Expr::Literal(item) => items.push(item),
                _ => return Err(self.fail("a list in an expression may only hold literals")),
            }
            self.space();
            if self.take("]") {
                return Ok(items.into_iter().collect());
            }
            if !self.take(",") {
                return Err(self.unexpected("`,` or `]`"));
            }
        }
    }

    fn number(&mut self) -> Result<Val> {
        let rest = self.rest();
        let mut end = rest.len();
        for (at, c) in rest.char_indices() {
            let exponent = matches!(rest[..at].chars().last(), Some('e' | 'E'));
            let sign = matches!(c, '-' | '+') && (at == 0 || exponent);
            if !(c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E') || sign) {
                end = at;
                break;
            }
        }
        let json = serde_json::from_str::<serde_json::Number>(&rest[..end]).is_ok();
        let number = order::parse(&rest[..end]).filter(|_| json);
        let number = number.ok_or_else(|| self.unexpected("a number"))?;
        self.at += end;
        Ok(Val::Num(order::bounded(number)))
    }

    /// The pattern after `=~`: `/pattern/flags`, a text, or a path to one.
    pub fn pattern(&mut self) -> Result<Expr> {
        if !self.rest().starts_with('/') {
            let pattern = self.operand()?;
            self.check_pattern(&pattern)?;
            return Ok(pattern);
        }
        let rest = self.rest();
        let mut escaped = false;
        let end = rest[1..].find(|c| {
            let end = c == '/' && !escaped;
            escaped = c == '\\' && !escaped;
            end
        });
        let Some(end) = end else {
            return Err(self.fail("the regular expression has no closing `/`"));
        };
        let body = rest[1..=end].replace("\\/", "/");
        let after = &rest[end + 2..];
        let flags = after.find(|c: char| !c.is_ascii_alphabetic());
        let flags = &after[..flags.unwrap_or(after.len())];
        if let Some(flag) = flags.chars().find(|flag| !"ismx".contains(*flag)) {
            let message = format!("there is no flag `{flag}` here, only `i`, `m`, `s` and `x`");
            return Err(self.fail(&message));
        }
        let pattern = match flags {
            "" => body,
            flags => format!("(?{flags}){body}"),
        };
        let pattern = Expr::Literal(Val::from(pattern));
        self.check_pattern(&pattern)?;
        self.at += end + 2 + flags.len();
        Ok(pattern)
    }

    fn check_pattern(&self, pattern: &Expr) -> Result<()> {
        match pattern {
            Expr::Literal(pattern) => functions::matches(&Val::from(String::new()), pattern, true)
                .map(drop)
                .map_err(|message| self.fail(&message)),
            _ => Ok(()),
        }
    }

    /// A text in single or double quotes.
    pub fn text(&mut self) -> Result<String> {
        let rest = self.rest();
        let mut chars = rest.char_indices();
        let quote = chars.next().map_or('\'', |(_, quote)| quote);
        let mut text = String::new();
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.at += at + 1;
                    return Ok(text);
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('b') => text.push('\u{8}'),
                    Some('f') => text.push('\u{c}'),
                    Some('n') => text.push('\n'),
                    Some('r') => text.push('\r'),
                    Some('t') => text.push('\t'),
                    Some('u') => {
                        let (c, length) = unicode(&rest[at..])
                            .ok_or_else(|| self.fail("a `\\u` needs four hexadecimal digits"))?;
                        text.push(c);
                        // `\u` has been read already.
                        chars.nth(length - 3);
                    }
                    Some(c @ ('/' | '\\' | '\'' | '"')) => text.push(c),
                    Some(c) => return Err(self.fail(&format!("there is no escape `\\{c}`"))),
                    None => break,
                },
                c => text.push(c),
            }
        }
        Err(self.fail(&format!("the string has no closing `{quote}`")))
    }
}

/// The character of a `\uXXXX` escape or of a pair of them, and its length.
fn unicode(text: &str) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
    };
    let first = unit(0)?;
    if let Some(c) = char::from_u32(u32::from(first)) {
        return Some((c, 6));
    }
    let c = char::decode_utf16([first, unit(6)?]).next()?.ok()?;
    Some((c, 12))
}
