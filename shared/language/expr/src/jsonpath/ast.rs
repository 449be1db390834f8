//! A parsed expression.

use jaq_json::Val;

/// The parts of an expression. The same forms are allowed at the top and inside filters.
#[derive(Debug)]
pub(crate) enum Expr {
    Literal(Val),
    Query(Query),
    /// `length(@.a)`, which may also be written as `@.a.length()`.
    Call(Function, Vec<Expr>),
    Compare(Box<Expr>, Op, Box<Expr>),
    /// `&&` if the flag is false, `||` if it is true. The flag is the value that decides the result.
    Logic(Box<Expr>, bool, Box<Expr>),
    Not(Box<Expr>),
}

#[derive(Debug)]
pub(crate) struct Query {
    pub root: Root,
    pub segments: Vec<Segment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// `$`: the expression's input, also inside filters.
    Input,
    /// `@`: the value that a filter tests.
    Current,
    /// `$NAME`: the position of the variable.
    Variable(usize),
}

#[derive(Debug)]
pub(crate) struct Segment {
    /// `..`: applies to the value and to everything inside it.
    pub descend: bool,
    pub selectors: Vec<Selector>,
}

#[derive(Debug)]
pub(crate) enum Selector {
    Name(Val),
    Index(i64),
    Wild,
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    },
    Filter(Expr),
    /// `[$i]`: a name or an index in a variable.
    Computed(Query),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// `=~`: the pattern matches the whole text.
    Matches,
    In,
    NotIn,
    Contains,
    AnyOf,
    NoneOf,
    SubsetOf,
    /// `size`: compares the length.
    Size,
    /// `empty true`: the value contains nothing.
    Empty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Append,
    Avg,
    Concat,
    Count,
    First,
    Index,
    Keys,
    Last,
    Length,
    Match,
    Max,
    Min,
    Search,
    Stddev,
    Sum,
    Value,
}

const ANY: usize = usize::MAX;

/// Functions by name, with the minimum and maximum number of arguments, including the first one.
pub(crate) const FUNCTIONS: [(&str, Function, usize, usize); 16] = [
    ("append", Function::Append, 2, ANY),
    ("avg", Function::Avg, 1, ANY),
    ("concat", Function::Concat, 1, ANY),
    ("count", Function::Count, 1, 1),
    ("first", Function::First, 1, 1),
    ("index", Function::Index, 2, 2),
    ("keys", Function::Keys, 1, 1),
    ("last", Function::Last, 1, 1),
    ("length", Function::Length, 1, 1),
    ("match", Function::Match, 2, 2),
    ("max", Function::Max, 1, ANY),
    ("min", Function::Min, 1, ANY),
    ("search", Function::Search, 2, 2),
    ("stddev", Function::Stddev, 1, ANY),
    ("sum", Function::Sum, 1, ANY),
    ("value", Function::Value, 1, 1),
];

impl Query {
    /// Whether it selects at most one value.
    pub fn singular(&self) -> bool {
        let one = |segment: &Segment| {
            let one = |selector: &Selector| {
                matches!(
                    selector,
                    Selector::Name(_) | Selector::Index(_) | Selector::Computed(_)
                )
            };
            !segment.descend && matches!(segment.selectors.as_slice(), [selector] if one(selector))
        };
        self.segments.iter().all(one)
    }
}

impl Expr {
    /// Whether it yields the list of everything selected; otherwise it yields one value, or none.
    pub fn yields_list(&self) -> bool {
        matches!(self, Expr::Query(query) if !query.singular())
    }

    /// Whether it has a value that can only be compared, because it is neither true nor false.
    pub fn counts(&self) -> bool {
        use Function::{Append, Avg, Concat, Count, Keys, Length, Max, Min, Stddev, Sum};
        match self {
            Expr::Literal(value) => !matches!(value, Val::Bool(_)),
            Expr::Call(function, _) => matches!(
                function,
                Append | Avg | Concat | Count | Keys | Length | Max | Min | Stddev | Sum
            ),
            _ => false,
        }
    }
}
