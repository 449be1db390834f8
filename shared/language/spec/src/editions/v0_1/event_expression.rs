//! Event expressions: trigger names with `and`, `or`, `not`, `&&`, `||`, `!` and parentheses
//! (section "Event State: Event Definitions", docs/language.md#decision-39).
//!
//! A name may contain spaces, with or without quotes: a text that is exactly a trigger's name is read as that name.
//! Documents also contain `name eq 'NAME'` and `trigger.equals('NAME')`, which mean the same as the name.

use swirl_documents::codes;
use swirl_documents::source::Node;
use swirl_model::workflow::{EventId, Wait};

use super::Reader;
use crate::build::ctx::did_you_mean;

/// The maximum nesting of parentheses and `not`.
const DEPTH_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Open,
    Close,
    And,
    Or,
    Not,
    Name(String),
}

/// The events in an expression, and the condition under which it holds.
pub(super) struct Expression {
    pub events: Vec<EventId>,
    pub wait: Wait,
}

impl Expression {
    /// Whether it holds before any event has arrived.
    pub fn holds_at_once(&self) -> bool {
        self.wait.holds(&|_| false)
    }
}

impl Reader<'_, '_> {
    pub fn event_expression(&mut self, node: &Node) -> Option<Expression> {
        let text = self.ctx.string(node, "'event-expression'")?;
        let names: Vec<String> = self.ctx.names.events.names().map(str::to_owned).collect();
        let parsed = tokens(&text, &names).and_then(|tokens| {
            let mut parser = Parser {
                tokens,
                at: 0,
                names: Vec::new(),
            };
            let wait = parser.whole()?;
            Ok((parser.names, wait))
        });
        let (used, wait) = match parsed {
            Ok(parsed) => parsed,
            Err(problem) => {
                let message = format!("the event expression '{text}' cannot be read: {problem}");
                let hint = "write names of triggers with 'and', 'or', 'not' and parentheses; put a name with spaces in quotes".to_owned();
                self.ctx
                    .error(node, codes::BAD_EVENT_EXPRESSION, message, hint);
                return None;
            }
        };
        let mut events = Vec::with_capacity(used.len());
        for name in used {
            events.push(self.trigger_named(node, &name));
        }
        let events = events.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Expression { events, wait })
    }

    fn trigger_named(&mut self, node: &Node, name: &str) -> Option<EventId> {
        let events = &self.ctx.names.events;
        let found = events.get(name).map(|entry| entry.id);
        if found.is_none() && !events.unread {
            let hint = did_you_mean(name, events.names()).unwrap_or_else(|| {
                format!("define '{name}' in 'trigger-defs', or use a name that is there")
            });
            let message = format!("there is no trigger '{name}'");
            self.ctx.error(node, codes::UNKNOWN_EVENT, message, hint);
        }
        found
    }
}

fn tokens(text: &str, names: &[String]) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if let Some(after) = after_null_check(rest) {
            rest = after;
            continue;
        }
        let (token, length) = match first {
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            '!' => (Token::Not, 1),
            '&' | '|' => {
                if rest.chars().nth(1) != Some(first) {
                    return Err(format!("a single '{first}'"));
                }
                let token = if first == '&' { Token::And } else { Token::Or };
                (token, 2)
            }
            '=' => {
                return Err("an '=' that doesn't follow 'name', 'trigger' or 'event'".to_owned());
            }
            '\'' | '"' => quoted(rest)?,
            _ => word(rest, names)?,
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn quoted(text: &str) -> Result<(Token, usize), String> {
    let quote = &text[..1];
    let inner = &text[1..];
    let end = inner.find(quote).ok_or("a quote is never closed")?;
    Ok((Token::Name(inner[..end].to_owned()), end + 2))
}

/// The text after `trigger != null &&`, which always holds, because an event that arrived has a trigger.
fn after_null_check(text: &str) -> Option<&str> {
    let subjects = ["name", "trigger", "event"];
    let after = subjects.iter().find_map(|word| text.strip_prefix(word))?;
    let after = after.trim_start().strip_prefix("!=")?.trim_start();
    let after = after.strip_prefix("null")?.trim_start();
    let and = ["&&", "and ", "AND ", "And "];
    let after = and.iter().find_map(|word| after.strip_prefix(word))?;
    Some(after.trim_start())
}

/// The longest matching trigger name, or else an operator or an unknown name.
fn word(text: &str, names: &[String]) -> Result<(Token, usize), String> {
    let fits = |name: &&String| {
        let rest = text.strip_prefix(name.as_str());
        !name.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(is_border))
    };
    if let Some(name) = names.iter().filter(fits).max_by_key(|name| name.len()) {
        return Ok((Token::Name(name.clone()), name.len()));
    }
    let end = text.find(is_border).unwrap_or(text.len());
    let found = &text[..end];
    if let Some((name, length)) = wordy(text, found)? {
        return Ok((Token::Name(name), length));
    }
    let token = match found.to_ascii_lowercase().as_str() {
        "and" => Token::And,
        "or" => Token::Or,
        "not" => Token::Not,
        _ => Token::Name(found.to_owned()),
    };
    Ok((token, end))
}

fn is_border(c: char) -> bool {
    c.is_whitespace() || matches!(c, '(' | ')' | '!' | '&' | '|' | '\'' | '"' | '=')
}

/// `name eq 'NAME'`, `trigger == 'NAME'`, `trigger.equals('NAME')`: returns the name and the end of this form.
fn wordy(text: &str, word: &str) -> Result<Option<(String, usize)>, String> {
    let subject = word.strip_suffix(".equals").unwrap_or(word);
    if !matches!(subject, "name" | "trigger" | "event") {
        return Ok(None);
    }
    let after = text[word.len()..].trim_start();
    let called = word.ends_with(".equals");
    let openers: &[&str] = if called { &["("] } else { &["==", "=", "eq "] };
    let Some(after) = openers.iter().find_map(|open| after.strip_prefix(open)) else {
        return Ok(None);
    };
    let after = after.trim_start();
    if !after.starts_with(['\'', '"']) {
        return Ok(None);
    }
    let (Token::Name(name), length) = quoted(after)? else {
        return Ok(None);
    };
    let mut rest = &after[length..];
    if called {
        let closed = rest.trim_start().strip_prefix(')');
        rest = closed.ok_or("'equals(' is never closed")?;
    }
    Ok(Some((name, text.len() - rest.len())))
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    /// The names so far, without duplicates.
    names: Vec<String>,
}

impl Parser {
    fn whole(&mut self) -> Result<Wait, String> {
        let wait = self.any(0)?;
        match self.tokens.get(self.at) {
            None => Ok(wait),
            Some(Token::Close) => Err("a ')' that nothing opened".to_owned()),
            Some(_) => Err("two names with no 'and' or 'or' between them".to_owned()),
        }
    }

    fn takes(&mut self, token: &Token) -> bool {
        let found = self.tokens.get(self.at) == Some(token);
        self.at += usize::from(found);
        found
    }

    fn any(&mut self, depth: usize) -> Result<Wait, String> {
        let mut list = vec![self.all(depth)?];
        while self.takes(&Token::Or) {
            list.push(self.all(depth)?);
        }
        Ok(single(list, Wait::Any))
    }

    fn all(&mut self, depth: usize) -> Result<Wait, String> {
        let mut list = vec![self.one(depth)?];
        while self.takes(&Token::And) {
            list.push(self.one(depth)?);
        }
        Ok(single(list, Wait::All))
    }

    fn one(&mut self, depth: usize) -> Result<Wait, String> {
        if depth > DEPTH_MAX {
            return Err(format!("it is nested more than {DEPTH_MAX} deep"));
        }
        if self.takes(&Token::Not) {
            return Ok(Wait::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.takes(&Token::Open) {
            let wait = self.any(depth + 1)?;
            if !self.takes(&Token::Close) {
                return Err("a '(' that is never closed".to_owned());
            }
            return Ok(wait);
        }
        let Some(Token::Name(name)) = self.tokens.get(self.at).cloned() else {
            return Err("a trigger's name is missing".to_owned());
        };
        self.at += 1;
        let place = self.names.iter().position(|known| *known == name);
        let place = place.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        let place = u16::try_from(place).map_err(|_| "it has too many names".to_owned())?;
        Ok(Wait::Event(place))
    }
}

fn single(mut list: Vec<Wait>, several: fn(Vec<Wait>) -> Wait) -> Wait {
    match list.len() {
        1 => list.remove(0),
        _ => several(list),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> String {
        let names = ["a", "b", "c", "Video Uploaded", "Rock and Roll"].map(str::to_owned);
        let parsed = tokens(text, &names).and_then(|tokens| {
            let mut parser = Parser {
                tokens,
                at: 0,
                names: Vec::new(),
            };
            let wait = parser.whole()?;
            Ok(show(&wait, &parser.names))
        });
        parsed.unwrap_or_else(|problem| format!("error: {problem}"))
    }

    fn show(wait: &Wait, names: &[String]) -> String {
        let list = |list: &[Wait]| {
            let shown: Vec<String> = list.iter().map(|wait| show(wait, names)).collect();
            shown.join(" ")
        };
        match wait {
            Wait::Event(place) => names[*place as usize].clone(),
            Wait::All(waits) => format!("all({})", list(waits)),
            Wait::Any(waits) => format!("any({})", list(waits)),
            Wait::Not(wait) => format!("not({})", show(wait, names)),
        }
    }

    #[test]
    fn operators_and_precedence() {
        for (text, expected) in [
            ("a", "a"),
            ("a and b", "all(a b)"),
            ("a AND b Or c", "any(all(a b) c)"),
            ("a && b || c", "any(all(a b) c)"),
            ("a&&b||c", "any(all(a b) c)"),
            ("a or b and c", "any(a all(b c))"),
            ("(a or b) and c", "all(any(a b) c)"),
            ("not a", "not(a)"),
            ("!a and !(b or c)", "all(not(a) not(any(b c)))"),
            ("a and not b", "all(a not(b))"),
            ("a and a", "all(a a)"),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn names() {
        for (text, expected) in [
            ("Video Uploaded", "Video Uploaded"),
            ("'Video Uploaded' and \"b\"", "all(Video Uploaded b)"),
            ("Rock and Roll and a", "all(Rock and Roll a)"),
            ("nobody", "nobody"),
            ("name eq 'Video Uploaded'", "Video Uploaded"),
            ("trigger.equals('a') or trigger.equals(\"b\")", "any(a b)"),
            ("trigger == 'a' && trigger.equals( 'c' )", "all(a c)"),
            (
                "trigger != null && (trigger.equals('a') || trigger.equals('b'))",
                "any(a b)",
            ),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read() {
        for text in [
            "",
            "a and",
            "and a",
            "a b",
            "(a",
            "a)",
            "a & b",
            "'a",
            "not",
            "()",
            "trigger.equals('a'",
            "a = b",
            "a == b",
            "a != b",
            "=",
            "a =",
            "!= a",
            "a or = b",
            "source == 's'",
            "trigger.name == 'a'",
            "trigger != null",
            "trigger = a",
        ] {
            assert!(parse(text).starts_with("error"), "{text}");
        }
        let deep = "(".repeat(100_000);
        assert!(parse(&deep).starts_with("error"));
        assert!(parse(&"not ".repeat(100_000)).starts_with("error"));
    }
}
