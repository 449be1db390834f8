//! Expressions that name one location in the data (`toStateData`, `outputCollection`; docs/language.md#decision-10 and
//! #decision-63).

use std::borrow::Cow;
use std::sync::Arc;

use jaq_core::load::Arena;
use jaq_core::load::parse::{BinaryOp, Term};
use jaq_core::path::{Opt, Part};
use jaq_json::{Num, Val};
use swirl_model::Data;
use swirl_model::workflow::Language;

use crate::compile;
use crate::error::{CompileError, EvalError, PathError};
use crate::program::{Env, Program};
use crate::simple::plain;
use crate::{jsonpath, order, text};

/// The number of elements that a path may add to an array at once, with an index beyond its end.
const GAP_MAX: i64 = 10_000;

/// The total nesting depth that data may have, so that it can be read back.
const DEPTH_MAX: usize = 100;
/// With up to this many steps, data can always be read back, even if a value of depth [`DEPTH_MAX`] is put at their
/// end.
const STEPS_EASY: usize = 20;

/// One path: `.a.b[0]`, `.["x y"]`, `.[-1]`, `.rows[$i]`, or `.`.
#[derive(Debug, Clone)]
pub struct PathExpr {
    steps: Arc<[Step]>,
}

#[derive(Debug)]
enum Step {
    Key(Val),
    Index(i64),
    /// An index computed from variables.
    Computed(Program),
}

/// A step whose index is known.
enum KnownStep<'a> {
    Key(Cow<'a, Val>),
    Index(i64),
}

impl PathExpr {
    /// Compiles a path in one of the languages that have paths.
    pub fn compile(
        language: Language,
        source: &str,
        vars: &[&str],
    ) -> Result<PathExpr, CompileError> {
        match language {
            Language::Jq => PathExpr::jq(source, vars),
            Language::JsonPath => PathExpr::jsonpath(source, vars),
            Language::Cel | Language::Jexl | Language::Spel => Err(CompileError::new(
                "a place in the data is written in jq or JSONPath",
            )),
        }
    }

    /// Compiles a path. It is an error if it may name several locations or none, or something other than a location in
    /// the input. An index may be a variable or a member of one.
    pub fn jq(source: &str, vars: &[&str]) -> Result<PathExpr, CompileError> {
        compile::as_lexed(source, |source| {
            let arena = Arena::default();
            let term = compile::parse(source, &arena)?;
            let mut out = Vec::new();
            steps(term, source, vars, &arena, &mut out)?;
            Ok(PathExpr { steps: out.into() })
        })
    }

    /// The same for a JSONPath: `$.a.b[0]`, `$['x y']`, `$.rows[-1]`, `$.rows[$i]`, or `$`.
    pub fn jsonpath(source: &str, vars: &[&str]) -> Result<PathExpr, CompileError> {
        let steps = jsonpath::place(source, vars)?.into_iter();
        let steps = steps.map(|place| match place {
            jsonpath::LocationStep::Key(key) => Step::Key(key),
            jsonpath::LocationStep::Index(index) => Step::Index(index),
            jsonpath::LocationStep::Computed(program) => Step::Computed(program),
        });
        Ok(PathExpr {
            steps: steps.collect(),
        })
    }

    /// The value at the location, or null if there is none.
    pub fn get(&self, data: &Data, vars: &[Data], env: &Env) -> Result<Data, PathError> {
        let mut here = &data.0;
        let null = Val::Null;
        for (n, step) in self.known(vars, env)?.iter().enumerate() {
            here = match (here, step) {
                (Val::Null, _) => return Ok(Data::NULL),
                (Val::Obj(map), KnownStep::Key(key)) => map.get(key.as_ref()).unwrap_or(&null),
                (Val::Arr(items), KnownStep::Index(index)) => place(*index, items.len())
                    .and_then(|at| items.get(at))
                    .unwrap_or(&null),
                _ => return Err(self.mismatch(here, n, step)),
            };
        }
        Ok(Data(here.clone()))
    }

    /// Puts a value at the location. Missing or null parents are created.
    pub fn set(
        &self,
        data: &mut Data,
        value: Data,
        vars: &[Data],
        env: &Env,
    ) -> Result<(), PathError> {
        self.update(data, vars, env, |place| {
            *place = value;
            Ok(())
        })
    }

    /// Changes the value at the location, which is null if missing. If this or `change` fails, `data` stays unchanged.
    pub fn update<E: From<PathError>>(
        &self,
        data: &mut Data,
        vars: &[Data],
        env: &Env,
        change: impl FnOnce(&mut Data) -> Result<(), E>,
    ) -> Result<(), E> {
        // This works on a copy of the path to the location; everything beside the path is shared.
        let known = self.known(vars, env)?;
        if known.len() > DEPTH_MAX {
            return Err(PathError::Eval(EvalError::DepthLimit).into());
        }
        let mut changed = data.clone();
        let place = self.walk(&mut changed.0, &known)?;
        let mut there = Data(std::mem::take(place));
        change(&mut there)?;
        if known.len() > STEPS_EASY && is_deeper(&there.0, DEPTH_MAX - known.len()) {
            return Err(PathError::Eval(EvalError::DepthLimit).into());
        }
        *place = there.0;
        *data = changed;
        Ok(())
    }

    fn walk<'a>(
        &self,
        root: &'a mut Val,
        known: &[KnownStep<'_>],
    ) -> Result<&'a mut Val, PathError> {
        let mut here = root;
        for (n, step) in known.iter().enumerate() {
            if matches!(here, Val::Null) {
                *here = match step {
                    KnownStep::Key(_) => Val::Obj(Arc::default()),
                    KnownStep::Index(_) => Val::Arr(Arc::default()),
                };
            }
            here = match (here, step) {
                (Val::Obj(map), KnownStep::Key(key)) => Arc::make_mut(map)
                    .entry(key.as_ref().clone())
                    .or_insert(Val::Null),
                (Val::Arr(items), KnownStep::Index(index)) => {
                    let at = place(*index, items.len());
                    let gap = |at: &usize| *at as i64 - (items.len() as i64) < GAP_MAX;
                    let Some(at) = at.filter(gap) else {
                        let at = self.shown(n, known);
                        return Err(PathError::OutOfBounds { at, index: *index });
                    };
                    let items = Arc::make_mut(items);
                    if at >= items.len() {
                        items.resize(at + 1, Val::Null);
                    }
                    &mut items[at]
                }
                (here, step) => return Err(self.mismatch(here, n, step)),
            };
        }
        Ok(here)
    }

    fn known(&self, vars: &[Data], env: &Env) -> Result<Vec<KnownStep<'_>>, PathError> {
        self.steps
            .iter()
            .map(|step| match step {
                Step::Key(key) => Ok(KnownStep::Key(Cow::Borrowed(key))),
                Step::Index(index) => Ok(KnownStep::Index(*index)),
                Step::Computed(program) => {
                    let index = program.one(&Data::NULL, vars, env)?.unwrap_or_default();
                    match &index.0 {
                        Val::TStr(_) => Ok(KnownStep::Key(Cow::Owned(index.0.clone()))),
                        Val::Num(number) => match order::whole(order::float(number)) {
                            Some(index) => Ok(KnownStep::Index(index as i64)),
                            None => Err(PathError::Index("a fraction")),
                        },
                        _ => Err(PathError::Index(index.kind_in_words())),
                    }
                }
            })
            .collect()
    }

    fn mismatch(&self, here: &Val, n: usize, step: &KnownStep<'_>) -> PathError {
        let step_shown = match step {
            KnownStep::Key(key) => format!("member {}", text::shortened(key)),
            KnownStep::Index(index) => format!("element {index}"),
        };
        let at = match n {
            0 => "the data".to_owned(),
            n => format!("step {n} of the path"),
        };
        PathError::Mismatch {
            at,
            kind: Data(here.clone()).kind_in_words(),
            step: step_shown,
        }
    }

    fn shown(&self, n: usize, known: &[KnownStep<'_>]) -> String {
        let mut shown = String::new();
        for step in &known[..n] {
            match step {
                KnownStep::Key(key) => shown.push_str(&format!("[{}]", text::shortened(key))),
                KnownStep::Index(index) => shown.push_str(&format!("[{index}]")),
            }
        }
        format!(".{shown}")
    }
}

/// Whether a value is nested more than this many levels deep.
fn is_deeper(val: &Val, levels: usize) -> bool {
    let inner = |val: &Val| is_deeper(val, levels - 1);
    match val {
        Val::Arr(items) => levels == 0 || items.iter().any(inner),
        Val::Obj(map) => levels == 0 || map.values().any(inner),
        _ => false,
    }
}

/// The position of an element. It may be beyond the end, but not before the beginning.
fn place(index: i64, len: usize) -> Option<usize> {
    if index >= 0 {
        usize::try_from(index).ok()
    } else {
        len.checked_sub(index.unsigned_abs() as usize)
    }
}

fn steps<'s>(
    term: Term<&'s str>,
    source: &'s str,
    vars: &[&str],
    arena: &'s Arena,
    out: &mut Vec<Step>,
) -> Result<(), CompileError> {
    let no = |what: &str| {
        Err(CompileError::new(format!(
            "{what}; one path is needed, like `.a.b[0]`"
        )))
    };
    match term {
        Term::Id => Ok(()),
        Term::BinOp(left, BinaryOp::Pipe(None), right) => {
            steps(*left, source, vars, arena, out)?;
            steps(*right, source, vars, arena, out)
        }
        Term::Path(base, path) => {
            steps(*base, source, vars, arena, out)?;
            for (part, opt) in path.0 {
                match (part, opt) {
                    (Part::Index(index), Opt::Essential) => {
                        out.push(step(index, source, vars, arena)?);
                    }
                    (_, Opt::Optional) => return no("`?` may name no place"),
                    (Part::Range(None, None), _) => return no("`[]` may name many places"),
                    (Part::Range(..), _) => return no("a slice is not one place"),
                }
            }
            Ok(())
        }
        _ => no("this is not a path"),
    }
}

fn step<'s>(
    index: Term<&'s str>,
    source: &'s str,
    vars: &[&str],
    arena: &'s Arena,
) -> Result<Step, CompileError> {
    if let Some(key) = plain(&index) {
        return Ok(Step::Key(Val::from(key)));
    }
    let number = |text: &str| match order::parse(text) {
        Some(Num::Int(int)) => Some(int as i64),
        _ => None,
    };
    let int = match &index {
        Term::Num(text) => number(text),
        Term::Neg(inner) => match &**inner {
            Term::Num(text) => number(text).map(|int| -int),
            _ => None,
        },
        _ => None,
    };
    if let Some(int) = int {
        return Ok(Step::Index(int));
    }
    let from_variable = |term: &Term<&str>| match term {
        Term::Var(_) => true,
        Term::Path(base, path) => {
            let one = |part: &Part<Term<&str>>| match part {
                Part::Index(index) => plain(index).is_some() || matches!(index, Term::Num(_)),
                Part::Range(..) => false,
            };
            matches!(**base, Term::Var(_)) && path.0.iter().all(|(part, _)| one(part))
        }
        _ => false,
    };
    if !from_variable(&index) {
        let message = "an index must be a string, a whole number or a variable";
        return Err(CompileError::new(message));
    }
    let compiled = compile::compile(index, source, vars, arena)?;
    Ok(Step::Computed(Program::new(source, compiled)))
}
