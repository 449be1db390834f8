//! The objects of the language, as found by the exploration.

use serde_json::Value;

use super::shape::Shape;

/// An object of the language.
#[derive(Debug, Default)]
pub(super) struct LanguageObject {
    /// The reader's name for it; empty for the definition itself.
    pub(super) what: String,
    pub(super) properties: Vec<Property>,
    /// Whether other properties are allowed as well.
    pub(super) is_open: bool,
    /// Required properties.
    pub(super) required: Vec<Required>,
    /// Sets of properties of which one is required if another property has this word.
    pub(super) required_for: Vec<(String, String, Vec<String>)>,
    /// Pairs of which only one may be present.
    pub(super) exclusive: Vec<Pair>,
    /// A property whose word determines the other properties, and the object for each word.
    pub(super) variants: Option<(String, Vec<(String, usize)>)>,
    /// A minimal value that the reader accepts for this object.
    pub(super) sample: Value,
}

/// One of these properties is required.
#[derive(Debug, PartialEq)]
pub(super) struct Required {
    pub(super) own: Vec<String>,
    /// Or an item of a list must have a property, such as the mark of the first state.
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
    /// The reader accepts it, but recommends another form.
    pub(super) is_other_editions: bool,
}
