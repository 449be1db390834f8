//! A compiled expression.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use swirl_model::Data;
use swirl_model::workflow::Language;

use crate::compile;
use crate::compiled::{Compiled, Secrets, Shape};
use crate::conditions::{self, Dialect};
use crate::engine::{self, Outcome};
use crate::error::{CompileError, EvalError};
use crate::jsonpath;
use crate::meter::Limits;
use crate::value::V;

/// A compiled expression. It is cheap to clone and to share between threads.
#[derive(Clone)]
pub struct Program(Arc<Inner>);

struct Inner {
    source: Box<str>,
    shape: Shape,
    used: BTreeSet<String>,
    secrets: Secrets,
}

/// The environment of an evaluation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Env {
    /// Unix time in milliseconds: jq's `now` gives it in seconds.
    pub now_ms: i64,
    pub limits: Limits,
}

impl Program {
    /// Compiles an expression in any of the languages.
    pub fn compile(
        language: Language,
        source: &str,
        vars: &[&str],
    ) -> Result<Program, CompileError> {
        match language {
            Language::Cel => Program::cel(source, vars),
            Language::Jexl => Program::jexl(source, vars),
            Language::Jq => Program::jq(source, vars),
            Language::JsonPath => Program::jsonpath(source, vars),
            Language::Spel => Program::spel(source, vars),
        }
    }

    /// Compiles a jq expression (without `${ }`). `vars`: the names, without `$`, of the variables that an evaluation
    /// provides. Other variables are an error.
    pub fn jq(source: &str, vars: &[&str]) -> Result<Program, CompileError> {
        compile::jq(source, vars).map(|compiled| Program::new(source, compiled))
    }

    /// Compiles a JSONPath expression. Variables are as in [`Program::jq`]. It yields one value, or none. If a path may
    /// select many, the value is the list of all matches ([`Program::yields_list`]).
    pub fn jsonpath(source: &str, vars: &[&str]) -> Result<Program, CompileError> {
        jsonpath::compile(source, vars).map(|compiled| Program::new(source, compiled))
    }

    /// Compiles a SpEL expression. Variables are as in [`Program::jq`], written `#name`. A name alone is a member of
    /// the data. If `error` is one of the variables, as for the handlers of the tasks draft, a name is looked up in the
    /// error first, and `$.error` is the error even if the data has no such member.
    pub fn spel(source: &str, vars: &[&str]) -> Result<Program, CompileError> {
        Program::condition(source, vars, Dialect::Spel)
    }

    /// Compiles a JEXL expression. Names and variables are as in [`Program::spel`].
    pub fn jexl(source: &str, vars: &[&str]) -> Result<Program, CompileError> {
        Program::condition(source, vars, Dialect::Jexl)
    }

    /// Compiles a CEL expression. Names and variables are as in [`Program::spel`].
    pub fn cel(source: &str, vars: &[&str]) -> Result<Program, CompileError> {
        Program::condition(source, vars, Dialect::Cel)
    }

    fn condition(source: &str, vars: &[&str], dialect: Dialect) -> Result<Program, CompileError> {
        conditions::compile(source, vars, dialect).map(|compiled| Program::new(source, compiled))
    }

    pub(crate) fn new(source: &str, compiled: Compiled) -> Program {
        let Compiled {
            shape,
            used,
            secrets,
        } = compiled;
        Program(Arc::new(Inner {
            source: source.into(),
            shape,
            used,
            secrets,
        }))
    }

    /// Evaluates the expression for at most one output; `None` if it has none. `vars`: the values of the variables, in
    /// the order of their names in [`Program::jq`]. Missing ones are null.
    pub fn one(&self, input: &Data, vars: &[Data], env: &Env) -> Result<Option<Data>, EvalError> {
        match &self.0.shape {
            Shape::Simple(simple) => simple
                .eval(input, vars)
                .map(|value| Some(Data(value.into_owned()))),
            Shape::JsonPath(expr) => {
                let found = jsonpath::evaluate(expr, input, vars, &env.limits, env.now_ms)?;
                Ok(found.map(Data))
            }
            Shape::Condition(tree) => {
                let limits = &env.limits;
                conditions::evaluate(tree, input, vars, limits, env.now_ms)
                    .map(|val| Some(Data(val)))
            }
            Shape::Filter {
                filter,
                vars: places,
            } => {
                let value = |place: &usize| match vars.get(*place) {
                    Some(value) => V::new(value.0.clone()),
                    None => V::null(),
                };
                let vars = || places.iter().map(value).collect();
                match engine::one(filter, input, vars, &env.limits, env.now_ms)? {
                    Outcome::None => Ok(None),
                    Outcome::One(val) => Data::checked(val).map(Some).map_err(EvalError::NotJson),
                    Outcome::Many => Err(EvalError::ManyOutputs),
                    Outcome::Error(message) => Err(EvalError::Message(message)),
                }
            }
        }
    }

    /// Evaluates a jq expression for the list of all its outputs. `names`: the variables that it was compiled with.
    ///
    /// # Errors
    /// As for [`Program::one`].
    pub fn outputs(
        &self,
        names: &[&str],
        input: &Data,
        vars: &[Data],
        env: &Env,
    ) -> Result<Data, EvalError> {
        let all = Program::jq(&format!("[{}\n]", self.source()), names);
        let all = all.map_err(|error| EvalError::Message(error.to_string()))?;
        Ok(all.one(input, vars, env)?.unwrap_or_default())
    }

    /// Whether the value is the list of all matches of a path that may select many. As a condition, such an expression
    /// holds if it selects anything.
    pub fn yields_list(&self) -> bool {
        match &self.0.shape {
            Shape::JsonPath(expr) => expr.yields_list(),
            Shape::Condition(tree) => tree.root.yields_matches(),
            _ => false,
        }
    }

    /// How the expression uses `$SECRETS`.
    pub fn secrets(&self) -> &Secrets {
        &self.0.secrets
    }

    /// Whether the expression uses this variable (given without `$`).
    pub fn uses_var(&self, name: &str) -> bool {
        self.0.used.contains(name)
    }

    /// The source as it was given.
    pub fn source(&self) -> &str {
        &self.0.source
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Program").field(&self.source()).finish()
    }
}
