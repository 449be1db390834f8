//! The types of settings: the notation of a value, and the allowed values.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use url::Url;

use swirl_access::TokenEntry;

/// A type with its bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueKind {
    Text,
    /// The name of a namespace.
    Name,
    Word(&'static [&'static str]),
    Flag,
    Count {
        min: u64,
        max: u64,
    },
    Bytes,
    /// In milliseconds.
    Duration {
        min_ms: u64,
        max_ms: u64,
    },
    /// From 0 to 1.
    Ratio,
    /// `host:port`, both as numbers.
    Address,
    /// A URL with one of these schemes.
    Url(&'static [&'static str]),
    Path,
    /// A NATS subject that may contain wildcards.
    Subject,
    /// A NATS subject without wildcards that may contain `{type}`.
    Template,
    List(&'static ValueKind),
    /// Names and texts.
    Map,
    /// Tables `{name, hash, roles, namespaces, expires}`.
    Tokens,
}

/// A checked value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Flag(bool),
    /// A count, bytes or milliseconds.
    Number(u64),
    Ratio(f64),
    List(Vec<String>),
    Map(BTreeMap<String, String>),
    Tokens(Vec<TokenEntry>),
}

/// An unchecked value: text in variables and flags, and possibly structured in a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    Text(String),
    List(Vec<String>),
    Map(BTreeMap<String, String>),
    Json(serde_json::Value),
}

pub const SECOND_MS: u64 = 1000;
pub const DAY_MS: u64 = 24 * 60 * 60 * SECOND_MS;

/// A duration with default bounds.
pub const fn duration(min_ms: u64, max_ms: u64) -> ValueKind {
    ValueKind::Duration { min_ms, max_ms }
}

pub const fn count(min: u64, max: u64) -> ValueKind {
    ValueKind::Count { min, max }
}

impl ValueKind {
    /// The type in words, for the reference page.
    pub fn words(&self) -> String {
        match self {
            ValueKind::Text => "text".to_owned(),
            ValueKind::Name => "name".to_owned(),
            ValueKind::Word(words) => words
                .iter()
                .map(|word| format!("`{word}`"))
                .collect::<Vec<_>>()
                .join(" or "),
            ValueKind::Flag => "`true` or `false`".to_owned(),
            ValueKind::Count { min, max } => format!("number, {min} to {max}"),
            ValueKind::Bytes => "bytes".to_owned(),
            ValueKind::Duration { min_ms, max_ms } => {
                format!("duration, {} to {}", show_ms(*min_ms), show_ms(*max_ms))
            }
            ValueKind::Ratio => "number, 0 to 1".to_owned(),
            ValueKind::Address => "address".to_owned(),
            ValueKind::Url(schemes) => format!("URL ({})", schemes.join(", ")),
            ValueKind::Path => "path".to_owned(),
            ValueKind::Subject => "subject".to_owned(),
            ValueKind::Template => "subject template".to_owned(),
            ValueKind::List(item) => format!("list: {}", item.words()),
            ValueKind::Map => "map of strings".to_owned(),
            ValueKind::Tokens => "list of tables".to_owned(),
        }
    }

    /// Checks a value. The error is a sentence without the value's location, and without the value if that may be
    /// secret.
    pub fn check(&self, raw: &Raw) -> Result<Value, String> {
        match (self, raw) {
            (ValueKind::List(item), Raw::Text(text)) => list(item, text.split(',').map(str::trim)),
            (ValueKind::List(item), Raw::List(items)) => {
                list(item, items.iter().map(String::as_str))
            }
            (ValueKind::Map, Raw::Text(text)) => map(text),
            (ValueKind::Map, Raw::Map(entries)) => Ok(Value::Map(entries.clone())),
            (ValueKind::Tokens, Raw::Text(text)) => match serde_json::from_str(text) {
                Ok(json) => tokens(json),
                Err(_) => Err("must be a JSON list of tokens".to_owned()),
            },
            (ValueKind::Tokens, Raw::Json(json)) => tokens(json.clone()),
            (kind, Raw::Text(text)) => kind.scalar(text),
            (kind, _) => Err(format!("must be one value: {}", kind.words())),
        }
    }

    fn scalar(&self, text: &str) -> Result<Value, String> {
        let wrong = |what: &str| Err(format!("must be {what}, but is '{text}'"));
        let as_text = || Ok(Value::Text(text.to_owned()));
        if text.is_empty() {
            return Err("must not be empty".to_owned());
        }
        match self {
            ValueKind::Text | ValueKind::Path => as_text(),
            ValueKind::Name => {
                if is_name(text) {
                    return as_text();
                }
                wrong(
                    "1 to 63 lower-case letters, digits and '-', with a letter or digit at both ends",
                )
            }
            ValueKind::Word(words) => {
                if words.contains(&text) {
                    return as_text();
                }
                wrong(&format!("one of {}", words.join(", ")))
            }
            ValueKind::Flag => match text {
                "true" => Ok(Value::Flag(true)),
                "false" => Ok(Value::Flag(false)),
                _ => wrong("true or false"),
            },
            ValueKind::Count { min, max } => match text.parse::<u64>() {
                Ok(number) if (*min..=*max).contains(&number) => Ok(Value::Number(number)),
                _ => wrong(&format!("a whole number from {min} to {max}")),
            },
            ValueKind::Bytes => match bytes(text) {
                Some(number) => Ok(Value::Number(number)),
                None => wrong("a size such as 512KiB, 64MiB, 10GiB or a number of bytes"),
            },
            ValueKind::Duration { min_ms, max_ms } => match millis(text) {
                Some(ms) if (*min_ms..=*max_ms).contains(&ms) => Ok(Value::Number(ms)),
                Some(_) => wrong(&format!(
                    "from {} to {}",
                    show_ms(*min_ms),
                    show_ms(*max_ms)
                )),
                None => wrong("a duration such as 500ms, 30s, 5m, 1h30m or 7d"),
            },
            ValueKind::Ratio => match text.parse::<f64>() {
                Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(Value::Ratio(ratio)),
                _ => wrong("a number from 0 to 1"),
            },
            ValueKind::Address => match text.parse::<SocketAddr>() {
                Ok(_) => as_text(),
                Err(_) => wrong("an address and a port, such as 0.0.0.0:8080 or [::]:8080"),
            },
            ValueKind::Url(schemes) => url(schemes, text),
            ValueKind::Subject => subject(text, true).map(|()| Value::Text(text.to_owned())),
            ValueKind::Template => template(text),
            ValueKind::List(_) | ValueKind::Map | ValueKind::Tokens => {
                Err("must be structured".to_owned())
            }
        }
    }
}

fn list<'t>(item: &ValueKind, texts: impl Iterator<Item = &'t str>) -> Result<Value, String> {
    let mut items = Vec::new();
    for text in texts {
        item.check(&Raw::Text(text.to_owned()))?;
        if items.iter().any(|known| known == text) {
            return Err(format!("contains '{text}' twice"));
        }
        items.push(text.to_owned());
    }
    Ok(Value::List(items))
}

/// `a=b,c=d`. A value may contain `=`.
fn map(text: &str) -> Result<Value, String> {
    let mut entries = BTreeMap::new();
    for entry in text.split(',') {
        match entry.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                entries.insert(name.trim().to_owned(), value.trim().to_owned());
            }
            _ => return Err("must be written as NAME=VALUE,NAME=VALUE".to_owned()),
        }
    }
    Ok(Value::Map(entries))
}

fn tokens(json: serde_json::Value) -> Result<Value, String> {
    let list = match json {
        serde_json::Value::Array(list) => list,
        _ => return Err("must be a list of tables with name, hash and roles".to_owned()),
    };
    let mut entries = Vec::new();
    for (index, entry) in list.into_iter().enumerate() {
        match serde_json::from_value(entry) {
            Ok(entry) => entries.push(entry),
            Err(error) => return Err(format!("entry {}: {error}", index + 1)),
        }
    }
    Ok(Value::Tokens(entries))
}

/// Names are used in Redis keys, stream names, subjects and URLs.
pub fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= 63
        && text.starts_with(plain)
        && text.ends_with(plain)
        && text.chars().all(|c| plain(c) || c == '-')
}

fn url(schemes: &[&str], text: &str) -> Result<Value, String> {
    let shown = super::secret::mask_url(text);
    let wanted = || format!("must be a URL such as {}://HOST:PORT", schemes[0]);
    let Ok(url) = Url::parse(text) else {
        return Err(format!("{}, and is '{shown}'", wanted()));
    };
    if !schemes.contains(&url.scheme()) {
        return Err(format!(
            "must begin with {}, and is '{shown}'",
            schemes
                .iter()
                .map(|scheme| format!("{scheme}://"))
                .collect::<Vec<_>>()
                .join(" or ")
        ));
    }
    match url.host_str() {
        Some(host) if !host.is_empty() => Ok(Value::Text(text.to_owned())),
        _ => Err(format!("{}, and '{shown}' has no host", wanted())),
    }
}

fn subject(text: &str, wildcards: bool) -> Result<(), String> {
    let parts: Vec<&str> = text.split('.').collect();
    let last = parts.len() - 1;
    for (index, part) in parts.iter().enumerate() {
        let wild = part.contains(['*', '>']);
        let sound = !part.is_empty()
            && !part.contains(|c: char| c.is_whitespace() || c.is_control())
            && (!wild || (wildcards && (*part == "*" || (*part == ">" && index == last))));
        if !sound {
            let also = match wildcards {
                true => "; '*' matches one part, '>' all that follow",
                false => "; wildcards aren't allowed here",
            };
            return Err(format!(
                "must be a NATS subject, parts with dots between them{also}; it is '{text}'"
            ));
        }
    }
    if wildcards && parts.first() == Some(&">") || parts.first() == Some(&"$JS") {
        return Err(format!(
            "'{text}' includes the servers' own subjects: begin with a name"
        ));
    }
    Ok(())
}

fn template(text: &str) -> Result<Value, String> {
    let plain = text.replace("{type}", "t").replace("{namespace}", "n");
    if plain.contains(['{', '}']) {
        return Err(format!(
            "may contain {{type}} and {{namespace}} only, but is '{text}'"
        ));
    }
    subject(&plain, false).map(|()| Value::Text(text.to_owned()))
}

/// `500ms`, `30s`, `1h30m`, `7d`, and ISO 8601 as in definitions.
fn millis(text: &str) -> Option<u64> {
    if text.starts_with('P') {
        let iso: swirl_model::time::IsoDuration = text.parse().ok()?;
        return (iso.months == 0).then_some(iso.millis);
    }
    let mut total: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let unit_end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let ms: u64 = match unit {
            "ms" => 1,
            "s" => SECOND_MS,
            "m" => 60 * SECOND_MS,
            "h" => 3600 * SECOND_MS,
            "d" => DAY_MS,
            _ => return None,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(ms)?)?;
        rest = next;
    }
    (!text.is_empty()).then_some(total)
}

/// A duration on the command line, in the notation of settings.
///
/// # Errors
/// It isn't a duration.
pub fn parse_duration(text: &str) -> Result<std::time::Duration, String> {
    let ms = millis(text).ok_or("a duration is written like 30s, 5m, 1h30m or PT30S")?;
    Ok(std::time::Duration::from_millis(ms))
}

/// The shortest notation.
pub fn show_ms(ms: u64) -> String {
    for (unit, size) in [
        ("d", DAY_MS),
        ("h", 3600 * SECOND_MS),
        ("m", 60 * SECOND_MS),
        ("s", SECOND_MS),
    ] {
        if ms >= size && ms.is_multiple_of(size) {
            return format!("{}{unit}", ms / size);
        }
    }
    format!("{ms}ms")
}

fn bytes(text: &str) -> Option<u64> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let size: u64 = match unit.trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    number
        .parse::<u64>()
        .ok()?
        .checked_mul(size)
        .filter(|n| *n > 0)
}

/// A size in the notation of settings, for commands without settings.
///
/// # Errors
/// The text is not a valid size. The error is a clause.
pub fn size(text: &str) -> Result<usize, String> {
    let size = bytes(text).and_then(|size| usize::try_from(size).ok());
    size.ok_or_else(|| format!("'{text}' is not a valid size: write a number of bytes, or 64MiB"))
}

pub fn show_bytes(bytes: u64) -> String {
    for (unit, size) in [
        ("TiB", 1u64 << 40),
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
    ] {
        if bytes >= size && bytes.is_multiple_of(size) {
            return format!("{}{unit}", bytes / size);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(kind: ValueKind, text: &str) -> bool {
        kind.check(&Raw::Text(text.to_owned())).is_ok()
    }

    #[test]
    fn durations() {
        for (text, ms) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("PT30S", 30_000),
        ] {
            assert_eq!(millis(text), Some(ms), "{text}");
        }
        for text in ["", "30", "s", "1.5s", "-1s", "30 s", "1w", "P1M"] {
            assert_eq!(millis(text), None, "{text}");
        }
        for ms in [1, 999, 1000, 90_000, 3_600_000, DAY_MS] {
            assert_eq!(millis(&show_ms(ms)), Some(ms));
        }
    }

    #[test]
    fn sizes() {
        for (text, size) in [("1", Some(1)), ("64MiB", Some(64 << 20)), ("0", None)] {
            assert_eq!(bytes(text), size);
        }
        for text in ["", "MiB", "1MB", "-1", "99999999999TiB"] {
            assert_eq!(bytes(text), None, "{text}");
        }
        assert_eq!(size("1KiB"), Ok(1024));
        assert!(size("much").unwrap_err().contains("64MiB"));
        assert_eq!(show_bytes(64 << 20), "64MiB");
        assert_eq!(show_bytes(1500), "1500");
    }

    #[test]
    fn names_and_subjects() {
        for name in ["default", "a", "team-7", "0"] {
            assert!(ok(ValueKind::Name, name), "{name}");
        }
        let long = "x".repeat(64);
        for name in ["", "-a", "a-", "A", "a_b", "a.b", "a b", "é", long.as_str()] {
            assert!(!ok(ValueKind::Name, name), "{name}");
        }
        for text in ["swirl.events.>", "a", "a.*.b", "a.{namespace}.>"] {
            assert!(ok(ValueKind::Subject, text), "{text}");
        }
        for text in ["", ">", "a..b", "a.>.b", "a b", ".a", "a.x*", "$JS.API.>"] {
            assert!(!ok(ValueKind::Subject, text), "{text}");
        }
        for text in ["swirl.events.{type}", "out", "{namespace}.{type}"] {
            assert!(ok(ValueKind::Template, text), "{text}");
        }
        for text in ["a.{id}", "a.*", "a.>", "a.{type"] {
            assert!(!ok(ValueKind::Template, text), "{text}");
        }
    }

    #[test]
    fn structures() {
        const WORDS: ValueKind = ValueKind::List(&ValueKind::Word(&["a", "b"]));
        let list = |text: &str| WORDS.check(&Raw::Text(text.to_owned()));
        assert_eq!(list("a, b"), Ok(Value::List(vec!["a".into(), "b".into()])));
        assert!(list("a,c").is_err() && list("a,a").is_err() && list("").is_err());
        let map = ValueKind::Map.check(&Raw::Text("a=1, b=x=y".to_owned()));
        let expected = [("a", "1"), ("b", "x=y")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(map, Ok(Value::Map(expected.into())));
        assert!(!ok(ValueKind::Map, "a"));
        assert!(ok(
            ValueKind::Tokens,
            r#"[{"name": "ci", "hash": "blake3:00", "roles": ["viewer"]}]"#
        ));
        let error = ValueKind::Tokens
            .check(&Raw::Text(r#"[{"name": "ci", "role": "x"}]"#.to_owned()))
            .unwrap_err();
        assert!(
            error.contains("entry 1") && error.contains("role"),
            "{error}"
        );
    }

    #[test]
    fn errors_hide_the_password_of_a_url() {
        let kind = ValueKind::Url(&["redis", "rediss"]);
        for text in ["http://u:s3cret@h", "redis://u:s3cret@", "u:s3cret@host"] {
            let error = kind.check(&Raw::Text(text.to_owned())).unwrap_err();
            assert!(!error.contains("s3cret"), "{error}");
        }
        assert!(ok(kind, "rediss://u:p@host:6380/1"));
    }
}
