//! Parses the replies of scripts, part by part.

use std::str::FromStr;

use redis::Value;
use serde::de::DeserializeOwned;
use swirl_ports::Result;

use crate::connect::damaged;

/// A list in a reply.
pub(crate) struct Reply {
    parts: std::vec::IntoIter<Value>,
}

impl Reply {
    pub fn new(value: Value) -> Result<Reply> {
        match value {
            Value::Array(parts) => Ok(Reply {
                parts: parts.into_iter(),
            }),
            other => Err(unexpected("a list", &other)),
        }
    }

    /// Returns `None` if the value is nil.
    pub fn optional(value: Value) -> Result<Option<Reply>> {
        match value {
            Value::Nil => Ok(None),
            other => Reply::new(other).map(Some),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.parts.len() == 0
    }

    pub fn value(&mut self) -> Result<Value> {
        let short = || damaged("the answer of a script", "it is too short");
        self.parts.next().ok_or_else(short)
    }

    pub fn list(&mut self) -> Result<Reply> {
        Reply::new(self.value()?)
    }

    pub fn bytes(&mut self) -> Result<Vec<u8>> {
        bytes(self.value()?)
    }

    pub fn text(&mut self) -> Result<String> {
        text(self.value()?)
    }

    pub fn number<T: FromStr>(&mut self) -> Result<T> {
        let text = self.text()?;
        let bad = |_| damaged("a number in an answer", &text);
        text.parse().map_err(bad)
    }

    pub fn json<T: DeserializeOwned>(&mut self, what: &str) -> Result<T> {
        json(&self.bytes()?, what)
    }
}

pub(crate) fn json<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|error| damaged(what, error))
}

/// Reads msgpack, which scripts write.
pub(crate) fn unpack<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T> {
    rmp_serde::from_slice(bytes).map_err(|error| damaged(what, error))
}

pub(crate) fn bytes(value: Value) -> Result<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        Value::SimpleString(text) => Ok(text.into_bytes()),
        Value::Int(number) => Ok(number.to_string().into_bytes()),
        other => Err(unexpected("a text", &other)),
    }
}

pub(crate) fn text(value: Value) -> Result<String> {
    String::from_utf8(bytes(value)?).map_err(|error| damaged("a text in an answer", error))
}

fn unexpected(wanted: &str, found: &Value) -> swirl_ports::Error {
    // The value may be large, and it is user data, so only its kind is shown.
    let kind = match found {
        Value::Nil => "nothing",
        Value::Int(_) => "a number",
        Value::BulkString(_) | Value::SimpleString(_) => "a text",
        Value::Array(_) => "a list",
        _ => "something else",
    };
    damaged(
        "an answer of Redis",
        format!("expected {wanted}, but got {kind}"),
    )
}
