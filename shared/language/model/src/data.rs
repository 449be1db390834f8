//! JSON data as the engine holds it.
//!
//! [`Data`] wraps jaq's value type, so that expressions run on state data without a conversion
//! (`docs/adr/0002-data-is-a-jq-value.md`). A clone is a reference count, a change copies only the
//! nodes on its way (`Arc::make_mut`). Everything that enters is JSON: keys are strings, and there are no byte strings,
//! no NaN and no infinity. [`Data::checked`] checks values that an expression produced.

use std::fmt;
use std::sync::Arc;

use jaq_json::{Map, Num, Val};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A JSON value. Equality is by value: `1` equals `1.0`, objects ignore the order of their keys.
#[derive(Clone, Default)]
pub struct Data(pub Val);

/// The reason why a value is not valid data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotJson {
    #[error("an object key that is not a string")]
    Key,
    #[error("a byte string")]
    Bytes,
    #[error("a string that is not valid UTF-8")]
    Utf8,
}

impl Data {
    pub const NULL: Data = Data(Val::Null);

    /// An empty object, `{}`.
    pub fn object() -> Data {
        Data(Val::Obj(Arc::default()))
    }

    pub fn array(items: Vec<Data>) -> Data {
        Data(Val::Arr(Arc::new(items.into_iter().map(|d| d.0).collect())))
    }

    pub fn string(text: impl Into<String>) -> Data {
        Data(Val::from(text.into()))
    }

    pub fn bool(value: bool) -> Data {
        Data(Val::Bool(value))
    }

    pub fn int(value: i64) -> Data {
        Data(Val::Num(Num::from_integral(value)))
    }

    /// Accepts a value produced by an expression, unless JSON cannot represent it.
    pub fn checked(value: Val) -> Result<Data, NotJson> {
        fn check(value: &Val) -> Result<(), NotJson> {
            match value {
                Val::Null | Val::Bool(_) | Val::Num(_) => Ok(()),
                Val::BStr(_) => Err(NotJson::Bytes),
                Val::TStr(text) => std::str::from_utf8(text)
                    .map(drop)
                    .map_err(|_| NotJson::Utf8),
                Val::Arr(items) => items.iter().try_for_each(check),
                Val::Obj(map) => map.iter().try_for_each(|(key, value)| match key {
                    Val::TStr(_) => check(key).and_then(|()| check(value)),
                    _ => Err(NotJson::Key),
                }),
            }
        }
        check(&value).map(|()| Data(value))
    }

    /// Parses JSON text.
    pub fn parse(text: &[u8]) -> Result<Data, serde_json::Error> {
        serde_json::from_slice(text)
    }

    pub fn is_null(&self) -> bool {
        matches!(self.0, Val::Null)
    }

    pub fn is_object(&self) -> bool {
        matches!(self.0, Val::Obj(_))
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.0 {
            Val::Bool(value) => Some(value),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Val::TStr(text) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Val]> {
        match &self.0 {
            Val::Arr(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&Map> {
        match &self.0 {
            Val::Obj(map) => Some(map),
            _ => None,
        }
    }

    /// Returns a member, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<Data> {
        self.as_object()?.get(&text(key)).cloned().map(Data)
    }

    /// Sets a member. A value that isn't an object becomes an empty object first.
    pub fn set(&mut self, key: &str, value: Data) {
        if !matches!(self.0, Val::Obj(_)) {
            self.0 = Val::Obj(Arc::default());
        }
        if let Val::Obj(map) = &mut self.0 {
            Arc::make_mut(map).insert(text(key), value.0);
        }
    }

    /// Removes a member, if this is an object that has it.
    pub fn remove(&mut self, key: &str) {
        if let Val::Obj(map) = &mut self.0 {
            Arc::make_mut(map).shift_remove(&text(key));
        }
    }

    /// `null`, `boolean`, `number`, `string`, `array` or `object`.
    pub fn kind(&self) -> &'static str {
        match &self.0 {
            Val::Null => "null",
            Val::Bool(_) => "boolean",
            Val::Num(_) => "number",
            Val::BStr(_) | Val::TStr(_) => "string",
            Val::Arr(_) => "array",
            Val::Obj(_) => "object",
        }
    }

    /// The kind as a part of a sentence: "must be a list, and is a string".
    pub fn kind_in_words(&self) -> &'static str {
        match self.kind() {
            "object" => "an object",
            "array" => "an array",
            "string" => "a string",
            "number" => "a number",
            "boolean" => "a boolean",
            other => other,
        }
    }

    /// Whether its JSON text is longer than this many bytes. The cost is bounded by that number.
    pub fn exceeds(&self, bytes_max: usize) -> bool {
        surely_left(&self.0, bytes_max).is_none() && left(&self.0, bytes_max).is_none()
    }

    /// The number of these bytes that its JSON text leaves; `None`: it needs more. The cost is bounded by that
    /// number.
    pub fn left_of(&self, bytes: usize) -> Option<usize> {
        left(&self.0, bytes)
    }

    /// The length of its JSON text.
    pub fn bytes(&self) -> usize {
        left(&self.0, usize::MAX).map_or(usize::MAX, |left| usize::MAX - left)
    }

    /// The form of a value inside a longer string: strings without quotes, everything else as compact JSON
    /// (docs/language.md#decision-13).
    pub fn to_text(&self) -> String {
        match self.as_str() {
            Some(text) => text.to_owned(),
            None => self.to_string(),
        }
    }
}

/// A lower bound of the remaining bytes, computed from lengths alone. Data is nearly always far below its limit, and
/// then its strings need not be read.
fn surely_left(value: &Val, bytes: usize) -> Option<usize> {
    /// The length of a byte's longest escape.
    const ESCAPED: usize = r"\u0000".len();
    match value {
        Val::Null | Val::Bool(_) => bytes.checked_sub(5),
        Val::Num(Num::Int(_)) => bytes.checked_sub(20),
        // Of any length.
        Val::Num(_) => None,
        Val::BStr(text) | Val::TStr(text) => bytes.checked_sub(2 + text.len() * ESCAPED),
        Val::Arr(items) => {
            let bytes = bytes.checked_sub(2 + items.len())?;
            let mut items = items.iter();
            items.try_fold(bytes, |bytes, item| surely_left(item, bytes))
        }
        Val::Obj(map) => {
            let bytes = bytes.checked_sub(2 + 2 * map.len())?;
            map.iter().try_fold(bytes, |bytes, (key, item)| {
                surely_left(item, surely_left(key, bytes)?)
            })
        }
    }
}

/// How many bytes are left of these when a value is written as compact JSON.
fn left(value: &Val, bytes: usize) -> Option<usize> {
    let separators = |count: usize| 2 + count.saturating_sub(1);
    match value {
        Val::Null => bytes.checked_sub(4),
        Val::Bool(value) => bytes.checked_sub(if *value { 4 } else { 5 }),
        Val::Num(Num::Int(number)) => {
            let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
            bytes.checked_sub(digits + usize::from(*number < 0))
        }
        Val::Num(_) => {
            let text = serde_json::to_string(&Data(value.clone())).unwrap_or_default();
            bytes.checked_sub(text.len())
        }
        Val::BStr(text) | Val::TStr(text) => {
            let bytes = bytes.checked_sub(text.len() + 2)?;
            let escapes = text.iter().map(|byte| match byte {
                b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 1,
                0..0x20 => 5,
                _ => 0,
            });
            bytes.checked_sub(escapes.sum())
        }
        Val::Arr(items) => {
            let bytes = bytes.checked_sub(separators(items.len()))?;
            items
                .iter()
                .try_fold(bytes, |bytes, item| left(item, bytes))
        }
        Val::Obj(map) => {
            let bytes = bytes.checked_sub(separators(map.len()) + map.len())?;
            map.iter()
                .try_fold(bytes, |bytes, (key, item)| left(item, left(key, bytes)?))
        }
    }
}

/// Returns the length of the JSON text of a value.
pub fn json_bytes(value: &impl Serialize) -> usize {
    let mut counter = Counter(0);
    // Writing here cannot fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

struct Counter(usize);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A string value, as object keys are.
pub fn text(value: &str) -> Val {
    Val::from(value.to_owned())
}

impl PartialEq for Data {
    fn eq(&self, other: &Data) -> bool {
        self.0 == other.0
    }
}

/// Compact JSON.
impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<serde_json::Value> for Data {
    fn from(value: serde_json::Value) -> Data {
        use serde_json::Value;
        Data(match value {
            Value::Null => Val::Null,
            Value::Bool(value) => Val::Bool(value),
            Value::Number(number) => num(&number),
            Value::String(text) => Val::from(text),
            Value::Array(items) => Val::Arr(Arc::new(
                items.into_iter().map(|v| Data::from(v).0).collect(),
            )),
            Value::Object(map) => Val::Obj(Arc::new(
                map.into_iter()
                    .map(|(k, v)| (Val::from(k), Data::from(v).0))
                    .collect(),
            )),
        })
    }
}

fn num(number: &serde_json::Number) -> Val {
    Val::Num(match number.as_i64() {
        Some(int) => Num::from_integral(int),
        None => match number.as_u64() {
            Some(int) => Num::from_integral(int),
            None => Num::Float(number.as_f64().unwrap_or(f64::MAX)),
        },
    })
}

impl From<&Data> for serde_json::Value {
    fn from(data: &Data) -> serde_json::Value {
        serde_json::to_value(data).unwrap_or_default()
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, serializer)
    }
}

struct Ref<'a>(&'a Val);

impl Serialize for Ref<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(self.0, serializer)
    }
}

fn serialize<S: Serializer>(value: &Val, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Val::Null => serializer.serialize_unit(),
        Val::Bool(value) => serializer.serialize_bool(*value),
        Val::Num(Num::Int(int)) => serializer.serialize_i64(*int as i64),
        Val::Num(Num::Float(float)) => serialize_float(*float, serializer),
        Val::Num(number) => match number.to_string().parse::<i128>() {
            Ok(int) => match (i64::try_from(int), u64::try_from(int)) {
                (Ok(int), _) => serializer.serialize_i64(int),
                (_, Ok(int)) => serializer.serialize_u64(int),
                _ => serialize_float(int as f64, serializer),
            },
            Err(_) => serialize_float(number.to_string().parse().unwrap_or(f64::MAX), serializer),
        },
        Val::TStr(text) | Val::BStr(text) => {
            serializer.serialize_str(std::str::from_utf8(text).map_err(S::Error::custom)?)
        }
        Val::Arr(items) => {
            let mut seq = serializer.serialize_seq(Some(items.len()))?;
            for item in items.iter() {
                seq.serialize_element(&Ref(item))?;
            }
            seq.end()
        }
        Val::Obj(members) => {
            let mut map = serializer.serialize_map(Some(members.len()))?;
            for (key, value) in members.iter() {
                map.serialize_entry(&Ref(key), &Ref(value))?;
            }
            map.end()
        }
    }
}

/// A float that is a whole number is written as one, as jq does: `3 / 1.5` is `2`.
/// NaN is null and infinity the largest number, as jq prints them.
fn serialize_float<S: Serializer>(float: f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if float.is_nan() {
        serializer.serialize_unit()
    } else if float.is_infinite() {
        serializer.serialize_f64(f64::MAX.copysign(float))
    } else if float.fract() == 0.0 && float.abs() < EXACT {
        serializer.serialize_i64(float as i64)
    } else {
        serializer.serialize_f64(float)
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Data, D::Error> {
        deserializer.deserialize_any(DataVisitor)
    }
}

/// For an `Option<Data>` that may be null: a present value is `Some`, also null. With `default` and
/// `skip_serializing_if`.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Data>, D::Error> {
    Data::deserialize(deserializer).map(Some)
}

struct DataVisitor;

impl<'de> Visitor<'de> for DataVisitor {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Data, E> {
        Ok(Data::NULL)
    }

    fn visit_none<E>(self) -> Result<Data, E> {
        Ok(Data::NULL)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Data, E> {
        Ok(Data::bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Data, E> {
        Ok(Data(Val::Num(Num::from_integral(value))))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Data, E> {
        Ok(Data(Val::Num(Num::from_integral(value))))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Data, E> {
        Ok(Data(Val::Num(Num::Float(value))))
    }

    fn visit_str<E>(self, value: &str) -> Result<Data, E> {
        Ok(Data(text(value)))
    }

    fn visit_string<E>(self, value: String) -> Result<Data, E> {
        Ok(Data(Val::from(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Data, A::Error> {
        let mut items = Vec::with_capacity(seq.size_hint().unwrap_or(0).min(4096));
        while let Some(Data(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(Data(Val::Arr(Arc::new(items))))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Data, A::Error> {
        let mut map = Map::default();
        while let Some((key, Data(value))) = access.next_entry::<String, Data>()? {
            map.insert(Val::from(key), value);
        }
        Ok(Data(Val::Obj(Arc::new(map))))
    }
}

/// Builds [`Data`] from JSON-like syntax, in tests and where the shape is fixed.
#[macro_export]
macro_rules! data {
    ($($json:tt)+) => {
        $crate::Data::from(::serde_json::json!($($json)+))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(text: &str) -> String {
        Data::parse(text.as_bytes()).unwrap().to_string()
    }

    #[test]
    fn json_survives() {
        for text in [
            r#"{"b":[1,-2.5,"x",null,true],"a":{}}"#,
            "18446744073709551615",
            "[]",
            r#""é\n""#,
        ] {
            assert_eq!(round(text), text);
        }
    }

    #[test]
    fn numbers_are_equal_by_value() {
        assert_eq!(Data::parse(b"1.0").unwrap(), Data::int(1));
        assert_eq!(round("1.0"), "1");
        assert_eq!(data!({"a": 1, "b": 2}), data!({"b": 2.0, "a": 1}));
    }

    #[test]
    fn what_json_cannot_hold_is_refused() {
        let map: Map = [(Val::Num(Num::from_integral(1)), Val::Null)]
            .into_iter()
            .collect();
        assert_eq!(Data::checked(Val::Obj(Arc::new(map))), Err(NotJson::Key));
    }

    #[test]
    fn the_length_of_the_text_decides() {
        for text in [
            "null",
            "[true,false,-12,0,1.5,123456789012345678901234567890]",
            r#"{"a":{"b":[]},"c":"x","d":{}}"#,
            r#""\"\\\n\u0001ä""#,
            // Nothing is longer for its length.
            r#""\u0001\u0002\u0003""#,
            "[-9223372036854775808,-9223372036854775807]",
            "[]",
        ] {
            let data = Data::parse(text.as_bytes()).unwrap();
            let size = serde_json::to_string(&data).unwrap().len();
            assert_eq!(
                (data.exceeds(size), data.exceeds(size - 1)),
                (false, true),
                "{text}"
            );
        }
        // Shared values count as often as they occur, without visiting all of them.
        let mut data = Data::string("x".repeat(1000));
        for _ in 0..60 {
            data = Data::array(vec![data.clone(), data]);
        }
        assert!(data.exceeds(4 << 20));
    }
}
