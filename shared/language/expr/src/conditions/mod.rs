//! SpEL, JEXL and CEL: the subset that conditions of workflows use (docs/language.md#decision-27).
//!
//! One tree and one evaluator serve all three; [`dialect`] has the differences, and a source is parsed in one pass.
//! Conditions cannot create objects of a host language, call code or access anything but the data, so types,
//! constructors, assignments and loops are refused when a source is compiled. Long chains (`1 + 1 + ...`, `a.b.c ...`)
//! are lists in the tree, so only nesting needs stack, and nesting is bounded (`docs/adr/0014-condition-languages.md`).
//! `docs/expressions.md` lists the available parts for users.

mod ast;
mod dialect;
mod eval;
mod functions;
mod lex;
mod macros;
mod op;
mod parse;
mod primary;
mod values;

pub(crate) use ast::Tree;
pub(crate) use dialect::Dialect;
pub(crate) use eval::evaluate;

use crate::compile::within_length;
use crate::compiled::{Compiled, Shape};
use crate::error::CompileError;

/// The stack that a source with maximum nesting needs.
const STACK: usize = 1 << 20;

/// Parses and checks an expression. `vars` are as in [`crate::Program::jq`]. If `error` is one of them, names are
/// looked up in it before the data.
pub(crate) fn compile(
    source: &str,
    vars: &[&str],
    dialect: Dialect,
) -> Result<Compiled, CompileError> {
    within_length(source)?;
    stacker::maybe_grow(STACK, 4 * STACK, || {
        let mut parser = parse::Parser::new(source, vars, dialect);
        let root = parser.whole()?;
        let error = vars.iter().rposition(|var| *var == "error");
        Ok(Compiled {
            shape: Shape::Condition(Box::new(Tree {
                root,
                dialect,
                error,
                names: vars.iter().map(|var| (*var).into()).collect(),
            })),
            used: parser.used,
            secrets: parser.secrets,
        })
    })
}
