//! The part of a query that a store can answer from an index: the comparisons that must always hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use swirl_model::attribute::{Attribute, AttributeKind};
use swirl_model::ids::InstanceId;
use swirl_model::instance::Status;
use swirl_model::time::Timestamp;
use swirl_ports::{AttributeFilter, Bound, Filter, Values};

use crate::compare::{Literal, Op, Open};
use crate::error::QueryError;
use crate::field::Name;
use crate::query::{Node, Operand, Query, Test};

/// The possible difference between the clocks of processes and of the store, in milliseconds.
const SKEW_MS: i64 = 10 * 60 * 1000;

/// The attributes that deployed workflows declare, each with its types: two workflows may mean different things.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Declared(pub BTreeMap<Arc<str>, BTreeSet<AttributeKind>>);

impl Declared {
    pub fn add(&mut self, name: &Arc<str>, kind: AttributeKind) {
        self.0.entry(name.clone()).or_default().insert(kind);
    }
}

impl Query {
    /// Refuses a query that cannot be answered: attributes that no definition declares, and values that are of none of
    /// their types.
    ///
    /// # Errors
    /// It names the first one.
    pub fn check(&self, declared: &Declared) -> Result<(), QueryError> {
        for test in self.tests() {
            let Operand::Attribute(name) = &test.operand else {
                continue;
            };
            let (at, length) = test.place;
            let Some(kinds) = declared.0.get(name.as_str()) else {
                let known: Vec<String> = declared.0.keys().map(|name| format!("@{name}")).collect();
                let message = match known.is_empty() {
                    true => format!(
                        "no deployed workflow declares the attribute @{name}, nor any other"
                    ),
                    false => format!(
                        "no deployed workflow declares the attribute @{name}; there are {}",
                        known.join(", ")
                    ),
                };
                let mut error = QueryError::new(at, length, message);
                error.unknown_attribute = true;
                return Err(error);
            };
            let Literal::Open(open) = &test.literal else {
                continue;
            };
            if test.op == Op::Begins && !kinds.contains(&AttributeKind::Text) {
                let message = format!("^= is for strings; {}", is_a(name, kinds));
                return Err(QueryError::new(at, length, message));
            }
            if kinds.iter().all(|kind| open.of_kind(*kind).is_none()) {
                let message = format!("{}, and '{}' isn't one", is_a(name, kinds), open.text);
                return Err(QueryError::new(at, length, message));
            }
        }
        Ok(())
    }

    /// The conditions that an index can check. Every instance that passes must still be checked with
    /// [`Query::matches`].
    pub fn filter(&self, declared: &Declared) -> Filter {
        let mut filter = Filter::default();
        let mut parts = Vec::new();
        conjuncts(&self.root, &mut parts);
        let mut statuses: Option<Vec<Status>> = None;
        let mut ranges: Vec<AttributeFilter> = Vec::new();
        for part in parts {
            if let Some(mut found) = ids_of(part) {
                if let Some(before) = &filter.ids {
                    found.retain(|id| before.contains(id));
                }
                filter.ids = Some(found);
            }
            if let Some(found) = statuses_of(part) {
                statuses = Some(match statuses {
                    None => found,
                    Some(before) => before
                        .into_iter()
                        .filter(|one| found.contains(one))
                        .collect(),
                });
            }
            let Node::Is(test) = part else { continue };
            match (&test.operand, test.op, &test.literal) {
                (Operand::Field(name), op, Literal::Text(text)) => {
                    narrow(&mut filter, *name, op, text)
                }
                (Operand::Field(Name::Started), op, Literal::Time(at)) => {
                    since(&mut filter, op, *at)
                }
                (Operand::Attribute(name), op, Literal::Open(open)) => {
                    ranges.extend(values(declared, name, op, open));
                }
                _ => {}
            }
        }
        // Named instances are looked up, which needs no index.
        filter.attribute = best(ranges).filter(|_| filter.ids.is_none());
        filter.statuses = match statuses {
            // Two that exclude each other: nothing passes, and one index has to be read to report
            // that.
            Some(none) if none.is_empty() => vec![Status::Terminated],
            Some(some) => some,
            None => Vec::new(),
        };
        filter
    }
}

fn is_a(name: &str, kinds: &BTreeSet<AttributeKind>) -> String {
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    format!("@{name} is of type {}", kinds.join(" or "))
}

/// The parts that must all hold.
fn conjuncts<'n>(node: &'n Node, found: &mut Vec<&'n Node>) {
    match node {
        Node::And(parts) => {
            for part in parts {
                conjuncts(part, found);
            }
        }
        other => found.push(other),
    }
}

/// The statuses to which a part restricts an instance.
fn statuses_of(node: &Node) -> Option<Vec<Status>> {
    match node {
        Node::Is(Test {
            op,
            literal: Literal::Status(status),
            ..
        }) => {
            let all = [
                Status::Running,
                Status::Completed,
                Status::Faulted,
                Status::Cancelled,
                Status::Terminated,
            ];
            let meant = |one: &Status| (one == status) == (*op == Op::Equal);
            Some(all.into_iter().filter(meant).collect())
        }
        Node::Is(Test {
            operand: Operand::Field(Name::Suspended),
            op: Op::Equal,
            literal: Literal::Flag(true),
            ..
        }) => Some(vec![Status::Running, Status::Faulted]),
        Node::Or(parts) => {
            let mut all = Vec::new();
            for part in parts {
                for status in statuses_of(part)? {
                    if !all.contains(&status) {
                        all.push(status);
                    }
                }
            }
            Some(all)
        }
        _ => None,
    }
}

/// The ids to which a part restricts an instance.
fn ids_of(node: &Node) -> Option<Vec<InstanceId>> {
    match node {
        Node::Is(Test {
            operand: Operand::Field(Name::Id),
            op: Op::Equal,
            literal: Literal::Text(id),
            ..
        }) => Some(vec![InstanceId::new(id.as_str())]),
        Node::Or(parts) => {
            let all: Option<Vec<_>> = parts.iter().map(ids_of).collect();
            all.map(|all| all.concat())
        }
        _ => None,
    }
}

fn narrow(filter: &mut Filter, name: Name, op: Op, text: &str) {
    let place = match (name, op) {
        (Name::Workflow, Op::Equal) => &mut filter.workflow,
        (Name::Version, Op::Equal) => &mut filter.version,
        (Name::Key, Op::Equal) => &mut filter.key,
        (Name::Id, Op::Begins) => &mut filter.prefix,
        _ => return,
    };
    // Of two that differ, the second one is left to `matches`.
    if place.is_none() {
        *place = Some(text.to_owned());
    }
}

fn since(filter: &mut Filter, op: Op, at: Timestamp) {
    if matches!(op, Op::Greater | Op::GreaterOrEqual | Op::Equal) {
        let at = Timestamp(at.0.saturating_sub(SKEW_MS));
        filter.since = Some(filter.since.map_or(at, |before| before.max(at)));
    }
}

/// The condition that an index of the attribute can check; nothing where its type depends on the workflow.
fn values(declared: &Declared, name: &str, op: Op, open: &Open) -> Option<AttributeFilter> {
    let (name, kinds) = declared.0.get_key_value(name)?;
    let mut kinds = kinds.iter();
    let (kind, None) = (*kinds.next()?, kinds.next()) else {
        return None;
    };
    let bound = |value: Attribute, inclusive| Some(Bound { value, inclusive });
    let value = open.of_kind(kind)?;
    let range = |from, to| Values::Range { kind, from, to };
    let values = match op {
        Op::Equal => Values::Equal(value),
        Op::Begins => Values::Prefix(open.text.clone()),
        Op::Greater => range(bound(value, false), None),
        Op::GreaterOrEqual => range(bound(value, true), None),
        Op::Less => range(None, bound(value, false)),
        Op::LessOrEqual => range(None, bound(value, true)),
        Op::Unequal => return None,
    };
    Some(AttributeFilter {
        name: name.clone(),
        values,
    })
}

/// The most selective one: an equal value, then a beginning, then a range; two ranges of one attribute are
/// combined.
fn best(mut found: Vec<AttributeFilter>) -> Option<AttributeFilter> {
    let rank = |one: &AttributeFilter| match one.values {
        Values::Equal(_) => 0,
        Values::Prefix(_) => 1,
        Values::Range { .. } => 2,
    };
    found.sort_by_key(rank);
    let mut found = found.into_iter();
    let mut best = found.next()?;
    for other in found.filter(|other| other.name == best.name) {
        if let (
            Values::Range { from, to, .. },
            Values::Range {
                from: other_from,
                to: other_to,
                ..
            },
        ) = (&mut best.values, other.values)
        {
            // A second restriction of the same end is left to `matches`.
            *from = from.take().or(other_from);
            *to = to.take().or(other_to);
        }
    }
    Some(best)
}
