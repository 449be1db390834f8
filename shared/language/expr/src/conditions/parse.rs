//! Parses text to [`Expr`]: the operators. Their operands are in [`super::primary`].

use std::collections::BTreeSet;

use super::ast::Expr;
use super::dialect::{AND, Dialect, OR};
use super::lex::{self, Token};
use super::op::Op;
use super::values;
use crate::compiled::Secrets;
use crate::error::CompileError;

/// The maximum nesting of parentheses, lists, calls, conditional expressions and signs, which are parsed and evaluated
/// recursively.
const NESTING_MAX: usize = 32;

pub(super) type Result<T> = std::result::Result<T, CompileError>;

pub(super) struct Parser<'s> {
    pub source: &'s str,
    pub dialect: Dialect,
    pub vars: &'s [&'s str],
    /// The position of the next token, the token, and its end.
    pub at: usize,
    next: Option<(Token<'s>, usize)>,
    depth: usize,
    /// The number of enclosing selections and projections, in which `#this` is defined.
    pub inside: usize,
    /// The names that enclosing macros give to elements.
    pub locals: Vec<&'s str>,
    pub used: BTreeSet<String>,
    pub secrets: Secrets,
}

impl<'s> Parser<'s> {
    pub fn new(source: &'s str, vars: &'s [&'s str], dialect: Dialect) -> Parser<'s> {
        Parser {
            source,
            dialect,
            vars,
            at: lex::space(source, 0, dialect),
            next: None,
            depth: 0,
            inside: 0,
            locals: Vec::new(),
            used: BTreeSet::new(),
            secrets: Secrets::default(),
        }
    }

    /// The whole source.
    pub fn whole(&mut self) -> Result<Expr> {
        let expr = self.expr()?;
        match self.peek()? {
            Token::End => Ok(expr),
            _ => Err(self.unexpected("the end")),
        }
    }

    pub fn expr(&mut self) -> Result<Expr> {
        self.nested(Self::choice)
    }

    fn choice(&mut self) -> Result<Expr> {
        let condition = self.binary(OR)?;
        if self.take("?")? {
            let then = self.expr()?;
            self.expect(":")?;
            let otherwise = self.expr()?;
            return Ok(Expr::Choice(
                Box::new(condition),
                Box::new(then),
                Box::new(otherwise),
            ));
        }
        let mut expr = condition;
        for (sign, null_only) in [("?:", false), ("??", true)] {
            let mut parts = Vec::new();
            while self.take(sign)? {
                parts.push(self.binary(OR)?);
            }
            if !parts.is_empty() {
                parts.insert(0, expr);
                expr = Expr::Otherwise(null_only, parts);
            }
        }
        Ok(expr)
    }

    /// Parses operators with a precedence of at least `level`.
    fn binary(&mut self, level: u8) -> Result<Expr> {
        let mut left = self.unary()?;
        while let Some((op, tightness)) = self.operator()? {
            if tightness < level {
                break;
            }
            left = self.links(left, op, tightness)?;
        }
        Ok(left)
    }

    /// Parses a sequence of operators of one level as a flat list.
    fn links(&mut self, left: Expr, first: Op, level: u8) -> Result<Expr> {
        let mut links = Vec::new();
        let mut op = first;
        loop {
            self.skip()?;
            let begin = self.at;
            let right = self.binary(level + 1)?;
            if let (Op::Matches | Op::In | Op::NotIn, Expr::Literal(pattern)) = (op, &right) {
                values::check_pattern(pattern).map_err(|why| self.fail_at(begin, &why))?;
            }
            links.push((op, right));
            match self.operator()? {
                Some((next, tightness)) if tightness == level => op = next,
                _ => break,
            }
        }
        if level == OR || level == AND {
            let mut parts = vec![left];
            parts.extend(links.into_iter().map(|(_, part)| part));
            return Ok(Expr::Logic(level == OR, parts));
        }
        Ok(Expr::Chain(Box::new(left), links))
    }

    /// The operator at this position, if there is one.
    fn operator(&mut self) -> Result<Option<(Op, u8)>> {
        let dialect = self.dialect;
        let found = match self.peek()? {
            Token::Sign(sign) => dialect.sign(sign),
            Token::Word(word) => dialect.word(word),
            _ => None,
        };
        match found {
            Some((Op::Assign, _)) => Err(self.fail("there are no assignments here; write `==`")),
            Some((Op::InstanceOf, _)) => {
                let message =
                    "`instanceof` is not available: types of a host language are not available";
                Err(self.fail(message))
            }
            found => Ok(found),
        }
    }

    fn unary(&mut self) -> Result<Expr> {
        // Any number of them in sequence.
        let (mut not, mut negative) = (0usize, 0usize);
        let dialect = self.dialect;
        loop {
            let sign = match self.peek()? {
                Token::Sign(sign @ ("!" | "-" | "+")) => sign,
                Token::Word(word) if is_not(dialect, word) => "!",
                _ => break,
            };
            match sign {
                "!" if negative > 0 => return Err(self.fail("a number cannot be negated with `!`")),
                "!" => not += 1,
                "-" => negative += 1,
                _ => {}
            }
            self.skip()?;
        }
        let word = match self.peek()? {
            Token::Word(word @ ("empty" | "size")) if dialect == Dialect::Jexl => Some(*word),
            _ => None,
        };
        let mut expr = match word {
            Some(word) if self.stands_before_operand()? => {
                self.skip()?;
                let operand = self.nested(Self::unary)?;
                self.word_call(word, operand)
            }
            _ => self.steps()?,
        };
        if negative > 0 {
            expr = Expr::Negative(Box::new(expr));
            if negative % 2 == 0 {
                expr = Expr::Negative(Box::new(expr));
            }
        }
        if not > 0 {
            expr = Expr::Not(Box::new(expr));
            if not % 2 == 0 {
                expr = Expr::Not(Box::new(expr));
            }
        }
        Ok(expr)
    }

    /// `empty x` and `size x` in JEXL are operators without parentheses; `size == 3` and `size(x)` aren't.
    fn stands_before_operand(&mut self) -> Result<bool> {
        let Some((_, end)) = self.next else {
            return Ok(false);
        };
        let at = lex::space(self.source, end, self.dialect);
        let (token, _) = lex::token(self.source, at, self.dialect)
            .map_err(|(at, why)| self.fail_at(at, &why))?;
        Ok(match token {
            Token::Word(word) => self.dialect.word(word).is_none(),
            Token::Number(_) | Token::Text(_) => true,
            Token::Sign(sign) => matches!(sign, "$" | "#" | "{"),
            Token::End => false,
        })
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
}

fn is_not(dialect: Dialect, word: &str) -> bool {
    match dialect {
        Dialect::Spel => word.eq_ignore_ascii_case("not"),
        Dialect::Jexl => word == "not",
        Dialect::Cel => false,
    }
}

/// Small helpers for reading the text.
impl<'s> Parser<'s> {
    pub fn peek(&mut self) -> Result<&Token<'s>> {
        if self.next.is_none() {
            let lexed = lex::token(self.source, self.at, self.dialect);
            let lexed = lexed.map_err(|(at, why)| self.fail_at(at, &why))?;
            self.next = Some(lexed);
        }
        match &self.next {
            Some((token, _)) => Ok(token),
            None => Err(self.fail("the expression could not be read (internal error)")),
        }
    }

    /// Skips the next token.
    pub fn skip(&mut self) -> Result<Token<'s>> {
        self.peek()?;
        match self.next.take() {
            Some((token, end)) => {
                self.at = lex::space(self.source, end, self.dialect);
                Ok(token)
            }
            None => Ok(Token::End),
        }
    }

    /// Continues at another position.
    pub fn jump(&mut self, at: usize) {
        self.at = lex::space(self.source, at, self.dialect);
        self.next = None;
    }

    pub fn take(&mut self, wanted: &str) -> Result<bool> {
        let there = matches!(self.peek()?, Token::Sign(sign) if *sign == wanted);
        if there {
            self.skip()?;
        }
        Ok(there)
    }

    pub fn expect(&mut self, sign: &str) -> Result<()> {
        match self.take(sign)? {
            true => Ok(()),
            false => Err(self.unexpected(&format!("`{sign}`"))),
        }
    }

    /// An error about the next token.
    pub fn fail(&self, message: &str) -> CompileError {
        self.fail_at(self.at, message)
    }

    pub fn fail_at(&self, at: usize, message: &str) -> CompileError {
        let at = at.min(self.source.len());
        let end = match &self.next {
            Some((_, end)) if at == self.at => *end,
            _ => at + self.source[at..].chars().next().map_or(0, char::len_utf8),
        };
        CompileError {
            message: format!("{message} (at offset {at})"),
            span: Some(at..end),
        }
    }

    pub fn unexpected(&self, expected: &str) -> CompileError {
        let rest = &self.source[self.at..];
        let shown = rest
            .char_indices()
            .nth(20)
            .map_or(rest, |(end, _)| &rest[..end]);
        let what = match shown.is_empty() {
            true => "the expression ends".to_owned(),
            false => format!("there is `{shown}`"),
        };
        self.fail(&format!("{what} where {expected} is expected"))
    }
}
