//! Queries that name one location in the data, as `toStateData` needs them.

use jaq_json::Val;

use super::ast::{Expr, Query, Root, Selector};
use super::parse::Parser;
use crate::compile::within_length;
use crate::compiled::{Compiled, Secrets, Shape};
use crate::error::CompileError;
use crate::program::Program;

/// One step on the way to a location.
pub(crate) enum LocationStep {
    Key(Val),
    Index(i64),
    /// The step is the value of a variable.
    Computed(Program),
}

/// The steps of a query that denotes one location in the input.
pub(crate) fn place(source: &str, vars: &[&str]) -> Result<Vec<LocationStep>, CompileError> {
    within_length(source)?;
    let mut parser = Parser::new(source, vars);
    let one =
        |what: &str| CompileError::new(format!("{what}; one path is needed, like `$.a.b[0]`"));
    let Expr::Query(query) = parser.whole()? else {
        return Err(one("this is not a path"));
    };
    if query.root != Root::Input {
        return Err(one("a variable is not a place in the data"));
    }
    let used = std::mem::take(&mut parser.used);
    let step = |selector: Selector| match selector {
        Selector::Name(name) => Ok(LocationStep::Key(name)),
        Selector::Index(index) => Ok(LocationStep::Index(index)),
        Selector::Computed(query) => Ok(LocationStep::Computed(computed(source, query, &used))),
        Selector::Wild => Err(one("`*` may name many places")),
        Selector::Slice { .. } => Err(one("a slice is not one place")),
        Selector::Filter(_) => Err(one("a filter may name many places")),
    };
    let mut places = Vec::with_capacity(query.segments.len());
    for mut segment in query.segments {
        if segment.descend {
            return Err(one("`..` may name many places"));
        }
        if segment.selectors.len() > 1 {
            return Err(one("a list of names or indexes is not one place"));
        }
        if let Some(selector) = segment.selectors.pop() {
            places.push(step(selector)?);
        }
    }
    Ok(places)
}

fn computed(source: &str, query: Query, used: &std::collections::BTreeSet<String>) -> Program {
    Program::new(
        source,
        Compiled {
            shape: Shape::JsonPath(Box::new(Expr::Query(query))),
            used: used.clone(),
            secrets: Secrets::default(),
        },
    )
}
