//! The objects of the language, as exploration finds them.

use serde_json::Value;

use super::shape::Shape;

/// An object of the language.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// How the reader calls it; empty for the definition itself.
    pub(super) what: String,
    pub(super) properties: Vec<Property>,
    /// Whether other properties are allowed beside them.
    pub(super) is_open: bool,
    /// Required properties.
    pub(super) required: Vec<Required>,
    /// Of each set one property must be there if another one is this word.
    pub(super) required_for: Vec<(String, String, Vec<String>)>,
    /// Of each pair only one may be there.
    pub(super) exclusive: Vec<Pair>,
    /// A property whose word says which properties there are, and the object for each word.
    pub(super) variants: Option<(String, Vec<(String, usize)>)>,
    /// The least that the reader takes for this object.
    pub(super) sample: Value,
}

/// One of some properties must be there.
#[derive(Debug, PartialEq)]
pub(super) struct Required {
    pub(super) own: Vec<String>,
    /// Or an item of a list has a property: the mark of the state that comes first.
    pub(super) of_items: Vec<(String, String)>,
}

/// Two properties that exclude each other, and the values of each that count as absent: `end: false`.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) names: [String; 2],
    pub(super) nothing: [Vec<Value>; 2],
}

#[derive(Debug)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) shape: Shape,
    /// The reader takes it, and says that it should be written otherwise.
    pub(super) is_other_editions: bool,
}
