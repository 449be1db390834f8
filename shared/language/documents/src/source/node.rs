//! The tree.

use swirl_model::Data;

use super::number;
use crate::diagnostic::SourceLocation;

/// A value with its location. A YAML alias has the location of the anchored value, but its own pointer.
#[derive(Debug, Clone)]
pub struct Node {
    pub(super) value: Value,
    pub(super) pointer: Box<str>,
    pub(super) line: usize,
    pub(super) column: usize,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    /// The text as written (`~`, `null` or nothing).
    Null(Box<str>),
    Bool(bool, Box<str>),
    /// The text as written.
    Number(Box<str>),
    String(Box<str>),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

/// A member of an object, in the order of the document.
#[derive(Debug, Clone)]
pub struct Member {
    pub(super) key: Box<str>,
    pub(super) key_line: usize,
    pub(super) key_column: usize,
    pub(super) value: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl Node {
    pub fn kind(&self) -> NodeKind {
        match self.value {
            Value::Null(_) => NodeKind::Null,
            Value::Bool(..) => NodeKind::Bool,
            Value::Number(_) => NodeKind::Number,
            Value::String(_) => NodeKind::String,
            Value::Array(_) => NodeKind::Array,
            Value::Object(_) => NodeKind::Object,
        }
    }

    /// The kind in sentences: `a string`, `null`, `an object`.
    pub fn kind_word(&self) -> &'static str {
        match self.kind() {
            NodeKind::Null => "null",
            NodeKind::Bool => "a boolean",
            NodeKind::Number => "a number",
            NodeKind::String => "a string",
            NodeKind::Array => "a list",
            NodeKind::Object => "an object",
        }
    }

    /// JSON pointer; empty for the root.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// From 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// From 1, in characters.
    pub fn column(&self) -> usize {
        self.column
    }

    pub fn place(&self) -> SourceLocation {
        SourceLocation {
            pointer: self.pointer.to_string(),
            line: self.line,
            column: self.column,
        }
    }

    /// A scalar as written in the document (for a string, its value), so that a version `1.0` keeps its zero. Empty for
    /// lists and objects.
    pub fn raw(&self) -> &str {
        match &self.value {
            Value::Null(raw) | Value::Bool(_, raw) | Value::Number(raw) | Value::String(raw) => raw,
            Value::Array(_) | Value::Object(_) => "",
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null(_))
    }

    pub fn is_number(&self) -> bool {
        matches!(self.value, Value::Number(_))
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value, _) => Some(value),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// A number that is whole and in range; `2.0` counts as whole.
    pub fn as_i64(&self) -> Option<i64> {
        match &self.value {
            Value::Number(raw) => number::as_i64(raw),
            _ => None,
        }
    }

    pub fn as_f64(&self) -> Option<f64> {
        match &self.value {
            Value::Number(raw) => number::as_f64(raw),
            _ => None,
        }
    }

    pub fn items(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    pub fn members(&self) -> Option<&[Member]> {
        match &self.value {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    pub fn member(&self, key: &str) -> Option<&Member> {
        self.members()?.iter().find(|member| &*member.key == key)
    }

    /// The value of a member; `None` also if this isn't an object.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.member(key).map(Member::value)
    }

    /// The value at a JSON pointer relative to this one.
    pub fn at(&self, pointer: &str) -> Option<&Node> {
        let Some(rest) = pointer.strip_prefix('/') else {
            return pointer.is_empty().then_some(self);
        };
        rest.split('/')
            .try_fold(self, |node, part| match &node.value {
                Value::Array(items) => items.get(part.parse::<usize>().ok()?),
                _ => node.get(&part.replace("~1", "/").replace("~0", "~")),
            })
    }

    pub fn to_data(&self) -> Data {
        match &self.value {
            Value::Null(_) => Data::NULL,
            Value::Bool(value, _) => Data::bool(*value),
            Value::Number(raw) => number::to_data(raw),
            Value::String(text) => Data::string(&**text),
            Value::Array(items) => Data::array(items.iter().map(Node::to_data).collect()),
            Value::Object(members) => {
                let mut object = Data::object();
                for member in members {
                    object.set(&member.key, member.value.to_data());
                }
                object
            }
        }
    }
}

impl Member {
    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn key_line(&self) -> usize {
        self.key_line
    }

    pub fn key_column(&self) -> usize {
        self.key_column
    }

    /// The position of the key, with the value's pointer.
    pub fn key_place(&self) -> SourceLocation {
        let pointer = self.value.pointer.to_string();
        SourceLocation {
            pointer,
            line: self.key_line,
            column: self.key_column,
        }
    }

    pub fn value(&self) -> &Node {
        &self.value
    }
}

impl From<&Node> for SourceLocation {
    fn from(node: &Node) -> SourceLocation {
        node.place()
    }
}

impl From<&Member> for SourceLocation {
    fn from(member: &Member) -> SourceLocation {
        member.key_place()
    }
}

/// The pointer of a member.
pub(super) fn child(pointer: &str, key: &str) -> String {
    match key.contains(['~', '/']) {
        true => format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")),
        false => format!("{pointer}/{key}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::source::{Limits, parse};

    #[test]
    fn places_and_pointers() {
        let text = b"a:\n  - x: 1\n    'b/c~': 1.0\n  - [null, 'q']\n";
        let root = parse(text, &Limits::default()).unwrap();
        let version = root.at("/a/0/b~1c~0").unwrap();
        assert_eq!((version.pointer(), version.raw()), ("/a/0/b~1c~0", "1.0"));
        assert_eq!((version.line(), version.column()), (3, 13));
        let member = root.at("/a/0").unwrap().member("b/c~").unwrap();
        assert_eq!((member.key_line(), member.key_column()), (3, 5));
        assert_eq!(root.at("/a/1/1").and_then(|node| node.as_str()), Some("q"));
        assert!(root.at("/a/7").is_none() && root.at("a").is_none());
        assert_eq!(version.as_i64(), Some(1));
    }
}
