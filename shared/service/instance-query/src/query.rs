//! A query, and its test for an instance.

use swirl_model::instance::{Header, Status};
use swirl_ports::Summary;

use crate::compare::{Has, Literal, Op, holds};
use crate::error::QueryError;
use crate::field::Name;

/// A query, read and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub(crate) root: Node,
    waiting: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    /// All of them; of none, everything.
    And(Vec<Node>),
    /// Any of them.
    Or(Vec<Node>),
    Not(Box<Node>),
    Is(Test),
}

/// One comparison. `place` is that of the field, for errors.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Test {
    pub operand: Operand,
    pub op: Op,
    pub literal: Literal,
    pub place: (usize, usize),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand {
    Field(Name),
    Attribute(String),
}

impl Query {
    /// A query that matches every instance.
    pub fn all() -> Query {
        Query {
            root: Node::And(Vec::new()),
            waiting: false,
        }
    }

    /// Takes out `status = waiting`, which a listing doesn't know.
    ///
    /// # Errors
    /// It isn't joined to the rest with `and`.
    pub(crate) fn lifted(mut root: Node) -> Result<Query, QueryError> {
        let waiting = root.lift_waiting();
        let query = Query { root, waiting };
        let mut tests = query.tests().into_iter();
        match tests.find(|test| test.literal == Literal::Waiting) {
            None => Ok(query),
            Some(test) => {
                let message = "'status = waiting' can only be joined to the rest with 'and'";
                Err(QueryError::new(test.place.0, test.place.1, message))
            }
        }
    }

    /// Whether only instances match that wait for an event, an answer or a time. [`Query::matches`] doesn't know that: it
    /// takes the root scope of the instance.
    pub fn waiting(&self) -> bool {
        self.waiting
    }

    /// Whether it is empty, and so matches every instance.
    pub fn is_empty(&self) -> bool {
        matches!(&self.root, Node::And(parts) if parts.is_empty())
    }

    /// Both: the instances that match this query and the other one.
    #[must_use]
    pub fn and(self, other: Query) -> Query {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other,
            (_, true) => self,
            _ => Query {
                root: Node::And(vec![self.root, other.root]),
                waiting: self.waiting || other.waiting,
            },
        }
    }

    /// Whether the instance matches.
    pub fn matches(&self, summary: &Summary) -> bool {
        self.root.holds(summary)
    }

    /// All comparisons, at any depth.
    pub(crate) fn tests(&self) -> Vec<&Test> {
        let mut found = Vec::new();
        self.root.collect(&mut found);
        found
    }
}

impl Node {
    /// Waiting instances are running. Returns whether there was such a comparison.
    fn lift_waiting(&mut self) -> bool {
        match self {
            Node::Is(test) if test.literal == Literal::Waiting && test.op == Op::Equal => {
                test.literal = Literal::Status(Status::Running);
                true
            }
            Node::And(parts) => {
                let mut found = false;
                for part in parts {
                    found |= part.lift_waiting();
                }
                found
            }
            _ => false,
        }
    }

    fn holds(&self, summary: &Summary) -> bool {
        match self {
            Node::And(parts) => parts.iter().all(|part| part.holds(summary)),
            Node::Or(parts) => parts.iter().any(|part| part.holds(summary)),
            Node::Not(part) => !part.holds(summary),
            Node::Is(test) => holds(test.operand.of(summary), test.op, &test.literal),
        }
    }

    fn collect<'n>(&'n self, found: &mut Vec<&'n Test>) {
        match self {
            Node::And(parts) | Node::Or(parts) => {
                for part in parts {
                    part.collect(found);
                }
            }
            Node::Not(part) => part.collect(found),
            Node::Is(test) => found.push(test),
        }
    }
}

impl Operand {
    fn of<'s>(&self, summary: &'s Summary) -> Has<'s> {
        let header: &Header = &summary.header;
        let error = summary.error.as_ref();
        let text = |found: Option<&'s str>| found.map_or(Has::Nothing, Has::Text);
        let name = match self {
            Operand::Field(name) => name,
            Operand::Attribute(name) => {
                let found = summary.attributes.get(name.as_str());
                return found.map_or(Has::Nothing, Has::Attribute);
            }
        };
        match name {
            Name::ContinuedFrom => text(header.continued_from.as_ref().map(|id| id.as_str())),
            Name::Ended => summary.ended_at.map_or(Has::Nothing, Has::Time),
            Name::Error => text(error.map(|error| error.name.as_str())),
            Name::ErrorCode => text(error.and_then(|error| error.code.as_deref())),
            Name::Id => Has::Text(header.id.as_str()),
            Name::InstanceKey => text(header.instance_key.as_deref()),
            Name::Key => text(header.key.as_deref()),
            Name::Parent => {
                let parent = header.parent.as_ref();
                text(parent.map(|parent| parent.scope.instance.as_str()))
            }
            Name::Scheduled => header.scheduled_at.map_or(Has::Nothing, Has::Time),
            Name::Started => Has::Time(header.started_at),
            Name::State => text(error.and_then(|error| error.state.as_deref())),
            Name::Status => Has::Status(summary.status),
            Name::Suspended => Has::Flag(summary.suspended),
            Name::Version => Has::Text(&header.definition.version),
            Name::Workflow => Has::Text(&header.definition.workflow),
        }
    }
}
