//! A parsed condition.

use jaq_json::Val;

use super::Dialect;
use super::functions::Function;
use super::op::Op;
use crate::jsonpath::Expr as JsonPath;

#[derive(Debug)]
pub(crate) struct Tree {
    pub root: Expr,
    pub dialect: Dialect,
    /// The position of the variable `error`, if there is one.
    pub error: Option<usize>,
    /// The variables.
    pub names: Vec<Box<str>>,
}

#[derive(Debug)]
pub(crate) enum Expr {
    Literal(Val),
    /// A name without prefix: a member of the error or of the data, or a variable.
    Name(Box<str>),
    /// `$`, `#root`: the data.
    Data,
    /// `$.error`: the data's member, or else the variable at this position.
    Error(usize),
    /// `#this`: the current element of a selection or projection.
    This,
    /// `#name`, `$name`: a variable.
    Variable(usize),
    /// The current element of a CEL macro, by the number of enclosing macros.
    Local(usize),
    /// A JSONPath that begins with `$`, or `#jsonPath(data, '...')`.
    Path(Box<Expr>, Box<JsonPath>),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    /// `a.b[0].size()`.
    Steps(Box<Expr>, Vec<Step>),
    Call(Function, Vec<Expr>),
    /// `has(a.b)`.
    Has(Box<Expr>, Val),
    /// `&&` if the flag is false, `||` if it is true. The flag is the value that decides the result.
    Logic(bool, Vec<Expr>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    /// Evaluated from left to right.
    Chain(Box<Expr>, Vec<(Op, Expr)>),
    /// `a ? b : c`.
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `a ?: b`, `a ?? b` (with the flag set, only null continues with the next).
    Otherwise(bool, Vec<Expr>),
}

#[derive(Debug)]
pub(crate) enum Step {
    Member(Val),
    Index(Expr),
    Call(Function, Vec<Expr>),
    /// `.?[ ]`, `.^[ ]`, `.$[ ]`
    Select(Pick, Expr),
    /// `.![ ]`
    Project(Expr),
    /// A CEL macro with its condition, and the expression that is evaluated for each match.
    Macro(Macro, Expr, Option<Expr>),
    /// `?.`: the rest is skipped if the value is null.
    Safe,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pick {
    All,
    First,
    Last,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Macro {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

impl Expr {
    /// Whether the value is the list of all matches of a path. A comparison of such a list with one value holds if it
    /// holds for one of its elements.
    pub fn yields_matches(&self) -> bool {
        matches!(self, Expr::Path(_, path) if path.yields_list())
    }
}
