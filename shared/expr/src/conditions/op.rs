//! Operators between two operands.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Pow,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// The whole text matches.
    Matches,
    /// In a list or a map; `=~` of JEXL, which matches a text too.
    In,
    NotIn,
    StartsWith,
    NotStartsWith,
    EndsWith,
    NotEndsWith,
    Between,
    And,
    Or,
    /// Refused.
    Assign,
    InstanceOf,
}
