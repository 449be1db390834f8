//! Evaluates a condition.

use jaq_json::Val;
use swirl_model::Data;

use super::Dialect;
use super::ast::{Expr, Macro, Pick, Step, Tree};
use super::functions;
use super::op::Op;
use super::values::{self, Result};
use crate::error::EvalError;
use crate::jsonpath;
use crate::meter::{self, Limits};
use crate::text;

/// Evaluates a condition within the limits.
pub(crate) fn evaluate(
    tree: &Tree,
    input: &Data,
    vars: &[Data],
    limits: &Limits,
    now_ms: i64,
) -> std::result::Result<Val, EvalError> {
    let outcome = meter::run(limits, now_ms, || {
        let mut run = Run {
            tree,
            input: &input.0,
            vars,
            elements: Vec::new(),
            locals: Vec::new(),
        };
        let value = run.value(&tree.root)?;
        Ok::<_, String>(text::result(value, limits))
    });
    outcome?.map_err(EvalError::Message)
}

struct Run<'a> {
    tree: &'a Tree,
    input: &'a Val,
    vars: &'a [Data],
    /// The current elements of the enclosing selections and projections.
    elements: Vec<Val>,
    /// The current elements of the enclosing CEL macros.
    locals: Vec<Val>,
}

impl<'a> Run<'a> {
    fn dialect(&self) -> Dialect {
        self.tree.dialect
    }

    fn value(&mut self, expr: &'a Expr) -> Result<Val> {
        meter::tick();
        Ok(match expr {
            Expr::Literal(value) => value.clone(),
            Expr::Name(name) => self.named(name)?,
            Expr::Data => self.input.clone(),
            Expr::Error(place) => {
                let own = values::element(self.input, &Val::from("error".to_owned()));
                own.cloned().unwrap_or_else(|| self.variable(*place))
            }
            Expr::This => self.elements.last().unwrap_or(self.input).clone(),
            Expr::Variable(place) => self.variable(*place),
            Expr::Local(place) => self.locals.get(*place).cloned().unwrap_or_default(),
            Expr::Path(of, path) => {
                let of = self.value(of)?;
                jsonpath::value(path, &of, self.vars)?.unwrap_or_default()
            }
            Expr::List(items) => {
                meter::charge(items.len() * size_of::<Val>());
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.push(self.value(item)?);
                }
                list.into_iter().collect()
            }
            Expr::Map(members) => {
                meter::charge(members.len() * 4 * size_of::<Val>());
                let mut map = jaq_json::Map::default();
                for (key, value) in members {
                    let key = Val::from(values::text(&self.value(key)?));
                    let value = self.value(value)?;
                    map.insert(key, value);
                }
                Val::obj(map)
            }
            Expr::Steps(base, steps) => self.steps(base, steps)?,
            Expr::Call(function, arguments) => {
                let arguments = self.values(arguments)?;
                functions::call(*function, &arguments, self.dialect())?
            }
            Expr::Has(base, name) => {
                // A member of a missing value is missing too.
                let there = self
                    .value(base)
                    .is_ok_and(|base| values::element(&base, name).is_some());
                Val::Bool(there)
            }
            Expr::Logic(settled, parts) => Val::Bool(self.logic(*settled, parts)?),
            Expr::Not(inner) => Val::Bool(!self.holds(inner)?),
            Expr::Negative(inner) => values::negative(&self.value(inner)?)?,
            Expr::Chain(first, links) => self.chain(first, links)?,
            Expr::Choice(condition, then, otherwise) => match self.holds(condition)? {
                true => self.value(then)?,
                false => self.value(otherwise)?,
            },
            Expr::Otherwise(null_only, parts) => {
                let mut value = Val::Null;
                for part in parts {
                    value = self.value(part)?;
                    let gone = match null_only {
                        true => matches!(value, Val::Null),
                        false => self.is_nothing(&value),
                    };
                    if !gone {
                        break;
                    }
                }
                value
            }
        })
    }

    /// The values that `?:` replaces: null and an empty text in SpEL, everything that doesn't hold in JEXL.
    fn is_nothing(&self, value: &Val) -> bool {
        match self.dialect() {
            Dialect::Jexl => values::holds(value, Dialect::Jexl) == Ok(false),
            _ => matches!(value, Val::Null) || matches!(value, Val::TStr(text) if text.is_empty()),
        }
    }

    fn values(&mut self, exprs: &'a [Expr]) -> Result<Vec<Val>> {
        let mut values = Vec::with_capacity(exprs.len());
        for expr in exprs {
            values.push(self.value(expr)?);
        }
        Ok(values)
    }

    fn holds(&mut self, expr: &'a Expr) -> Result<bool> {
        let value = self.value(expr)?;
        // As in JSONPath, a list of matches holds if it isn't empty.
        if let (true, Val::Arr(items)) = (expr.yields_matches(), &value) {
            return Ok(!items.is_empty());
        }
        values::holds(&value, self.dialect())
    }

    fn logic(&mut self, settled: bool, parts: &'a [Expr]) -> Result<bool> {
        let mut error = None;
        for part in parts {
            match self.holds(part) {
                Ok(holds) if holds == settled => return Ok(settled),
                Ok(_) => {}
                // In CEL, another operand may decide the result even if this one cannot be evaluated.
                Err(message) if self.dialect() == Dialect::Cel => {
                    error.get_or_insert(message);
                }
                Err(message) => return Err(message),
            }
        }
        error.map_or(Ok(!settled), Err)
    }

    fn variable(&self, place: usize) -> Val {
        self.vars
            .get(place)
            .map(|var| var.0.clone())
            .unwrap_or_default()
    }

    /// A name without prefix. Inside a selection it is a member of the element; otherwise a member of the error if
    /// there is one, or of the data, or a variable.
    fn named(&self, name: &str) -> Result<Val> {
        let key = Val::from(name.to_owned());
        if let Some(element) = self.elements.last() {
            return Ok(values::element(element, &key).cloned().unwrap_or_default());
        }
        let error = self.tree.error.and_then(|place| self.vars.get(place));
        let of_error = error.and_then(|error| values::element(&error.0, &key));
        if let Some(found) = of_error.or_else(|| values::element(self.input, &key)) {
            return Ok(found.clone());
        }
        let place = self.tree.names.iter().rposition(|var| **var == *name);
        if let Some(place) = place {
            return Ok(self.variable(place));
        }
        match self.dialect() {
            Dialect::Cel => Err(format!("there is no `{name}` in the data")),
            _ => Ok(Val::Null),
        }
    }

    fn chain(&mut self, first: &'a Expr, links: &'a [(Op, Expr)]) -> Result<Val> {
        let mut left = self.value(first)?;
        let mut matches = first.yields_matches();
        for (op, right) in links {
            meter::tick();
            let value = self.value(right)?;
            left = match op {
                Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::Pow => {
                    values::arithmetic(&left, *op, &value, self.dialect())?
                }
                op => {
                    Val::Bool(self.compared(&left, matches, *op, &value, right.yields_matches())?)
                }
            };
            matches = false;
        }
        Ok(left)
    }

    /// The values that a path selects are compared one by one: the comparison holds if it holds for one of them. `!=`
    /// is the opposite of `==`.
    fn compared(
        &self,
        left: &Val,
        many_left: bool,
        op: Op,
        right: &Val,
        many_right: bool,
    ) -> Result<bool> {
        let dialect = self.dialect();
        let within = matches!(op, Op::In | Op::NotIn);
        let (many, single, left_is_many) = match (left, right) {
            (Val::Arr(many), single) if many_left && (within || !matches!(single, Val::Arr(_))) => {
                (many, single, true)
            }
            (single, Val::Arr(many)) if many_right && !within && !matches!(single, Val::Arr(_)) => {
                (many, single, false)
            }
            _ => return values::compare(left, op, right, dialect),
        };
        let (each, wanted) = match op {
            Op::Ne => (Op::Eq, false),
            Op::NotIn => (Op::In, false),
            op => (op, true),
        };
        for item in many.iter() {
            let holds = match left_is_many {
                true => values::compare(item, each, single, dialect),
                false => values::compare(single, each, item, dialect),
            };
            // A value that cannot be compared isn't a match.
            if holds == Ok(true) {
                return Ok(wanted);
            }
        }
        Ok(!wanted)
    }

    fn steps(&mut self, base: &'a Expr, steps: &'a [Step]) -> Result<Val> {
        let mut here = self.value(base)?;
        for step in steps {
            meter::tick();
            here = match step {
                Step::Safe if matches!(here, Val::Null) => return Ok(Val::Null),
                Step::Safe => here,
                Step::Member(name) => self.member(&here, name)?,
                Step::Index(index) => {
                    let index = self.value(index)?;
                    self.element(&here, &index)?
                }
                Step::Call(function, arguments) => {
                    let mut all = vec![here];
                    for argument in arguments {
                        all.push(self.value(argument)?);
                    }
                    match (&all[0], self.dialect()) {
                        (Val::Null, Dialect::Jexl) => Val::Null,
                        (Val::Null, dialect) => {
                            let hint = match dialect {
                                Dialect::Spel => "; use `?.` where it may be missing",
                                _ => "",
                            };
                            return Err(format!("a method was called on null{hint}"));
                        }
                        (_, dialect) => functions::call(*function, &all, dialect)?,
                    }
                }
                Step::Select(pick, condition) => self.select(&here, *pick, condition)?,
                Step::Project(inner) => {
                    let mut found = Vec::new();
                    for element in elements(&here)? {
                        found.push(self.inside(element, inner)?);
                        meter::charge(2 * size_of::<Val>());
                    }
                    found.into_iter().collect()
                }
                Step::Macro(kind, condition, made) => {
                    self.macro_over(&here, *kind, condition, made.as_ref())?
                }
            };
        }
        Ok(here)
    }

    /// A missing member is null, but an error in CEL.
    fn member(&self, here: &Val, name: &Val) -> Result<Val> {
        if let Some(found) = values::element(here, name) {
            return Ok(found.clone());
        }
        let shown = values::text(name);
        match (here, self.dialect()) {
            (_, Dialect::Cel) => Err(format!("{} has no member `{shown}`", text::kind(here))),
            (Val::Null | Val::Obj(_), _) => match (here, &*shown) {
                // Of a map, like methods without parentheses.
                (Val::Obj(map), "size" | "empty") => Ok(match &*shown {
                    "size" => functions::size(here, self.dialect())?,
                    _ => Val::Bool(map.is_empty()),
                }),
                _ => Ok(Val::Null),
            },
            (Val::Arr(_) | Val::TStr(_), dialect) if matches!(&*shown, "length" | "size") => {
                functions::size(here, dialect)
            }
            (Val::Arr(_) | Val::TStr(_), dialect) if shown == "empty" => {
                functions::is_empty(here, dialect).map(Val::Bool)
            }
            (_, Dialect::Jexl) => Ok(Val::Null),
            _ => Err(format!("{} has no property `{shown}`", text::kind(here))),
        }
    }

    fn element(&self, here: &Val, index: &Val) -> Result<Val> {
        if let Some(found) = values::element(here, index) {
            return Ok(found.clone());
        }
        match (here, index, self.dialect()) {
            (_, _, Dialect::Cel) => Err(format!(
                "{} has no element {}",
                text::kind(here),
                text::shortened(index)
            )),
            (Val::TStr(_), Val::Num(_), Dialect::Spel) => functions::call(
                functions::Function::CharAt,
                &[here.clone(), index.clone()],
                Dialect::Spel,
            ),
            _ => Ok(Val::Null),
        }
    }

    /// Evaluates an expression for an element.
    fn inside(&mut self, element: Val, inner: &'a Expr) -> Result<Val> {
        self.elements.push(element);
        let found = self.value(inner);
        self.elements.pop();
        found
    }

    fn select(&mut self, here: &Val, pick: Pick, condition: &'a Expr) -> Result<Val> {
        let mut found = Vec::new();
        for element in elements(here)? {
            let value = self.inside(element.clone(), condition)?;
            if values::holds(&value, self.dialect())? {
                meter::charge(2 * size_of::<Val>());
                found.push(element);
                if pick == Pick::First {
                    break;
                }
            }
        }
        // The selection of a map is a map.
        if let (Val::Obj(_), Pick::All) = (here, pick) {
            let mut map = jaq_json::Map::default();
            for entry in found {
                let part =
                    |name: &str| values::element(&entry, &Val::from(name.to_owned())).cloned();
                map.insert(
                    part("key").unwrap_or_default(),
                    part("value").unwrap_or_default(),
                );
            }
            return Ok(Val::obj(map));
        }
        Ok(match pick {
            Pick::All => found.into_iter().collect(),
            Pick::First | Pick::Last => found.pop().unwrap_or_default(),
        })
    }

    fn macro_over(
        &mut self,
        here: &Val,
        kind: Macro,
        first: &'a Expr,
        second: Option<&'a Expr>,
    ) -> Result<Val> {
        let items: Vec<Val> = match here {
            Val::Arr(items) => items.iter().cloned().collect(),
            Val::Obj(map) => map.keys().cloned().collect(),
            other => return Err(format!("{} is neither a list nor a map", text::kind(other))),
        };
        meter::charge(items.len() * size_of::<Val>());
        let (mut found, mut error) = (Vec::new(), None);
        let mut count = 0usize;
        for item in items {
            self.locals.push(item.clone());
            let outcome = self.value(first);
            let made = match (&outcome, second) {
                (Ok(Val::Bool(true)), Some(second)) => Some(self.value(second)),
                _ => None,
            };
            self.locals.pop();
            if let (Macro::Map, None) = (kind, second) {
                meter::charge(2 * size_of::<Val>());
                found.push(outcome?);
                continue;
            }
            let holds = match outcome.and_then(|value| values::holds(&value, Dialect::Cel)) {
                Ok(holds) => holds,
                // Another element may decide the result.
                Err(message) if matches!(kind, Macro::All | Macro::Exists) => {
                    error.get_or_insert(message);
                    continue;
                }
                Err(message) => return Err(message),
            };
            match (kind, holds) {
                (Macro::All, false) => return Ok(Val::Bool(false)),
                (Macro::Exists, true) => return Ok(Val::Bool(true)),
                (Macro::ExistsOne, true) => count += 1,
                (Macro::Filter, true) => {
                    meter::charge(2 * size_of::<Val>());
                    found.push(item);
                }
                (Macro::Map, true) => {
                    meter::charge(2 * size_of::<Val>());
                    found.push(made.unwrap_or_else(|| Ok(Val::Null))?);
                }
                _ => {}
            }
        }
        if let Some(error) = error {
            return Err(error);
        }
        Ok(match kind {
            Macro::All => Val::Bool(true),
            Macro::Exists => Val::Bool(false),
            Macro::ExistsOne => Val::Bool(count == 1),
            Macro::Filter | Macro::Map => found.into_iter().collect(),
        })
    }
}

/// The elements of a list, or the entries of a map with `key` and `value`.
fn elements(here: &Val) -> Result<Vec<Val>> {
    match here {
        Val::Arr(items) => {
            meter::charge(items.len() * size_of::<Val>());
            Ok(items.iter().cloned().collect())
        }
        Val::Obj(map) => {
            meter::charge(map.len() * 8 * size_of::<Val>());
            let entry = |(key, value): (&Val, &Val)| {
                let mut entry = jaq_json::Map::default();
                entry.insert(Val::from("key".to_owned()), key.clone());
                entry.insert(Val::from("value".to_owned()), value.clone());
                Val::obj(entry)
            };
            Ok(map.iter().map(entry).collect())
        }
        Val::Null => Ok(Vec::new()),
        other => Err(format!("{} is neither a list nor a map", text::kind(other))),
    }
}
