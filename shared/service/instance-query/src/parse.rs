//! Reads a query. It stops at the first error, which names its place and the words that are allowed there.

use swirl_model::instance::Status;
use swirl_model::time::Timestamp;

use crate::QUERY_BYTES_MAX;
use crate::compare::{Literal, Op, Open};
use crate::error::QueryError;
use crate::field::{self, FieldKind};
use crate::lex::{Placed, Token, tokens};
use crate::query::{Node, Operand, Query, Test};
use crate::times;

/// How deep parentheses and `not` may be nested.
const DEPTH_MAX: usize = 32;
/// How many comparisons a query may have.
const TESTS_MAX: usize = 64;
/// How many values a list after `in` may have.
const LIST_MAX: usize = 100;

const STATUSES: [Status; 5] = [
    Status::Running,
    Status::Completed,
    Status::Faulted,
    Status::Cancelled,
    Status::Terminated,
];

impl Query {
    /// Reads a query; `now` is the moment from which `-1h` is counted. An empty query matches every
    /// instance.
    ///
    /// # Errors
    /// The text isn't a query: the error says where.
    pub fn parse(text: &str, now: Timestamp) -> Result<Query, QueryError> {
        if text.len() > QUERY_BYTES_MAX {
            let message = format!("a query has at most {QUERY_BYTES_MAX} bytes");
            return Err(QueryError::new(0, 0, message));
        }
        let tokens = tokens(text)?;
        if tokens.is_empty() {
            return Ok(Query::all());
        }
        let mut parser = Parser {
            tokens: &tokens,
            next: 0,
            end: text.chars().count(),
            now,
            tests: 0,
        };
        let root = parser.or(0)?;
        match parser.peek() {
            None => Query::lifted(root),
            Some(found) => {
                let message = "expected 'and' or 'or' before another comparison";
                Err(QueryError::new(found.at, found.length, message))
            }
        }
    }
}

struct Parser<'t> {
    tokens: &'t [Placed],
    next: usize,
    end: usize,
    now: Timestamp,
    tests: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<&'t Placed> {
        self.tokens.get(self.next)
    }

    fn took_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(placed)
            if matches!(&placed.token, Token::Word(text) if text.eq_ignore_ascii_case(word)));
        self.next += usize::from(found);
        found
    }

    fn took_sign(&mut self, sign: &'static str) -> bool {
        let found = self
            .peek()
            .is_some_and(|placed| placed.token == Token::Sign(sign));
        self.next += usize::from(found);
        found
    }

    /// An error at the next token, or at the end.
    fn wrong(&self, message: impl Into<String>) -> QueryError {
        match self.peek() {
            Some(found) => QueryError::new(found.at, found.length, message),
            None => QueryError::new(self.end, 0, message),
        }
    }

    fn or(&mut self, depth: usize) -> Result<Node, QueryError> {
        let mut parts = vec![self.and(depth)?];
        while self.took_word("or") {
            parts.push(self.and(depth)?);
        }
        Ok(one_of(parts, Node::Or))
    }

    fn and(&mut self, depth: usize) -> Result<Node, QueryError> {
        let mut parts = vec![self.unary(depth)?];
        while self.took_word("and") {
            parts.push(self.unary(depth)?);
        }
        Ok(one_of(parts, Node::And))
    }

    fn unary(&mut self, depth: usize) -> Result<Node, QueryError> {
        if depth >= DEPTH_MAX {
            return Err(self.wrong(format!("this is nested more than {DEPTH_MAX} times")));
        }
        if self.took_word("not") {
            return Ok(Node::Not(Box::new(self.unary(depth + 1)?)));
        }
        if self.took_sign("(") {
            let inner = self.or(depth + 1)?;
            if !self.took_sign(")") {
                return Err(self.wrong("a ')' is missing here"));
            }
            return Ok(inner);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Node, QueryError> {
        self.tests += 1;
        if self.tests > TESTS_MAX {
            return Err(self.wrong(format!("a query has at most {TESTS_MAX} comparisons")));
        }
        let Some(found) = self.peek() else {
            return Err(self.wrong("expected a field, as in status = faulted"));
        };
        let (operand, kind) = match &found.token {
            Token::Attribute(name) => (Operand::Attribute(name.clone()), None),
            Token::Word(word) => match field::find(word) {
                Some((name, kind)) => (Operand::Field(name), Some(kind)),
                None => {
                    let message =
                        format!("there is no field '{word}'; fields are {}", field::words());
                    return Err(self.wrong(message));
                }
            },
            Token::Text(_) | Token::Sign(_) => {
                let message = format!("expected a field: {}", field::words());
                return Err(self.wrong(message));
            }
        };
        self.next += 1;
        let place = (found.at, found.length);
        if self.took_word("in") {
            return self.list(&operand, kind, place);
        }
        let op = self.operator(kind)?;
        let literal = self.value(kind)?;
        if op != Op::Equal && literal == Literal::Waiting {
            let message =
                "instances that don't wait can't be queried: 'waiting' only follows 'status ='";
            return Err(QueryError::new(place.0, place.1, message));
        }
        Ok(Node::Is(Test {
            operand,
            op,
            literal,
            place,
        }))
    }

    fn list(
        &mut self,
        operand: &Operand,
        kind: Option<FieldKind>,
        place: (usize, usize),
    ) -> Result<Node, QueryError> {
        if !self.took_sign("(") {
            return Err(
                self.wrong("expected a list after 'in', as in status in (faulted, running)")
            );
        }
        let mut parts = Vec::new();
        loop {
            if parts.len() >= LIST_MAX {
                return Err(self.wrong(format!("a list has at most {LIST_MAX} values")));
            }
            parts.push(Node::Is(Test {
                operand: operand.clone(),
                op: Op::Equal,
                literal: self.value(kind)?,
                place,
            }));
            if self.took_sign(")") {
                let is_waiting = |part: &Node| matches!(part, Node::Is(test) if test.literal == Literal::Waiting);
                if parts.len() > 1 && parts.iter().any(is_waiting) {
                    let message =
                        "'waiting' can't be in a list: query it alone, as 'status = waiting'";
                    return Err(QueryError::new(place.0, place.1, message));
                }
                return Ok(one_of(parts, Node::Or));
            }
            if !self.took_sign(",") {
                return Err(self.wrong("a ',' or the ')' of the list is missing here"));
            }
        }
    }

    fn operator(&mut self, kind: Option<FieldKind>) -> Result<Op, QueryError> {
        let found = self.peek().map(|placed| &placed.token);
        let op = match found {
            Some(Token::Sign(sign)) => Op::of(sign),
            _ => None,
        };
        match (op, kind) {
            (Some(op), Some(kind)) if !kind.allows(op) => {
                let message = format!("this field is compared with {}", kind.operators());
                Err(self.wrong(message))
            }
            (Some(op), _) => {
                self.next += 1;
                Ok(op)
            }
            (None, _) => {
                let operators = kind.unwrap_or(FieldKind::Text).operators();
                Err(self.wrong(format!("a comparison is missing here: {operators}")))
            }
        }
    }

    fn value(&mut self, kind: Option<FieldKind>) -> Result<Literal, QueryError> {
        let Some(found) = self.peek() else {
            return Err(self.wrong("a value is missing at the end"));
        };
        let (text, quoted) = match &found.token {
            Token::Text(text) => (text, true),
            Token::Word(text) => (text, false),
            Token::Attribute(_) | Token::Sign(_) => {
                return Err(self.wrong("expected a value; put strings in quotes"));
            }
        };
        let literal = match kind {
            None => Some(Literal::Open(Open {
                text: text.clone(),
                quoted,
                now: self.now,
            })),
            Some(FieldKind::Text) => Some(Literal::Text(text.clone())),
            Some(FieldKind::Flag) => match text.as_str() {
                "true" => Some(Literal::Flag(true)),
                "false" => Some(Literal::Flag(false)),
                _ => None,
            },
            Some(FieldKind::Status) if text == "waiting" => Some(Literal::Waiting),
            Some(FieldKind::Status) => {
                let mut all = STATUSES.into_iter();
                all.find(|status| status.as_str() == text)
                    .map(Literal::Status)
            }
            Some(FieldKind::Time) => times::parse(text, self.now).map(Literal::Time),
        };
        let Some(literal) = literal else {
            return Err(self.wrong(match kind {
                Some(FieldKind::Flag) => "the value is true or false".to_owned(),
                Some(FieldKind::Status) => format!(
                    "there is no status '{text}'; they are {}, waiting{}",
                    STATUSES.map(Status::as_str).join(", "),
                    if text == "suspended" { ", and suspended = true is a separate field" } else { "" }
                ),
                _ => format!(
                    "'{text}' isn't an instant; write one as 2024-01-31T09:00:00Z, 2024-01-31, now, or counted \
                     from now as -90s, -5m, -1h, -7d or -2w"
                ),
            }));
        };
        self.next += 1;
        Ok(literal)
    }
}

fn one_of(mut parts: Vec<Node>, join: fn(Vec<Node>) -> Node) -> Node {
    match parts.len() {
        1 => parts.remove(0),
        _ => join(parts),
    }
}
