//! The languages of expressions.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    Cel,
    Jexl,
    Jq,
    JsonPath,
    Spel,
}
