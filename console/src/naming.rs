//! How people call an instance: by its business key, or by a search attribute, rather than by its id.

use serde_json::{Map, Value};
use swirl_presentation::timeline::shown;

use crate::words::short;

/// The beginnings of keys that programs draw at random.
const DRAWN: [&str; 2] = ["drawn-", "console-"];

/// The last words of names of attributes that tell instances apart.
const KEYS: [&str; 6] = ["code", "guid", "id", "key", "number", "uuid"];
/// Ends of names in one word that have nothing to do with an id: `prepaid`, `invalid`, `void`, `liquid`.
const OTHER_ENDS: [&str; 4] = ["aid", "alid", "oid", "quid"];
/// The least number of letters before `id` in a name in one word, such as `orderid`.
const STEM_MIN: usize = 4;

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
    let is_begun = |from: char, to: char| from.is_lowercase() && to.is_uppercase();
    let letters = name.chars().zip(name.chars().skip(1));
    let begins = letters.enumerate().filter_map(|(index, (from, to))| {
        let is_word = is_begun(from, to) || !from.is_alphanumeric();
        is_word.then_some(index + 1)
    });
    let last = begins.last().unwrap_or_default();
    let word: String = name.chars().skip(last).collect();
    let word = word.to_lowercase();
    if last > 0 || KEYS.contains(&&*word) {
        return KEYS.contains(&&*word);
    }
    let stem = word.strip_suffix("id").unwrap_or_default();
    stem.chars().count() >= STEM_MIN && !OTHER_ENDS.iter().any(|end| word.ends_with(end))
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
    fn the_last_word_says_whether_it_is_a_key() {
        for name in [
            "id",
            "orderId",
            "orderID",
            "ORDER_ID",
            "order-id",
            "orderid",
            "order_code",
            "uuid",
            "invoiceNumber",
            "business.key",
        ] {
            assert!(sounds_like_a_key(name), "{name}");
        }
        for name in [
            "paid", "prepaid", "isPaid", "invalid", "bid", "barcode", "postcode", "monkey", "idea",
            "orderIds", "customer", "", "_",
        ] {
            assert!(!sounds_like_a_key(name), "{name}");
        }
    }

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
