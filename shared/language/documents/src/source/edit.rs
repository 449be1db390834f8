//! Changes a tree, to turn a document of one edition into a document of another.
//!
//! Every value keeps the location from which it was read, and a new value gets the location of the value for which it
//! is created. So findings refer to the document as it was written, however its tree was changed.

use super::node::{Member, Node, Value};

impl Node {
    /// A text with the location of this value.
    pub fn text_here(&self, text: impl Into<Box<str>>) -> Node {
        self.here(Value::String(text.into()))
    }

    /// A boolean with the location of this value.
    pub fn flag_here(&self, flag: bool) -> Node {
        self.here(Value::Bool(flag, flag.to_string().into()))
    }

    /// A list with the location of this value.
    pub fn list_here(&self, items: Vec<Node>) -> Node {
        self.here(Value::Array(items))
    }

    /// An object with the location of this value. Its keys have the locations of their values.
    pub fn object_here<'k>(&self, members: impl IntoIterator<Item = (&'k str, Node)>) -> Node {
        let members = members.into_iter().map(|(key, value)| member(key, value));
        self.here(Value::Object(members.collect()))
    }

    fn here(&self, value: Value) -> Node {
        Node {
            value,
            pointer: self.pointer.clone(),
            line: self.line,
            column: self.column,
        }
    }

    pub fn items_mut(&mut self) -> Option<&mut Vec<Node>> {
        match &mut self.value {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let member = self.all_members_mut()?.iter_mut();
        let mut member = member.filter(|member| &*member.key == key);
        member.next().map(|member| &mut member.value)
    }

    /// The values of all members, in the order of the document.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        let members = self.all_members_mut().map(Vec::as_mut_slice);
        let members = members.unwrap_or_default().iter_mut();
        members.map(|member| &mut member.value)
    }

    /// Removes a member and returns its value, which keeps its location.
    pub fn take(&mut self, key: &str) -> Option<Node> {
        let members = self.all_members_mut()?;
        let at = members.iter().position(|member| &*member.key == key)?;
        Some(members.remove(at).value)
    }

    /// Inserts a member, or replaces the one with the same key. Does nothing if this isn't an object.
    pub fn put(&mut self, key: &str, value: Node) {
        let Some(members) = self.all_members_mut() else {
            return;
        };
        match members.iter_mut().find(|member| &*member.key == key) {
            Some(known) => *known = member(key, value),
            None => members.push(member(key, value)),
        }
    }

    /// Renames a member's key; key and value keep their locations. Returns false if there is no such member, or one
    /// with the new key exists.
    pub fn rename(&mut self, key: &str, to: &str) -> bool {
        if self.get(to).is_some() {
            return false;
        }
        let members = self.all_members_mut().into_iter().flatten();
        let mut found = members.filter(|member| &*member.key == key);
        match found.next() {
            Some(member) => {
                member.key = to.into();
                true
            }
            None => false,
        }
    }

    fn all_members_mut(&mut self) -> Option<&mut Vec<Member>> {
        match &mut self.value {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }
}

fn member(key: &str, value: Node) -> Member {
    Member {
        key: key.into(),
        key_line: value.line,
        key_column: value.column,
        value,
    }
}

#[cfg(test)]
mod tests {
    use crate::source::{Limits, parse};

    #[test]
    fn values_keep_their_locations() {
        let text = b"a:\n  old: 1\n  moved: {x: 2}\nb: 3\n";
        let mut root = parse(text, &Limits::default()).unwrap();
        let a = root.get_mut("a").unwrap();
        assert!(a.rename("old", "new") && !a.rename("old", "new"));
        assert!(!a.rename("new", "moved"));
        let moved = a.take("moved").unwrap();
        let made = moved.object_here([("y", moved.get("x").unwrap().clone())]);
        root.put("c", made);
        root.put("b", root.get("b").unwrap().text_here("three"));
        let shown = r#"{"a":{"new":1},"b":"three","c":{"y":2}}"#;
        assert_eq!(root.to_data().to_string(), shown);
        let place = |pointer: &str| {
            let node = root.at(pointer).unwrap();
            (node.pointer().to_owned(), node.line())
        };
        assert_eq!(place("/a/new"), ("/a/old".to_owned(), 2));
        assert_eq!(place("/c"), ("/a/moved".to_owned(), 3));
        assert_eq!(place("/c/y"), ("/a/moved/x".to_owned(), 3));
        assert_eq!(place("/b"), ("/b".to_owned(), 4));
    }
}
