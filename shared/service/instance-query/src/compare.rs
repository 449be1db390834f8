//! Comparisons of an instance's values with those of a query.

use std::cmp::Ordering;

use swirl_model::attribute::{Attribute, AttributeKind};
use swirl_model::instance::Status;
use swirl_model::time::Timestamp;

use crate::times;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Equal,
    Unequal,
    Begins,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Op {
    pub fn of(sign: &str) -> Option<Op> {
        Some(match sign {
            "=" => Op::Equal,
            "!=" => Op::Unequal,
            "^=" => Op::Begins,
            "<" => Op::Less,
            "<=" => Op::LessOrEqual,
            ">" => Op::Greater,
            ">=" => Op::GreaterOrEqual,
            _ => return None,
        })
    }

    fn holds(self, order: Ordering) -> bool {
        match self {
            Op::Equal => order.is_eq(),
            Op::Unequal => order.is_ne(),
            Op::Less => order.is_lt(),
            Op::LessOrEqual => order.is_le(),
            Op::Greater => order.is_gt(),
            Op::GreaterOrEqual => order.is_ge(),
            Op::Begins => false,
        }
    }
}

/// A literal that a query compares with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Text(String),
    Status(Status),
    /// Running, and waiting for something.
    Waiting,
    Flag(bool),
    Time(Timestamp),
    /// The value of an attribute, which is read according to the attribute's kind.
    Open(Open),
}

/// A value as it was written, for an attribute of any kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Open {
    pub text: String,
    pub quoted: bool,
    pub now: Timestamp,
}

impl Open {
    /// The literal as a value of this kind, if it is one.
    pub fn of_kind(&self, kind: AttributeKind) -> Option<Attribute> {
        match kind {
            AttributeKind::Text => Some(Attribute::Text(self.text.as_str().into())),
            AttributeKind::Time => times::parse(&self.text, self.now).map(Attribute::Time),
            AttributeKind::Number if !self.quoted => {
                let number: f64 = self.text.parse().ok()?;
                number.is_finite().then_some(Attribute::Number(number))
            }
            AttributeKind::Boolean if !self.quoted => match self.text.as_str() {
                "true" => Some(Attribute::Boolean(true)),
                "false" => Some(Attribute::Boolean(false)),
                _ => None,
            },
            AttributeKind::Number | AttributeKind::Boolean => None,
        }
    }
}

/// An instance's value of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Has<'a> {
    /// No comparison holds for it except `!=`, which always does.
    Nothing,
    Text(&'a str),
    Status(Status),
    Flag(bool),
    Time(Timestamp),
    Attribute(&'a Attribute),
}

pub(crate) fn holds(has: Has<'_>, op: Op, literal: &Literal) -> bool {
    match (has, literal) {
        (Has::Text(found), Literal::Text(wanted)) => texts(found, op, wanted),
        (Has::Status(found), Literal::Status(wanted)) => (found == *wanted) == (op == Op::Equal),
        (Has::Flag(found), Literal::Flag(wanted)) => op.holds(found.cmp(wanted)),
        (Has::Time(found), Literal::Time(wanted)) => op.holds(found.cmp(wanted)),
        (Has::Attribute(found), Literal::Open(open)) => attribute(found, op, open),
        _ => op == Op::Unequal,
    }
}

fn texts(found: &str, op: Op, wanted: &str) -> bool {
    match op {
        Op::Begins => found.starts_with(wanted),
        _ => op.holds(found.cmp(wanted)),
    }
}

fn attribute(found: &Attribute, op: Op, open: &Open) -> bool {
    if let (Attribute::Text(found), Op::Begins) = (found, op) {
        return found.starts_with(&open.text);
    }
    match open.of_kind(found.kind()) {
        Some(wanted) => found
            .compare(&wanted)
            .map_or(op == Op::Unequal, |order| op.holds(order)),
        None => op == Op::Unequal,
    }
}
