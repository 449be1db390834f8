//! A location in a document.

use serde_json::{Map, Value};

/// A value of the document and its JSON pointer, for messages.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    pub(crate) value: &'a Value,
    pub(crate) at: String,
    /// The document that contains it; `None` for the first document.
    pub(crate) document: Option<&'a str>,
}

impl<'a> Node<'a> {
    pub(crate) fn get(&self, key: &str) -> Option<Node<'a>> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(Node {
            value,
            at: format!("{}/{}", self.at, escape(key)),
            document: self.document,
        })
    }

    pub(crate) fn text(&self, key: &str) -> Option<&'a str> {
        self.value.get(key)?.as_str()
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.value.get(key)?.as_bool()
    }

    /// The members of an object, or none for another type.
    pub(crate) fn members(&self) -> Vec<(&'a str, Node<'a>)> {
        let members = self.value.as_object().map(Map::iter).into_iter().flatten();
        members
            .map(|(key, value)| {
                (
                    key.as_str(),
                    Node {
                        value,
                        at: format!("{}/{}", self.at, escape(key)),
                        document: self.document,
                    },
                )
            })
            .collect()
    }

    /// The items of an array, or none for another type.
    pub(crate) fn items(&self) -> Vec<Node<'a>> {
        let items = self.value.as_array().into_iter().flatten().enumerate();
        items
            .map(|(index, value)| Node {
                value,
                at: format!("{}/{index}", self.at),
                document: self.document,
            })
            .collect()
    }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
