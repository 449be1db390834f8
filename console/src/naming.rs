//! How people call an instance: by its business key, or by a search attribute, rather than by its id.

use serde_json::{Map, Value};
use swirl_presentation::timeline::shown;

use crate::words::short;

/// The beginnings of keys that programs draw at random.
const DRAWN: [&str; 2] = ["drawn-", "console-"];

/// How the names of attributes end that tell instances apart.
const KEYS: [&str; 4] = ["id", "key", "number", "code"];

/// The name of an instance, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    pub kind: Kind,
}

/// The source of the name under which pages show an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Key,
    /// The search attribute with this name.
    Attribute(String),
    Id,
}

impl Name {
    /// By its business key, the key that it was started with, a text among its search attributes, or its id. Of several
    /// attributes it is the first whose name sounds like a key.
    pub fn of(
        id: &str,
        instance_key: Option<&str>,
        key: Option<&str>,
        attributes: &Map<String, Value>,
    ) -> Name {
        let key = instance_key.or(key.filter(|key| says_something(key)));
        if let Some(key) = key.filter(|key| !key.trim().is_empty()) {
            return Name {
                text: key.to_owned(),
                kind: Kind::Key,
            };
        }
        let texts = attributes.iter();
        let mut texts = texts.filter(|(_, value)| value.is_string() && *value != "");
        let likely = texts.clone().find(|(name, _)| sounds_like_a_key(name));
        match likely.or_else(|| texts.next()) {
            Some((name, value)) => Name {
                text: shown(value),
                kind: Kind::Attribute(name.clone()),
            },
            None => Name {
                text: short(id),
                kind: Kind::Id,
            },
        }
    }
}

fn sounds_like_a_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    KEYS.iter().any(|end| name.ends_with(end))
}

/// A random key says nothing.
pub fn says_something(key: &str) -> bool {
    !DRAWN.iter().any(|drawn| key.starts_with(drawn))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_instance_is_called_by_what_people_know() {
        let attributes = json!({"amount": 7, "customer": "c-1", "note": "", "orderId": "A-2108"});
        let attributes = attributes.as_object().unwrap();
        let none = Map::new();
        let of = |instance_key, key, attributes| {
            Name::of("0123456789abcdef", instance_key, key, attributes)
        };
        let name = |text: &str, kind| Name {
            text: text.to_owned(),
            kind,
        };
        let order = Kind::Attribute("orderId".to_owned());
        assert_eq!(of(Some("k"), Some("s"), attributes), name("k", Kind::Key));
        assert_eq!(of(None, Some("s"), attributes), name("s", Kind::Key));
        assert_eq!(of(None, Some("drawn-1"), attributes), name("A-2108", order));
        assert_eq!(
            of(None, Some("console-1"), &none),
            name("0123456789ab…", Kind::Id)
        );
    }
}
