//! Evaluates an expression: nodes are borrowed from the data, and each visited node is a step.

use std::borrow::Cow;
use std::sync::Arc;

use jaq_json::Val;
use swirl_model::Data;

use super::ast::{Expr, Op, Query, Root, Segment, Selector};
use super::functions;
use super::yielded::{Result, Yield, element, whole};
use crate::error::EvalError;
use crate::meter::{self, Limits};
use crate::{order, text};

/// The values at which paths begin.
#[derive(Clone, Copy)]
pub(super) struct Roots<'a> {
    pub input: &'a Val,
    pub vars: &'a [Data],
    pub current: &'a Val,
}

/// Evaluates an expression within the limits, to one value, to the list of all matches, or to none.
pub(crate) fn evaluate(
    expr: &Expr,
    input: &Data,
    vars: &[Data],
    limits: &Limits,
    now_ms: i64,
) -> std::result::Result<Option<Val>, EvalError> {
    let roots = Roots {
        input: &input.0,
        vars,
        current: &input.0,
    };
    // A single location in the data needs no limits, because it has no loops and creates nothing.
    if let Expr::Query(query) = expr
        && query.singular()
    {
        return Ok(one(query, roots).cloned());
    }
    let outcome = meter::run(limits, now_ms, || {
        let found = yielded(expr, roots)?;
        let value = match found {
            Yield::Nothing => return Ok(None),
            Yield::One(value) => value.into_owned(),
            Yield::Many(nodes) => nodes.into_iter().cloned().collect(),
        };
        Ok(Some(text::result(value, limits)))
    });
    outcome?.map_err(EvalError::Message)
}

/// The value of an expression inside a running evaluation.
pub(crate) fn value(expr: &Expr, input: &Val, vars: &[Data]) -> Result<Option<Val>> {
    let roots = Roots {
        input,
        vars,
        current: input,
    };
    Ok(match yielded(expr, roots)? {
        Yield::Nothing => None,
        Yield::One(value) => Some(value.into_owned()),
        Yield::Many(nodes) => Some(nodes.into_iter().cloned().collect()),
    })
}

pub(super) fn yielded<'a>(expr: &'a Expr, roots: Roots<'a>) -> Result<Yield<'a>> {
    Ok(match expr {
        Expr::Literal(value) => Yield::One(Cow::Borrowed(value)),
        Expr::Query(query) if query.singular() => match one(query, roots) {
            Some(value) => Yield::One(Cow::Borrowed(value)),
            None => Yield::Nothing,
        },
        Expr::Query(query) => Yield::Many(many(query, roots)?),
        Expr::Call(function, arguments) => {
            let mut values = Vec::with_capacity(arguments.len());
            for argument in arguments {
                values.push(yielded(argument, roots)?);
            }
            match functions::call(*function, values)? {
                Some(value) => Yield::One(value),
                None => Yield::Nothing,
            }
        }
        Expr::Compare(..) | Expr::Logic(..) | Expr::Not(_) => {
            Yield::One(Cow::Owned(Val::Bool(holds(expr, roots)?)))
        }
    })
}

/// Whether a condition holds. A path holds if it selects something other than null and false, or a non-empty list of
/// matches.
fn holds(expr: &Expr, roots: Roots<'_>) -> Result<bool> {
    meter::tick();
    match expr {
        Expr::Not(inner) => Ok(!holds(inner, roots)?),
        Expr::Logic(left, settled, right) => match holds(left, roots)? == *settled {
            true => Ok(*settled),
            false => holds(right, roots),
        },
        Expr::Compare(left, op, right) => {
            compared(&yielded(left, roots)?, *op, &yielded(right, roots)?)
        }
        _ => Ok(match yielded(expr, roots)? {
            Yield::Nothing => false,
            Yield::One(value) => !matches!(*value, Val::Null | Val::Bool(false)),
            Yield::Many(nodes) => !nodes.is_empty(),
        }),
    }
}

fn compared(left: &Yield<'_>, op: Op, right: &Yield<'_>) -> Result<bool> {
    let equal = || match (left.value(), right.value()) {
        (None, None) => true,
        (Some(left), Some(right)) => order::equal(left, right),
        _ => false,
    };
    // Only numbers can be ordered with numbers, and texts with texts.
    let ordered = |wanted: fn(std::cmp::Ordering) -> bool| match (left.value(), right.value()) {
        (Some(left @ Val::Num(_)), Some(right @ Val::Num(_)))
        | (Some(left @ Val::TStr(_)), Some(right @ Val::TStr(_))) => {
            wanted(order::compare(left, right))
        }
        _ => false,
    };
    let among = |value: &Val, list: &Yield<'_>| {
        let mut items = list.items().into_iter().flatten();
        items.any(|item| order::equal(item, value))
    };
    let any = |found: bool| {
        let mut items = left.items().into_iter().flatten();
        items.any(|item| among(item, right) == found)
    };
    Ok(match op {
        Op::Eq => equal(),
        Op::Ne => !equal(),
        Op::Lt => ordered(std::cmp::Ordering::is_lt),
        Op::Gt => ordered(std::cmp::Ordering::is_gt),
        Op::Le => ordered(std::cmp::Ordering::is_le) || equal(),
        Op::Ge => ordered(std::cmp::Ordering::is_ge) || equal(),
        Op::Matches => match (left.value(), right.value()) {
            (Some(text), Some(pattern)) => functions::matches(text, pattern, true)?,
            _ => false,
        },
        Op::In => left.value().is_some_and(|value| among(value, right)),
        Op::NotIn => !left.value().is_some_and(|value| among(value, right)),
        Op::Contains => match (left.value(), right.value()) {
            (Some(Val::TStr(whole)), Some(Val::TStr(part))) => {
                meter::work(whole.len() / 16);
                String::from_utf8_lossy(whole).contains(&*String::from_utf8_lossy(part))
            }
            (_, Some(value)) => among(value, left),
            _ => false,
        },
        Op::AnyOf => any(true),
        Op::NoneOf => !any(true),
        Op::SubsetOf => left.items().is_some() && !any(false),
        Op::Size | Op::Empty => {
            let length = match left {
                Yield::Many(nodes) => Some(nodes.len()),
                _ => left.value().and_then(functions::length),
            };
            match (length, right.value()) {
                (Some(length), Some(Val::Bool(empty))) => (length == 0) == *empty,
                (Some(length), Some(Val::Num(size))) => order::float(size) == length as f64,
                _ => false,
            }
        }
    })
}

fn root<'a>(query: &Query, roots: Roots<'a>) -> Option<&'a Val> {
    match query.root {
        Root::Input => Some(roots.input),
        Root::Current => Some(roots.current),
        Root::Variable(place) => roots.vars.get(place).map(|var| &var.0),
    }
}

/// The value that a singular query selects.
fn one<'a>(query: &'a Query, roots: Roots<'a>) -> Option<&'a Val> {
    let mut here = root(query, roots)?;
    for segment in &query.segments {
        here = step(here, segment.selectors.first()?, roots)?;
    }
    Some(here)
}

/// Selects by a name or an index.
fn step<'a>(here: &'a Val, selector: &'a Selector, roots: Roots<'a>) -> Option<&'a Val> {
    match (here, selector) {
        (Val::Obj(map), Selector::Name(name)) => map.get(name),
        (Val::Arr(items), Selector::Index(index)) => element(items, *index),
        (Val::Obj(map), Selector::Computed(query)) => match one(query, roots)? {
            name @ Val::TStr(_) => map.get(name),
            _ => None,
        },
        (Val::Arr(items), Selector::Computed(query)) => match one(query, roots)? {
            Val::Num(number) => element(items, whole(number)?),
            _ => None,
        },
        _ => None,
    }
}

fn many<'a>(query: &'a Query, roots: Roots<'a>) -> Result<Vec<&'a Val>> {
    let mut nodes: Vec<&Val> = root(query, roots).into_iter().collect();
    for segment in &query.segments {
        let mut found = Vec::new();
        for node in nodes {
            match segment.descend {
                false => select(node, segment, roots, false, &mut found)?,
                true => descend(node, segment, roots, false, &mut found)?,
            }
        }
        nodes = found;
    }
    Ok(nodes)
}

/// The value itself, then everything inside it. `element`: it is in a list whose filter has tested it already.
fn descend<'a>(
    here: &'a Val,
    segment: &'a Segment,
    roots: Roots<'a>,
    element: bool,
    found: &mut Vec<&'a Val>,
) -> Result<()> {
    select(here, segment, roots, element, found)?;
    let elements = matches!(here, Val::Arr(_));
    for child in children(here) {
        meter::tick();
        if matches!(child, Val::Arr(_) | Val::Obj(_)) {
            descend(child, segment, roots, elements, found)?;
        }
    }
    Ok(())
}

fn select<'a>(
    here: &'a Val,
    segment: &'a Segment,
    roots: Roots<'a>,
    element: bool,
    found: &mut Vec<&'a Val>,
) -> Result<()> {
    let mut push = |node: &'a Val| {
        // A growing list of matches is copied, so it counts twice.
        meter::charge(2 * size_of::<&Val>());
        found.push(node);
    };
    for selector in &segment.selectors {
        meter::tick();
        match selector {
            Selector::Name(_) | Selector::Index(_) | Selector::Computed(_) => {
                step(here, selector, roots).into_iter().for_each(&mut push);
            }
            Selector::Wild => children(here).for_each(&mut push),
            Selector::Slice { start, end, step } => {
                if let Val::Arr(items) = here {
                    slice(items, *start, *end, *step, &mut push);
                }
            }
            // Applied to an object, a filter tests the object and not its members.
            Selector::Filter(condition) => {
                let one = match here {
                    Val::Obj(_) if element => continue,
                    Val::Obj(_) => Some(here),
                    _ => None,
                };
                let elements = one.is_none().then(|| children(here)).into_iter().flatten();
                for current in one.into_iter().chain(elements) {
                    let roots = Roots { current, ..roots };
                    if holds(condition, roots)? {
                        push(current);
                    }
                }
            }
        }
    }
    Ok(())
}

/// The elements, or the values of the members, in their order.
fn children(here: &Val) -> impl Iterator<Item = &Val> {
    let (items, map) = match here {
        Val::Arr(items) => (Some(items.iter()), None),
        Val::Obj(map) => (None, Some(map.values())),
        _ => (None, None),
    };
    items.into_iter().flatten().chain(map.into_iter().flatten())
}

/// As defined in section 2.3.4.2 of the RFC.
fn slice<'a>(
    items: &'a Arc<Vec<Val>>,
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
    push: &mut impl FnMut(&'a Val),
) {
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let place = |bound: i64| if bound >= 0 { bound } else { length + bound };
    let mut take = |at: i64| {
        let item = usize::try_from(at).ok().and_then(|at| items.get(at));
        item.into_iter().for_each(&mut *push);
    };
    if step > 0 {
        let mut at = place(start.unwrap_or(0)).clamp(0, length);
        let upper = place(end.unwrap_or(length)).clamp(0, length);
        while at < upper {
            take(at);
            at = at.saturating_add(step);
        }
    } else if step < 0 {
        let mut at = start.map_or(length - 1, place).clamp(-1, length - 1);
        let lower = end.map_or(-1, place).clamp(-1, length - 1);
        while at > lower {
            take(at);
            at = at.saturating_add(step);
        }
    }
}
