//! Expressions that don't need jaq: plain paths, literals, and conditions composed of them, like `.age >= 18 and
//! .status == "ok"`. They have exactly one output, no loops, and create no values, so they need no limits. Most
//! conditions of switch states are of this kind.

use std::borrow::Cow;

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Term};
use jaq_core::ops::Cmp;
use jaq_core::path::{Opt, Part};
use jaq_json::Val;
use swirl_model::Data;

use crate::error::EvalError;
use crate::{order, text};

/// Evaluation is recursive, and doesn't check the stack.
const NESTING_MAX: usize = 32;

#[derive(Debug)]
pub(crate) enum Simple {
    /// `.a.b`, or `$x.a.b` with the position of the variable.
    Members(Option<usize>, Vec<Val>),
    Literal(Val),
    Cmp(Box<Simple>, Cmp, Box<Simple>),
    /// `and` if the flag is false, `or` if it is true. The flag is the value that decides the result.
    Logic(Box<Simple>, bool, Box<Simple>),
    /// `a | not`.
    Not(Box<Simple>),
}

impl Simple {
    /// The simple form of a term, if it has one.
    pub fn of(term: &Term<&str>, vars: &[&str]) -> Option<Simple> {
        Simple::nested(term, vars, NESTING_MAX)
    }

    fn nested(term: &Term<&str>, vars: &[&str], depth: usize) -> Option<Simple> {
        let depth = depth.checked_sub(1)?;
        let boxed = |term: &Term<&str>| Simple::nested(term, vars, depth).map(Box::new);
        Some(match term {
            Term::Id => Simple::Members(None, Vec::new()),
            Term::Var(name) => {
                // If a name occurs twice, the last one counts, as in jaq.
                let name = name.strip_prefix('$')?;
                let place = vars.iter().rposition(|var| *var == name)?;
                Simple::Members(Some(place), Vec::new())
            }
            Term::Path(base, path) => {
                let Simple::Members(root, mut keys) = Simple::nested(base, vars, depth)? else {
                    return None;
                };
                for (part, opt) in &path.0 {
                    match (part, opt) {
                        (Part::Index(index), Opt::Essential) => keys.push(Val::from(plain(index)?)),
                        _ => return None,
                    }
                }
                Simple::Members(root, keys)
            }
            Term::Str(..) => Simple::Literal(Val::from(plain(term)?)),
            Term::Num(number) => {
                let number = order::bounded(order::parse(number)?);
                // Infinite numbers aren't JSON.
                order::float(&number)
                    .is_finite()
                    .then_some(Simple::Literal(Val::Num(number)))?
            }
            Term::Call("null", args) if args.is_empty() => Simple::Literal(Val::Null),
            Term::Call("true", args) if args.is_empty() => Simple::Literal(Val::Bool(true)),
            Term::Call("false", args) if args.is_empty() => Simple::Literal(Val::Bool(false)),
            Term::BinOp(left, BinaryOp::Cmp(op), right) => {
                Simple::Cmp(boxed(left)?, *op, boxed(right)?)
            }
            Term::BinOp(left, BinaryOp::And, right) => {
                Simple::Logic(boxed(left)?, false, boxed(right)?)
            }
            Term::BinOp(left, BinaryOp::Or, right) => {
                Simple::Logic(boxed(left)?, true, boxed(right)?)
            }
            Term::BinOp(left, BinaryOp::Pipe(None), right) => match &**right {
                Term::Call("not", args) if args.is_empty() => Simple::Not(boxed(left)?),
                _ => return None,
            },
            _ => return None,
        })
    }

    pub fn eval<'a>(
        &'a self,
        input: &'a Data,
        vars: &'a [Data],
    ) -> Result<Cow<'a, Val>, EvalError> {
        const NULL: &Val = &Val::Null;
        let holds = |simple: &Simple| {
            let value = simple.eval(input, vars)?;
            Ok::<_, EvalError>(!matches!(*value, Val::Null | Val::Bool(false)))
        };
        let found = match self {
            Simple::Members(root, keys) => {
                let root = match root {
                    None => &input.0,
                    Some(place) => vars.get(*place).map_or(NULL, |var| &var.0),
                };
                return members(root, keys).map(Cow::Borrowed);
            }
            Simple::Literal(value) => return Ok(Cow::Borrowed(value)),
            Simple::Cmp(left, op, right) => {
                let (left, right) = (left.eval(input, vars)?, right.eval(input, vars)?);
                let order = order::compare(&left, &right);
                match op {
                    Cmp::Lt => order.is_lt(),
                    Cmp::Le => order.is_le(),
                    Cmp::Gt => order.is_gt(),
                    Cmp::Ge => order.is_ge(),
                    Cmp::Eq => order.is_eq(),
                    Cmp::Ne => order.is_ne(),
                }
            }
            Simple::Logic(left, settled, right) => {
                if holds(left)? == *settled {
                    *settled
                } else {
                    holds(right)?
                }
            }
            Simple::Not(simple) => !holds(simple)?,
        };
        Ok(Cow::Owned(Val::Bool(found)))
    }
}

/// The text of a string without format and interpolation.
pub(crate) fn plain(term: &Term<&str>) -> Option<String> {
    let Term::Str(None, parts) = term else {
        return None;
    };
    let mut text = String::new();
    for part in parts {
        match part {
            StrPart::Str(part) => text.push_str(part),
            StrPart::Char(c) => text.push(*c),
            StrPart::Term(_) => return None,
        }
    }
    Some(text)
}

fn members<'a>(root: &'a Val, keys: &[Val]) -> Result<&'a Val, EvalError> {
    let mut here = root;
    for key in keys {
        here = match here {
            Val::Obj(map) => map.get(key).unwrap_or(&Val::Null),
            Val::Null => return Ok(here),
            other => {
                let key = Data(key.clone());
                let message = format!("Cannot index {} with string {key}", text::kind(other));
                return Err(EvalError::Message(message));
            }
        };
    }
    Ok(here)
}
