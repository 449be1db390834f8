//! The beginnings of records. A listing shows little of records that may be large, and has many of them, so it reads only
//! their beginnings. What may be large comes last in a record.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use swirl_ports::Result;

use crate::Redis;
use crate::connect::damaged;
use crate::reply::Reply;
use crate::script::{Lazy, Script};

static BEGINNINGS: Lazy = Lazy::new(|| Script::new(&[include_str!("lua/beginnings.lua")]));

/// How much is read of a record, in bytes.
const BYTES: usize = 16 << 10;
/// Members below this level are left out where a record is cut off.
const DEPTH_MAX: usize = 12;

impl Redis {
    /// Reads fields of a hash, of the first `cut` ones only the beginning.
    pub(crate) async fn beginnings(&self, key: &str, fields: &[&str], cut: usize) -> Result<Reply> {
        let mut call = BEGINNINGS.call(&[key.to_owned()]);
        call.arg(BYTES).arg(cut).arg(fields);
        Reply::new(self.run(&BEGINNINGS, call).await?)
    }
}

/// Reads a record of which `bytes` may be only the beginning. `absent` are members that aren't needed: they are null.
/// Returns `None` if the beginning isn't enough.
pub(crate) fn read_beginning<T: DeserializeOwned>(
    bytes: &[u8],
    absent: &[&str],
    what: &str,
) -> Result<Option<T>> {
    let whole = serde_json::from_slice(bytes);
    match whole {
        Ok(record) => Ok(Some(record)),
        Err(_) if bytes.len() >= BYTES => Ok(completed(bytes).find_map(|text| {
            let mut members: Map<String, Value> = serde_json::from_slice(&text).ok()?;
            for name in absent {
                members.insert((*name).to_owned(), Value::Null);
            }
            serde_json::from_value(Value::Object(members)).ok()
        })),
        Err(error) => Err(damaged(what, error)),
    }
}

/// An object or list that isn't closed.
struct Open {
    closes: u8,
    /// The end of its last complete member.
    end: usize,
    /// The value of a member comes next.
    in_value: bool,
}

/// Texts that are complete and begin as this one does, the longest first.
fn completed(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let mut open: Vec<Open> = Vec::new();
    // Of a text: the end of its last complete character.
    let mut text: Option<usize> = None;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let mut size = 1;
        match (byte, text.is_some()) {
            (b'"', true) => text = None,
            (b'\\', true) => {
                size = match bytes.get(at + 1) {
                    Some(b'u') => 6,
                    _ => 2,
                };
                if at + size > bytes.len() {
                    break;
                }
                text = Some(at + size);
            }
            // A further byte of a character.
            (0x80..0xc0, true) => {}
            (_, true) => text = Some(at),
            (b'"', false) => text = Some(at + 1),
            (b'{' | b'[', false) => open.push(Open {
                closes: if *byte == b'{' { b'}' } else { b']' },
                end: at + 1,
                in_value: *byte == b'[',
            }),
            (b'}' | b']', false) => {
                open.pop();
            }
            (b':', false) => {
                if let Some(last) = open.last_mut() {
                    last.in_value = true;
                }
            }
            (b',', false) => {
                if let Some(last) = open.last_mut() {
                    (last.end, last.in_value) = (at, last.closes == b']');
                }
            }
            _ => {}
        }
        at += size;
    }
    // The text that isn't complete, then what is complete of each object and list that isn't.
    let is_value = open.last().is_some_and(|last| last.in_value);
    let text = text.filter(|_| is_value && open.len() <= DEPTH_MAX);
    let text = text.map(|end| (end, open.len(), "\""));
    let members = (1..=open.len().min(DEPTH_MAX)).rev();
    let members = members.map(|depth| (open[depth - 1].end, depth, ""));
    let all: Vec<(usize, usize, &str)> = text.into_iter().chain(members).collect();
    all.into_iter().map(move |(end, depth, quote)| {
        let closing = open[..depth].iter().rev().map(|one| one.closes);
        let closing: Vec<u8> = closing.collect();
        [&bytes[..end], quote.as_bytes(), &closing].concat()
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Record {
        id: String,
        at: Vec<u32>,
        error: Option<String>,
        data: Option<Value>,
    }

    fn read(text: &str) -> Option<Record> {
        read_beginning(text.as_bytes(), &[], "a test").unwrap()
    }

    #[test]
    fn each_beginning_gives_what_it_has() {
        let (error, padding) = ("ä\n\u{1}\"😀".repeat(20), "x".repeat(2 * BYTES));
        let whole = json!({
            "id": "a", "at": [1, 2, 3], "error": error,
            "data": {"list": [[{"deep": [true, null, 1.5e3, {"k\"{": "v]"}]}]], "text": padding},
        });
        let whole = whole.to_string();
        let has = whole.find(",\"data\"").unwrap() + 1;
        for end in has..has + 80 {
            // So that it is long enough to be a beginning.
            let text = format!("{}{}", " ".repeat(BYTES), &whole[..end]);
            let found = read(&text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((found.id.as_str(), &*found.at), ("a", &[1, 2, 3][..]));
            assert_eq!(found.error.as_ref(), Some(&error), "{text}");
        }
        let found = read(&whole[..BYTES]).unwrap().data.unwrap();
        assert_eq!(found["list"][0][0]["deep"][3], json!({"k\"{": "v]"}));
        let text = found["text"].as_str().unwrap();
        assert!(text.len() > BYTES / 2 && text.len() < padding.len());
        // A text that isn't complete is there as far as it goes.
        let begun = whole.find("\"error\"").unwrap() + 9;
        for end in (begun..has - 2).filter(|end| whole.is_char_boundary(*end)) {
            let text = format!("{}{}", " ".repeat(BYTES), &whole[..end]);
            let found = read(&text).unwrap_or_else(|| panic!("{text}"));
            assert!(error.starts_with(&found.error.unwrap()), "{text}");
        }
        let bytes = [" ".repeat(BYTES).as_bytes(), &whole.as_bytes()[..begun + 1]].concat();
        assert!(std::str::from_utf8(&bytes).is_err());
        let found = read_beginning::<Record>(&bytes, &[], "a test").unwrap();
        assert_eq!(found.unwrap().error.as_deref(), Some(""));
        // The beginning of a list isn't the list, but nothing here can know that.
        let list = whole.find("[1,2").unwrap() + 4;
        let text = format!("{}{}", " ".repeat(BYTES), &whole[..list]);
        assert_eq!(read(&text).unwrap().at, [1]);
    }

    #[test]
    fn members_that_are_not_needed_may_be_missing() {
        #[derive(Deserialize)]
        struct Needs {
            id: u32,
            data: Value,
        }
        let text = format!("{{\"id\":7,\"other\":\"{}", "x".repeat(BYTES));
        let found = read_beginning::<Needs>(text.as_bytes(), &["data"], "a test");
        let found = found.unwrap().unwrap();
        assert_eq!((found.id, found.data), (7, Value::Null));
        let without = read_beginning::<Needs>(text.as_bytes(), &[], "a test");
        assert!(without.unwrap().is_none());
        // A short text isn't a beginning, but damaged.
        let short = read_beginning::<Needs>(b"{\"id\":7", &["data"], "a test");
        assert!(short.is_err());
    }

    #[test]
    fn deep_data_costs_little() {
        let text = format!(
            "{{\"id\":\"a\",\"at\":[],\"data\":{}",
            "[".repeat(2 * BYTES)
        );
        let found = read(&text).unwrap();
        assert_eq!(found.id, "a");
        assert!(completed(text.as_bytes()).count() <= DEPTH_MAX + 1);
    }
}
