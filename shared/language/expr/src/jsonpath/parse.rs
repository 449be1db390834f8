//! Parses text to [`Expr`]: logic, comparisons and queries. Operands other than queries are in [`super::operand`].

use std::collections::BTreeSet;

use jaq_json::Val;

use super::ast::{Expr, Op, Query, Root, Segment, Selector};
use super::script;
use crate::compiled::Secrets;
use crate::error::CompileError;

/// The maximum nesting of parentheses, filters and calls, which are parsed and evaluated recursively.
const NESTING_MAX: usize = 32;
/// Operators in the order in which they are tried: longer ones first.
const SIGNS: [(&str, Op); 7] = [
    ("==", Op::Eq),
    ("!=", Op::Ne),
    ("<=", Op::Le),
    (">=", Op::Ge),
    ("=~", Op::Matches),
    ("<", Op::Lt),
    (">", Op::Gt),
];
const WORDS: [(&str, Op); 8] = [
    ("anyof", Op::AnyOf),
    ("contains", Op::Contains),
    ("empty", Op::Empty),
    ("in", Op::In),
    ("nin", Op::NotIn),
    ("noneof", Op::NoneOf),
    ("size", Op::Size),
    ("subsetof", Op::SubsetOf),
];
/// Operators of other languages.
const FOREIGN: [(&str, &str); 8] = [
    ("and", "&&"),
    ("eq", "=="),
    ("ge", ">="),
    ("gt", ">"),
    ("le", "<="),
    ("lt", "<"),
    ("ne", "!="),
    ("or", "||"),
];

type Result<T> = std::result::Result<T, CompileError>;

pub(crate) struct Parser<'s> {
    pub source: &'s str,
    pub at: usize,
    vars: &'s [&'s str],
    depth: usize,
    /// The number of enclosing filters, in which `@` is defined.
    filters: usize,
    pub used: BTreeSet<String>,
    pub secrets: Secrets,
}

impl<'s> Parser<'s> {
    pub fn new(source: &'s str, vars: &'s [&'s str]) -> Parser<'s> {
        Parser {
            source,
            at: 0,
            vars,
            depth: 0,
            filters: 0,
            used: BTreeSet::new(),
            secrets: Secrets::default(),
        }
    }

    /// The variables that were used, and how secrets were used.
    pub fn uses(&mut self) -> (BTreeSet<String>, Secrets) {
        let used = std::mem::take(&mut self.used);
        (used, std::mem::take(&mut self.secrets))
    }

    /// The whole source.
    pub fn whole(&mut self) -> Result<Expr> {
        self.space();
        let rest = self.rest();
        if rest.starts_with('.') {
            let message = format!("a JSONPath begins with `$`; did you mean `${rest}`?");
            return Err(CompileError::new(message));
        }
        let expr = self.either()?;
        self.space();
        match self.rest().is_empty() {
            true => Ok(expr),
            false => Err(self.unexpected("the end")),
        }
    }

    fn either(&mut self) -> Result<Expr> {
        self.logic("||", true, Self::both)
    }

    fn both(&mut self) -> Result<Expr> {
        self.logic("&&", false, Self::comparison)
    }

    fn logic(
        &mut self,
        sign: &str,
        settled: bool,
        part: fn(&mut Self) -> Result<Expr>,
    ) -> Result<Expr> {
        let mut left = part(self)?;
        // Evaluation is recursive on the left, so a sequence of links counts as nesting.
        let mut links = 0;
        loop {
            self.space();
            if !self.take(sign) {
                return Ok(left);
            }
            links += 1;
            if links > 8 * NESTING_MAX {
                return Err(self.fail("there are too many conditions in a row"));
            }
            self.tested(&left)?;
            let right = part(self)?;
            self.tested(&right)?;
            left = Expr::Logic(Box::new(left), settled, Box::new(right));
        }
    }

    /// Checks that a condition can be true.
    fn tested(&self, expr: &Expr) -> Result<()> {
        match expr.counts() {
            true => Err(self.fail("this is not a condition; compare it with something")),
            false => Ok(()),
        }
    }

    fn comparison(&mut self) -> Result<Expr> {
        self.space();
        if self.rest().starts_with('!') && !self.rest().starts_with("!=") {
            self.at += 1;
            let inner = self.nested(Self::negated)?;
            self.tested(&inner)?;
            self.space();
            if self.operator().is_some() {
                return Err(self.fail("put parentheses around the operand of `!`: `!(...)`"));
            }
            return Ok(Expr::Not(Box::new(inner)));
        }
        let left = self.operand()?;
        self.space();
        let before = self.at;
        let Some(op) = self.operator() else {
            return self.not_foreign().map(|()| left);
        };
        self.compared(&left, op, before)?;
        self.space();
        let begin = self.at;
        let right = match op {
            Op::Matches => self.pattern()?,
            _ => self.operand()?,
        };
        if !matches!(
            op,
            Op::In | Op::NotIn | Op::AnyOf | Op::NoneOf | Op::SubsetOf
        ) {
            self.compared(&right, op, begin)?;
        }
        Ok(Expr::Compare(Box::new(left), op, Box::new(right)))
    }

    fn negated(&mut self) -> Result<Expr> {
        self.space();
        match self.rest().starts_with('!') {
            true => self.comparison(),
            false => self.operand(),
        }
    }

    /// Refuses a list of matches where a single value is needed.
    fn compared(&self, side: &Expr, op: Op, at: usize) -> Result<()> {
        let lists = matches!(
            op,
            Op::AnyOf | Op::NoneOf | Op::SubsetOf | Op::Contains | Op::Size | Op::Empty
        );
        if side.yields_list() && !lists {
            let message = "a comparison needs one value on each side, and this may select many; \
                           put the comparison into a filter, like `$.items[?(@.price > 5)]`, \
                           or take one with `.first()`";
            return Err(CompileError::at(message, self.source, &self.source[..at]));
        }
        Ok(())
    }

    fn operator(&mut self) -> Option<Op> {
        if let Some((sign, op)) = SIGNS.iter().find(|(sign, _)| self.rest().starts_with(sign)) {
            self.at += sign.len();
            return Some(*op);
        }
        let word = self.word();
        let (_, op) = WORDS.iter().find(|(known, _)| *known == word)?;
        self.at += word.len();
        Some(*op)
    }

    fn not_foreign(&self) -> Result<()> {
        let word = self.word();
        let sign = match FOREIGN.iter().find(|(known, _)| *known == word) {
            Some((_, sign)) => sign,
            None if self.rest().starts_with('=') => "==",
            None => return Ok(()),
        };
        let here = self.rest().split_whitespace().next().unwrap_or_default();
        Err(self.fail(&format!("there is no `{here}` in JSONPath; write `{sign}`")))
    }

    /// Parses a form that may contain itself.
    pub fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            let message = format!("it is nested more than {NESTING_MAX} levels deep");
            return Err(self.fail(&message));
        }
        let done = f(self);
        self.depth -= 1;
        done
    }

    pub fn in_parentheses(&mut self) -> Result<Expr> {
        self.nested(|parser| {
            let inner = parser.either()?;
            parser.expect(")")?;
            Ok(inner)
        })
    }

    /// A query, beginning at its `$` or `@`. A name followed by `(` is left to the caller.
    pub fn query(&mut self) -> Result<Query> {
        let root = self.root()?;
        let mut segments = Vec::new();
        loop {
            let before = self.at;
            self.space();
            let rest = self.rest();
            if rest.starts_with("..") {
                self.at += 2;
                segments.push(self.descent()?);
            } else if rest.starts_with('.') {
                self.at += 1;
                match self.member()? {
                    Some(selector) => segments.push(child(vec![selector])),
                    // `$.` alone, and `$.[0]`, which occur in older documents.
                    None if self.rest().starts_with('[') => {}
                    None if segments.is_empty() && self.rest().trim().is_empty() => break,
                    None if self.method().is_some() => {
                        self.at -= 1;
                        break;
                    }
                    None => return Err(self.unexpected("a name, `*` or `[`")),
                }
            } else if rest.starts_with('[') {
                self.at += 1;
                segments.push(child(self.bracket()?));
            } else {
                // White space after a query belongs to the next token.
                self.at = before;
                break;
            }
        }
        if let Root::Variable(place) = root {
            self.note(place, &segments);
        }
        Ok(Query { root, segments })
    }

    fn root(&mut self) -> Result<Root> {
        if self.take("@") {
            return match self.filters {
                0 => Err(self.fail("`@` is only something inside of a filter `[?( )]`; write `$`")),
                _ => Ok(Root::Current),
            };
        }
        self.expect("$")?;
        let name = self.word();
        if name.is_empty() {
            return Ok(Root::Input);
        }
        let Some(place) = self.vars.iter().rposition(|var| *var == name) else {
            let all: Vec<String> = self.vars.iter().map(|var| format!("${var}")).collect();
            let only = match all.is_empty() {
                true => String::new(),
                false => format!(" (there are {})", all.join(", ")),
            };
            let message =
                format!("there is no variable `${name}`{only}; for a member write `$.{name}`");
            return Err(CompileError::at(message, self.source, name));
        };
        self.at += name.len();
        self.used.insert(name.to_owned());
        Ok(Root::Variable(place))
    }

    /// Records how secrets are used.
    fn note(&mut self, place: usize, segments: &[Segment]) {
        if self.vars.get(place) != Some(&"SECRETS") {
            return;
        }
        let name = match segments.first() {
            Some(Segment {
                descend: false,
                selectors,
            }) => match selectors.as_slice() {
                [Selector::Name(Val::TStr(name))] => std::str::from_utf8(name).ok(),
                _ => None,
            },
            _ => None,
        };
        match name {
            None => self.secrets.other = true,
            Some(name) if self.secrets.names.iter().any(|known| known == name) => {}
            Some(name) => self.secrets.names.push(name.to_owned()),
        }
    }

    fn descent(&mut self) -> Result<Segment> {
        let selectors = match self.take("[") {
            true => self.bracket()?,
            false => match self.member()? {
                Some(selector) => vec![selector],
                None => return Err(self.unexpected("a name, `*` or `[` after `..`")),
            },
        };
        Ok(Segment {
            descend: true,
            selectors,
        })
    }

    /// The selector after a dot, if it is `*` or a member's name.
    fn member(&mut self) -> Result<Option<Selector>> {
        if self.take("*") {
            return Ok(Some(Selector::Wild));
        }
        let rest = self.rest();
        let end = rest.find(|c| !in_name(c)).unwrap_or(rest.len());
        if end == 0 || self.method().is_some() {
            return Ok(None);
        }
        self.at += end;
        Ok(Some(Selector::Name(Val::from(rest[..end].to_owned()))))
    }

    /// The name of a function, including its `(`.
    pub fn method(&self) -> Option<&'s str> {
        let word = self.word();
        let call = self.rest()[word.len()..].starts_with('(');
        (call && !word.is_empty()).then_some(word)
    }

    /// The selectors after `[`, up to and including the `]`.
    fn bracket(&mut self) -> Result<Vec<Selector>> {
        let mut selectors = Vec::new();
        loop {
            self.space();
            selectors.push(self.selector()?);
            self.space();
            if self.take("]") {
                return Ok(selectors);
            }
            if !self.take(",") {
                return Err(self.unexpected("`,` or `]`"));
            }
        }
    }

    fn selector(&mut self) -> Result<Selector> {
        let Some(first) = self.rest().chars().next() else {
            return Err(self.unexpected("a name in quotes, a number, `*` or `?`"));
        };
        match first {
            '\'' | '"' => Ok(Selector::Name(Val::from(self.text()?))),
            '*' => {
                self.at += 1;
                Ok(Selector::Wild)
            }
            '?' => {
                self.at += 1;
                self.filters += 1;
                let condition = self.nested(Self::either)?;
                self.filters -= 1;
                self.tested(&condition)?;
                Ok(Selector::Filter(condition))
            }
            '(' => {
                let (index, length) = script::index(self.rest()).map_err(|m| self.fail(&m))?;
                self.at += length;
                Ok(Selector::Index(index))
            }
            '$' => self.nested(Self::computed),
            ':' | '-' | '0'..='9' => self.index(),
            _ => Err(self.unexpected("a name in quotes, a number, `*` or `?`")),
        }
    }

    fn computed(&mut self) -> Result<Selector> {
        let query = self.query()?;
        match query.root {
            Root::Variable(_) if query.singular() => Ok(Selector::Computed(query)),
            _ => Err(self.fail("an index must be a number, a name in quotes or a variable")),
        }
    }

    fn index(&mut self) -> Result<Selector> {
        let start = self.int()?;
        self.space();
        if !self.take(":") {
            let start = start.ok_or_else(|| self.unexpected("a number"))?;
            return Ok(Selector::Index(start));
        }
        self.space();
        let end = self.int()?;
        self.space();
        let step = match self.take(":") {
            true => {
                self.space();
                self.int()?
            }
            false => None,
        };
        Ok(Selector::Slice {
            start,
            end,
            step: step.unwrap_or(1),
        })
    }

    fn int(&mut self) -> Result<Option<i64>> {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('-'));
        let digits = rest[sign..].find(|c: char| !c.is_ascii_digit());
        let end = sign + digits.unwrap_or(rest.len() - sign);
        if end == 0 {
            return Ok(None);
        }
        // The RFC's bounds.
        let fits = |int: &i64| int.unsigned_abs() < 1 << 53;
        match rest[..end].parse::<i64>().ok().filter(fits) {
            Some(int) => {
                self.at += end;
                Ok(Some(int))
            }
            None => Err(self.unexpected("a whole number")),
        }
    }
}

fn child(selectors: Vec<Selector>) -> Segment {
    Segment {
        descend: false,
        selectors,
    }
}

/// The characters of an unquoted member name. The RFC doesn't allow `-`, but many documents use it.
fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-' || !c.is_ascii()
}

/// Small helpers for reading the text.
impl<'s> Parser<'s> {
    pub fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    pub fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    pub fn take(&mut self, sign: &str) -> bool {
        let there = self.rest().starts_with(sign);
        if there {
            self.at += sign.len();
        }
        there
    }

    pub fn expect(&mut self, sign: &str) -> Result<()> {
        self.space();
        match self.take(sign) {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{sign}`"))),
        }
    }

    /// The word that begins here: letters, digits and `_`.
    pub fn word(&self) -> &'s str {
        let rest = self.rest();
        let first = rest.chars().next();
        if first.is_none_or(|c| c.is_ascii_digit()) {
            return "";
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        &rest[..end.unwrap_or(rest.len())]
    }

    /// An error at the current position.
    pub fn fail(&self, message: &str) -> CompileError {
        CompileError::at(message, self.source, self.shown())
    }

    pub fn unexpected(&self, expected: &str) -> CompileError {
        let what = match self.rest().is_empty() {
            true => "the expression ends".to_owned(),
            false => format!("there is `{}`", self.shown()),
        };
        self.fail(&format!("{what} where {expected} is expected"))
    }

    fn shown(&self) -> &'s str {
        let rest = self.rest();
        match rest.char_indices().nth(20) {
            Some((end, _)) => &rest[..end],
            None => rest,
        }
    }
}
