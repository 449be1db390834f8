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
    /// The pattern matches the whole text.
    Matches,
    /// Membership in a list or a map. Also JEXL's `=~`, which matches texts too.
    In,
    NotIn,
    StartsWith,
    NotStartsWith,
    EndsWith,
    NotEndsWith,
    Between,
    And,
    Or,
    /// Recognised only in order to refuse it.
    Assign,
    InstanceOf,
}
