//! JSONPath: RFC 9535, and forms of older implementations that existing documents use.
//!
//! This is a separate engine, because evaluations must be bounded, see variables, and run on [`jaq_json::Val`] without
//! a conversion (`docs/adr/0010-own-jsonpath.md`). A source is parsed once into an [`ast::Expr`]. Evaluation borrows
//! from the data and copies the result.
//!
//! Differences from the RFC are listed for users in `docs/expressions.md`.

mod ast;
mod eval;
mod functions;
mod operand;
mod parse;
mod path;
mod script;
mod yielded;

pub(crate) use ast::Expr;
pub(crate) use eval::{evaluate, value};
pub(crate) use parse::Parser;
pub(crate) use path::{LocationStep, place};

use std::collections::BTreeSet;

use crate::compile::within_length;
use crate::compiled::{Compiled, Shape};
use crate::error::CompileError;

/// Parses and checks an expression.
pub(crate) fn compile(source: &str, vars: &[&str]) -> Result<Compiled, CompileError> {
    within_length(source)?;
    let mut parser = parse::Parser::new(source, vars);
    let expr = parser.whole()?;
    let used: BTreeSet<String> = std::mem::take(&mut parser.used);
    Ok(Compiled {
        shape: Shape::JsonPath(Box::new(expr)),
        used,
        secrets: std::mem::take(&mut parser.secrets),
    })
}
