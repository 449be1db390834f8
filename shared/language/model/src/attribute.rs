//! Search attributes: the values by which a definition's instances can be found (`metadata.swirl.search`).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Data;
use crate::time::Timestamp;

/// How many search attributes a definition may declare.
pub const ATTRIBUTES_MAX: usize = 16;
/// The longest text that is kept as an attribute's value, in bytes; a longer one is left out.
pub const ATTRIBUTE_BYTES_MAX: usize = 256;

/// Below this every whole number is exact.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The value of a search attribute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Attribute {
    #[serde(rename = "s")]
    Text(Arc<str>),
    /// Finite.
    #[serde(rename = "n")]
    Number(f64),
    #[serde(rename = "b")]
    Boolean(bool),
    #[serde(rename = "t")]
    Time(Timestamp),
}

/// The attributes of an instance that have values, by name.
pub type Attributes = BTreeMap<Arc<str>, Attribute>;

/// The type of an attribute, as its definition declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AttributeKind {
    #[serde(rename = "string")]
    Text,
    #[serde(rename = "number")]
    Number,
    #[serde(rename = "boolean")]
    Boolean,
    #[serde(rename = "time")]
    Time,
}

impl AttributeKind {
    pub const ALL: [AttributeKind; 4] = [
        AttributeKind::Text,
        AttributeKind::Number,
        AttributeKind::Boolean,
        AttributeKind::Time,
    ];

    /// The name used in definitions.
    pub fn as_str(self) -> &'static str {
        match self {
            AttributeKind::Text => "string",
            AttributeKind::Number => "number",
            AttributeKind::Boolean => "boolean",
            AttributeKind::Time => "time",
        }
    }

    pub fn of_word(word: &str) -> Option<AttributeKind> {
        let mut all = AttributeKind::ALL.into_iter();
        all.find(|kind| kind.as_str() == word)
    }

    /// Reads the value of an expression as a value of this kind. Returns `None` if it has another kind.
    pub fn read(self, data: &Data) -> Option<Attribute> {
        match self {
            AttributeKind::Text => {
                let text = match data.as_str() {
                    Some(text) => text.to_owned(),
                    // An order's number is an id more often than an amount.
                    None if matches!(data.kind(), "number" | "boolean") => data.to_string(),
                    None => return None,
                };
                (text.len() <= ATTRIBUTE_BYTES_MAX).then(|| Attribute::Text(text.into()))
            }
            AttributeKind::Number => {
                let number = serde_json::Value::from(data).as_f64()?;
                // There is one zero.
                number
                    .is_finite()
                    .then_some(Attribute::Number(number + 0.0))
            }
            AttributeKind::Boolean => data.as_bool().map(Attribute::Boolean),
            AttributeKind::Time => {
                let at = Timestamp::parse(data.as_str()?).ok()?;
                Some(Attribute::Time(at))
            }
        }
    }
}

impl Attribute {
    pub fn kind(&self) -> AttributeKind {
        match self {
            Attribute::Text(_) => AttributeKind::Text,
            Attribute::Number(_) => AttributeKind::Number,
            Attribute::Boolean(_) => AttributeKind::Boolean,
            Attribute::Time(_) => AttributeKind::Time,
        }
    }

    /// The order of two values of one kind.
    pub fn compare(&self, other: &Attribute) -> Option<Ordering> {
        match (self, other) {
            (Attribute::Text(a), Attribute::Text(b)) => Some(a.cmp(b)),
            (Attribute::Number(a), Attribute::Number(b)) => a.partial_cmp(b),
            (Attribute::Boolean(a), Attribute::Boolean(b)) => Some(a.cmp(b)),
            (Attribute::Time(a), Attribute::Time(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }

    /// A text whose order, byte by byte, is that of the values of a kind; without the characters U+0000 and U+0001,
    /// so that they may end it. Two values have the same text only if they are the same.
    pub fn sortable(&self) -> String {
        match self {
            Attribute::Text(text) => format!("s{}", escaped(text)),
            Attribute::Number(number) => {
                let bits = number.to_bits();
                let ordered = if bits >> 63 == 0 {
                    bits | 1 << 63
                } else {
                    !bits
                };
                format!("n{ordered:016x}")
            }
            Attribute::Boolean(value) => format!("b{}", u8::from(*value)),
            Attribute::Time(at) => format!("t{:016x}", (at.0 as u64) ^ (1 << 63)),
        }
    }

    /// The value of which [`Attribute::sortable`] is the text.
    pub fn of_sortable(text: &str) -> Option<Attribute> {
        let mut rest = text.chars();
        let letter = rest.next()?;
        let rest = rest.as_str();
        let bits = || match rest.len() {
            16 if rest.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                u64::from_str_radix(rest, 16).ok()
            }
            _ => None,
        };
        match letter {
            's' => Some(Attribute::Text(unescaped(rest)?.into())),
            'n' => {
                let ordered = bits()?;
                let number = match ordered >> 63 {
                    0 => f64::from_bits(!ordered),
                    _ => f64::from_bits(ordered ^ (1 << 63)),
                };
                number.is_finite().then_some(Attribute::Number(number))
            }
            'b' => match rest {
                "0" => Some(Attribute::Boolean(false)),
                "1" => Some(Attribute::Boolean(true)),
                _ => None,
            },
            't' => Some(Attribute::Time(Timestamp((bits()? ^ (1 << 63)) as i64))),
            _ => None,
        }
    }

    /// The prefix that [`Attribute::sortable`] has for every text that begins with `prefix`.
    pub fn sortable_prefix(prefix: &str) -> String {
        format!("s{}", escaped(prefix))
    }

    /// The value as shown to people.
    pub fn shown(&self) -> serde_json::Value {
        match self {
            Attribute::Text(text) => serde_json::Value::from(&**text),
            Attribute::Number(number) if number.fract() == 0.0 && number.abs() < WHOLE_MAX => {
                serde_json::Value::from(*number as i64)
            }
            Attribute::Number(number) => serde_json::Value::from(*number),
            Attribute::Boolean(value) => serde_json::Value::from(*value),
            Attribute::Time(at) => serde_json::Value::from(format!("{at:.3}")),
        }
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\0'..='\u{2}' => {
                escaped.push('\u{2}');
                escaped.push(char::from(char as u8 + 0x10));
            }
            _ => escaped.push(char),
        }
    }
    escaped
}

fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        plain.push(match char {
            '\u{2}' => match chars.next()? {
                escape @ '\u{10}'..='\u{12}' => char::from(escape as u8 - 0x10),
                _ => return None,
            },
            _ => char,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sortable_texts_keep_the_order() {
        let numbers = [f64::MIN, -2.5, -1.0, -0.001, 0.0, 0.001, 1.0, 1.5, 1e300];
        let times = [i64::MIN, -1, 0, 1, 1_700_000_000_000, i64::MAX];
        let texts = [
            "", "\0", "\u{1}", "\u{2}", "\u{3}", "a", "a\u{1}", "aa", "b", "é",
        ];
        let lists: [Vec<Attribute>; 3] = [
            numbers.map(Attribute::Number).into(),
            times.map(|ms| Attribute::Time(Timestamp(ms))).into(),
            texts.map(|text| Attribute::Text(text.into())).into(),
        ];
        for list in lists {
            for pair in list.windows(2) {
                assert!(pair[0].sortable() < pair[1].sortable(), "{pair:?}");
                assert!(!pair[0].sortable().contains(['\0', '\u{1}']), "{pair:?}");
            }
            for value in list {
                assert_eq!(Attribute::of_sortable(&value.sortable()), Some(value));
            }
        }
        for value in [false, true].map(Attribute::Boolean) {
            assert_eq!(Attribute::of_sortable(&value.sortable()), Some(value));
        }
        for bad in [
            "",
            "x",
            "n12",
            "nfff0000000000000",
            "b2",
            "s\u{2}",
            "s\u{2}a",
            "t+000000000000001",
        ] {
            assert_eq!(Attribute::of_sortable(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn whole_numbers_are_shown_as_such() {
        for (number, shown) in [(12.0, "12"), (-3.0, "-3"), (1.5, "1.5"), (1e300, "1e+300")] {
            assert_eq!(Attribute::Number(number).shown().to_string(), shown);
        }
    }

    #[test]
    fn what_an_expression_gives_is_read_by_the_type() {
        let read =
            |kind: AttributeKind, text: &str| kind.read(&Data::parse(text.as_bytes()).unwrap());
        let text = |text: &str| Some(Attribute::Text(text.into()));
        assert_eq!(read(AttributeKind::Text, "\"o1\""), text("o1"));
        assert_eq!(read(AttributeKind::Text, "17"), text("17"));
        assert_eq!(read(AttributeKind::Text, "null"), None);
        assert_eq!(read(AttributeKind::Text, "{}"), None);
        let long = format!("\"{}\"", "x".repeat(ATTRIBUTE_BYTES_MAX + 1));
        assert_eq!(read(AttributeKind::Text, &long), None);
        assert_eq!(
            read(AttributeKind::Number, "1.5"),
            Some(Attribute::Number(1.5))
        );
        assert_eq!(read(AttributeKind::Number, "\"1.5\""), None);
        assert_eq!(
            read(AttributeKind::Time, "\"1970-01-01T00:00:01Z\""),
            Some(Attribute::Time(Timestamp(1000)))
        );
        assert_eq!(
            read(AttributeKind::Boolean, "true"),
            Some(Attribute::Boolean(true))
        );
    }
}
