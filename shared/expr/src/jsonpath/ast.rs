//! A parsed expression.

use jaq_json::Val;

/// The parts of an expression. Inside of filters and at the top the same forms are allowed.
#[derive(Debug)]
pub(crate) enum Expr {
    Literal(Val),
    Query(Query),
    /// `length(@.a)`, which may also be written `@.a.length()`.
    Call(Function, Vec<Expr>),
    Compare(Box<Expr>, Op, Box<Expr>),
    /// `&&` if the flag is false, `||` if it is true: the flag is the value that decides the result.
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
    /// `$`: the expression's input, inside of filters too.
    Input,
    /// `@`: the value that a filter tests.
    Current,
    /// `$NAME`: the place of the variable.
    Variable(usize),
}

#[derive(Debug)]
pub(crate) struct Segment {
    /// `..`: of the value and of everything in it.
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
    /// `[$i]`: a name or an index that a variable has.
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
    /// `=~`: the whole text matches.
    Matches,
    In,
    NotIn,
    Contains,
    AnyOf,
    NoneOf,
    SubsetOf,
    /// `size`: the length is.
    Size,
    /// `empty true`: there is nothing in it.
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

/// Functions by their names: how many arguments each takes at least and at most, its first one included.
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
    /// Selects one value at most.
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
    /// Yields the list of all that is selected; else one value, or none.
    pub fn yields_list(&self) -> bool {
        matches!(self, Expr::Query(query) if !query.singular())
    }

    /// Has a value that can only be compared, not true or false.
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
