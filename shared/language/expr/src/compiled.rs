//! The compiled form of an expression.

use std::collections::BTreeSet;

use crate::conditions::Tree;
use crate::engine::Filter;
use crate::jsonpath::Expr;
use crate::simple::Simple;

/// The compiled form of an expression, and facts about its source.
pub(crate) struct Compiled {
    pub shape: Shape,
    pub used: BTreeSet<String>,
    pub secrets: Secrets,
}

/// The way in which an expression is evaluated.
pub(crate) enum Shape {
    /// Evaluated without jaq.
    Simple(Simple),
    JsonPath(Box<Expr>),
    /// SpEL, JEXL or CEL.
    Condition(Box<Tree>),
    /// A filter, and the positions of the variables that it uses.
    Filter {
        filter: Box<Filter>,
        vars: Vec<usize>,
    },
}

/// How an expression uses `$SECRETS` (0.8).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// The names in `$SECRETS.NAME` and `$SECRETS["NAME"]`, without duplicates.
    pub names: Vec<String>,
    /// `$SECRETS` is also used in another way, so the names aren't complete.
    pub other: bool,
}
