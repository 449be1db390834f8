//! CloudEvents 1.0 from JSON and from the headers of HTTP or NATS.
//!
//! This is our own code because cloudevents-sdk is both too strict and too lenient for Swirl. It rejects extensions
//! other than 64 bit integers, strings and booleans without naming them; it keeps numbers of `data` as doubles; it
//! accepts empty `id`s and malformed names; and it needs chrono, uuid and a second event type.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use swirl_model::cloudevent::DataForm;
use swirl_model::time::Timestamp;
use swirl_model::{CloudEvent, Data};

/// The maximum length of an attribute's name and of its text, in bytes.
const NAME_BYTES_MAX: usize = 64;
const VALUE_BYTES_MAX: usize = 16 << 10;

/// The reason why something is not a valid CloudEvent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("an event is a JSON object, not {0}")]
    NoObject(&'static str),
    #[error(
        "the attribute '{0}' is missing; 'specversion', 'id', 'source' and 'type' are required"
    )]
    Missing(&'static str),
    #[error("the attribute '{0}' must be a string that isn't empty")]
    NoText(String),
    #[error("'specversion' is '{0}'; only 1.0 is understood")]
    Version(String),
    #[error("'{0}' is not a valid attribute name: letters and digits only, at most 64")]
    Name(String),
    #[error("the attribute '{name}' is {kind}; an attribute is a string, a boolean or an integer")]
    Kind { name: String, kind: String },
    #[error("the attribute '{0}' is longer than 16384 bytes")]
    Long(String),
    #[error("the attribute 'time' is not an RFC 3339 instant such as 2024-01-31T09:00:00Z")]
    Time,
    #[error("the attribute 'datacontenttype' is not a valid media type such as application/json")]
    ContentType,
    #[error("'data' and 'data_base64' can't be combined")]
    TwoData,
    #[error("'data_base64' is not valid Base64")]
    Base64,
    #[error("the JSON is not valid: {0}")]
    Json(String),
    #[error(
        "the body is {0}; send the data of an event with its own Content-Type, such as application/json"
    )]
    Form(String),
    #[error("the header '{0}' does not hold UTF-8 text")]
    Header(String),
    /// Nobody could read it: its content coding or character set isn't known, or it doesn't have that one.
    #[error("the data cannot be read: {0}")]
    Unreadable(String),
}

/// An event in the JSON format.
pub fn structured(json: &Data) -> Result<CloudEvent, Invalid> {
    let members = json
        .as_object()
        .ok_or(Invalid::NoObject(json.kind_in_words()))?;
    let mut attributes = BTreeMap::new();
    let (mut data, mut base64) = (None, None);
    for (name, value) in members.iter() {
        let name = Data(name.clone()).to_text();
        let value = Data(value.clone());
        match name.as_str() {
            "data" => data = Some(value),
            "data_base64" => base64 = (!value.is_null()).then_some(value),
            // The format treats null as absent.
            _ if value.is_null() => {}
            _ => drop(attributes.insert(name, value)),
        }
    }
    let mut event = event(attributes)?;
    event.data = match (data, base64) {
        (Some(_), Some(_)) => return Err(Invalid::TwoData),
        (data, None) => data,
        (None, Some(text)) => {
            let text = text.as_str().ok_or(Invalid::Base64)?;
            let bytes = STANDARD.decode(text).map_err(|_| Invalid::Base64)?;
            let kind = content_type(&event);
            Some(match &kind {
                // Its sender says that it isn't a text.
                None => {
                    Data::parse(&bytes).unwrap_or_else(|_| Data::string(STANDARD.encode(&bytes)))
                }
                kind => payload(&bytes, kind.as_deref())?,
            })
        }
    };
    Ok(event)
}

/// Reads an event whose attributes are in headers. Header names are in lower case.
pub fn binary<'a>(
    headers: impl Iterator<Item = (&'a str, &'a [u8])>,
    body: &[u8],
) -> Result<CloudEvent, Invalid> {
    let mut attributes = BTreeMap::new();
    // Over HTTP the type of the data is Content-Type, over NATS it is an attribute like the others.
    let mut of_data = None;
    for (header, value) in headers {
        let name = header.strip_prefix("ce-");
        if name == Some("data") || name.is_none() && header != "content-type" {
            continue;
        }
        let text = std::str::from_utf8(value).map_err(|_| Invalid::Header(header.to_owned()))?;
        let Some(name) = name else {
            of_data = Some(Data::string(text));
            continue;
        };
        let text = decoded(text).ok_or_else(|| Invalid::Header(header.to_owned()))?;
        attributes.insert(name.to_owned(), Data::string(text));
    }
    attributes.extend(of_data.map(|value| ("datacontenttype".to_owned(), value)));
    let mut event = event(attributes)?;
    if !body.is_empty() {
        event.data = Some(payload(body, content_type(&event).as_deref())?);
    }
    Ok(event)
}

/// The type, source and id that the headers of a message state, although it is not an event. Absent ones are empty.
pub fn said_in_headers<'a>(headers: impl Iterator<Item = (&'a str, &'a [u8])>) -> CloudEvent {
    let mut attributes = BTreeMap::new();
    for (header, value) in headers {
        if let Some(name) = header.strip_prefix("ce-")
            && let Some(text) = std::str::from_utf8(value).ok().and_then(decoded)
        {
            attributes.insert(name.to_owned(), Data::string(text));
        }
    }
    said(&attributes)
}

/// The same in the JSON format.
pub fn said_in_json(json: &Data) -> CloudEvent {
    let members = json.as_object().into_iter().flat_map(|all| all.iter());
    let members = members.map(|(name, value)| (Data(name.clone()).to_text(), Data(value.clone())));
    said(&members.collect())
}

fn said(attributes: &BTreeMap<String, Data>) -> CloudEvent {
    let text = |name: &str| {
        let value = attributes.get(name).and_then(Data::as_str);
        value.unwrap_or_default().to_owned()
    };
    CloudEvent {
        specversion: text("specversion"),
        id: text("id"),
        source: text("source"),
        kind: text("type"),
        attributes: BTreeMap::new(),
        data: None,
    }
}

/// HTTP binding, 3.1.3.2: a quoted string is unquoted, then percent escapes are decoded once.
fn decoded(text: &str) -> Option<String> {
    let mut plain = String::new();
    match text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
    {
        None => plain.push_str(text),
        Some(quoted) => {
            let mut chars = quoted.chars();
            while let Some(c) = chars.next() {
                match c {
                    '\\' => plain.extend(chars.next()),
                    c => plain.push(c),
                }
            }
        }
    }
    let text = percent_decode_str(&plain).decode_utf8().ok()?;
    Some(text.into_owned())
}

/// The event without its data.
fn event(mut attributes: BTreeMap<String, Data>) -> Result<CloudEvent, Invalid> {
    let mut required = |name: &'static str| {
        let value = attributes.remove(name).ok_or(Invalid::Missing(name))?;
        text(name, &value)
    };
    let specversion = required("specversion")?;
    if specversion != "1.0" {
        return Err(Invalid::Version(specversion.chars().take(20).collect()));
    }
    let (id, source, kind) = (required("id")?, required("source")?, required("type")?);
    for (name, value) in &attributes {
        attribute(name, value)?;
    }
    Ok(CloudEvent {
        specversion,
        id,
        source,
        kind,
        attributes,
        data: None,
    })
}

/// Checks an optional attribute. Names of extensions may have capital letters, which CloudEvents itself doesn't allow:
/// the language specification uses `patientId`, and names are compared without regard to case.
fn attribute(name: &str, value: &Data) -> Result<(), Invalid> {
    let valid = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !valid {
        return Err(Invalid::Name(name.chars().take(NAME_BYTES_MAX).collect()));
    }
    match name {
        "time" => {
            let time = text(name, value)?;
            Timestamp::parse(&time).map_err(|_| Invalid::Time)?;
        }
        "datacontenttype" => {
            let kind = text(name, value)?;
            let kind = kind.split(';').next().unwrap_or_default();
            let (major, minor) = kind.split_once('/').ok_or(Invalid::ContentType)?;
            if major.trim().is_empty() || minor.trim().is_empty() {
                return Err(Invalid::ContentType);
            }
        }
        "subject" | "dataschema" => drop(text(name, value)?),
        _ => match value.kind() {
            "string" | "boolean" => long(name, value)?,
            "number" if is_integer(value) => {}
            kind => {
                let kind = match kind {
                    "number" => "a fraction",
                    _ => value.kind_in_words(),
                };
                return Err(Invalid::Kind {
                    name: name.to_owned(),
                    kind: kind.to_owned(),
                });
            }
        },
    }
    Ok(())
}

fn is_integer(value: &Data) -> bool {
    value.to_text().parse::<i64>().is_ok()
}

fn text(name: &str, value: &Data) -> Result<String, Invalid> {
    long(name, value)?;
    match value.as_str() {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(Invalid::NoText(name.to_owned())),
    }
}

fn long(name: &str, value: &Data) -> Result<(), Invalid> {
    let length = value.as_str().map_or(0, str::len);
    if length > VALUE_BYTES_MAX {
        return Err(Invalid::Long(name.to_owned()));
    }
    Ok(())
}

fn content_type(event: &CloudEvent) -> Option<String> {
    let kind = event.attributes.get("datacontenttype")?;
    Some(kind.to_text())
}

/// Reads data from bytes: JSON if the type says so, a string for text types, Base64 for all other types, since workflow
/// data is JSON (docs/language.md#decision-94). Without a type, the bytes may be anything, and the first of these that
/// fits counts.
fn payload(bytes: &[u8], content_type: Option<&str>) -> Result<Data, Invalid> {
    let text = swirl_content::text(bytes, content_type);
    let base64 = || Data::string(STANDARD.encode(bytes));
    let Some(content_type) = content_type else {
        return Ok(text.map_or_else(
            |_| base64(),
            |text| Data::parse(text.as_bytes()).unwrap_or_else(|_| Data::string(text.as_ref())),
        ));
    };
    let text = || text.map_err(|error| Invalid::Unreadable(error.to_string()));
    match swirl_content::media_type(content_type).as_str() {
        form @ ("application/x-www-form-urlencoded" | "multipart/form-data") => {
            // curl and browsers send this by default, so it is never intended.
            Err(Invalid::Form(form.to_owned()))
        }
        kind => match DataForm::of(kind) {
            DataForm::Json => {
                Data::parse(text()?.as_bytes()).map_err(|error| Invalid::Json(error.to_string()))
            }
            DataForm::Text => Ok(Data::string(text()?.as_ref())),
            DataForm::Base64 => Ok(base64()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Result<CloudEvent, Invalid> {
        structured(&Data::parse(text.as_bytes()).unwrap())
    }

    /// Adds members to the required ones, or replaces some of them.
    fn with(members: &str) -> Result<CloudEvent, Invalid> {
        let comma = if members.is_empty() { "" } else { "," };
        json(&format!(
            r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t"{comma}{members}}}"#
        ))
    }

    #[test]
    fn a_structured_event() {
        let event = with(
            r#""patientId":7,"urgent":true,"subject":null,"time":"2024-01-31T09:00:00+02:00","data":{"n":12345678901234567890}"#,
        )
        .unwrap();
        assert_eq!(event.attribute("patientid").as_deref(), Some("7"));
        assert!(!event.attributes.contains_key("subject"));
        let data = event.data.unwrap();
        assert_eq!(data.to_string(), r#"{"n":12345678901234567890}"#);
        assert_eq!(with("").unwrap().data, None);
        assert_eq!(with(r#""data":null"#).unwrap().data, Some(Data::NULL));
    }

    #[test]
    fn invalid_events_are_rejected() {
        for (members, error) in [
            (r#""id":"""#, Invalid::NoText("id".into())),
            (r#""id":7"#, Invalid::NoText("id".into())),
            (r#""type":null"#, Invalid::Missing("type")),
            (r#""specversion":"0.3""#, Invalid::Version("0.3".into())),
            (r#""time":"yesterday""#, Invalid::Time),
            (r#""datacontenttype":"json""#, Invalid::ContentType),
            (r#""subject":"""#, Invalid::NoText("subject".into())),
            (r#""my-name":1"#, Invalid::Name("my-name".into())),
            (r#""data":1,"data_base64":"MQ==""#, Invalid::TwoData),
            (r#""data_base64":"?""#, Invalid::Base64),
        ] {
            assert_eq!(with(members), Err(error), "{members}");
        }
        for members in [r#""x":{}"#, r#""x":[1]"#, r#""x":1.5"#] {
            assert!(
                matches!(with(members), Err(Invalid::Kind { .. })),
                "{members}"
            );
        }
        assert_eq!(json("[]"), Err(Invalid::NoObject("an array")));
        assert_eq!(json("{}"), Err(Invalid::Missing("specversion")));
    }

    #[test]
    fn base64_data() {
        let data = |members| with(members).unwrap().data.unwrap().to_string();
        // {"a":1}
        assert_eq!(data(r#""data_base64":"eyJhIjoxfQ==""#), r#"{"a":1}"#);
        assert_eq!(data(r#""data_base64":"aGk=""#), r#""aGk=""#);
        let text = r#""datacontenttype":"text/plain","data_base64":"eyJhIjoxfQ==""#;
        assert_eq!(data(text), r#""{\"a\":1}""#);
        let xml =
            r#""datacontenttype":"application/soap+xml; charset=utf-8","data_base64":"PGEvPg==""#;
        assert_eq!(data(xml), r#""<a/>""#);
        let bytes = r#""datacontenttype":"application/octet-stream","data_base64":"aGk=""#;
        assert_eq!(data(bytes), r#""aGk=""#);
        let bytes = r#""datacontenttype":"image/png","data_base64":"/////w==""#;
        assert_eq!(data(bytes), r#""/////w==""#);
    }

    type Headers = Vec<(&'static str, &'static str)>;

    fn headers(pairs: &[(&'static str, &'static str)]) -> Headers {
        let required = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-type", "t")];
        required.iter().chain(pairs).copied().collect()
    }

    fn binary(headers: &Headers, body: &[u8]) -> Result<CloudEvent, Invalid> {
        let headers = headers.iter();
        super::binary(headers.map(|(name, value)| (*name, value.as_bytes())), body)
    }

    #[test]
    fn a_binary_event() {
        let headers = headers(&[
            ("ce-source", "/caf%C3%A9"),
            ("ce-subject", r#""a \"b\"""#),
            ("ce-orderid", "7"),
            ("content-type", "application/json; charset=utf-8"),
            ("user-agent", "curl"),
        ]);
        let event = binary(&headers, br#"{"a":1}"#).unwrap();
        assert_eq!(event.source, "/café");
        assert_eq!(event.attribute("subject").as_deref(), Some(r#"a "b""#));
        assert_eq!(event.attribute("orderid").as_deref(), Some("7"));
        assert_eq!(event.data.unwrap().to_string(), r#"{"a":1}"#);
        assert_eq!(binary(&headers, b"").unwrap().data, None);
        assert!(matches!(binary(&headers, b"{"), Err(Invalid::Json(_))));
    }

    #[test]
    fn over_nats_the_type_of_the_data_is_an_attribute_like_the_others() {
        let mut sent = headers(&[("ce-source", "/s"), ("ce-datacontenttype", "text/plain")]);
        let event = binary(&sent, b"7").unwrap();
        assert_eq!(content_type(&event).as_deref(), Some("text/plain"));
        assert_eq!(event.data.unwrap().to_string(), r#""7""#);
        // Over HTTP there is no such header.
        sent.insert(0, ("content-type", "application/json"));
        let event = binary(&sent, b"7").unwrap();
        assert_eq!(content_type(&event).as_deref(), Some("application/json"));
    }

    #[test]
    fn data_is_read_by_its_type_and_without_one_it_may_be_anything() {
        let data = |kind: Option<&'static str>, body: &[u8]| {
            let kind = kind.map(|kind| ("content-type", kind));
            let mut sent = headers(&[("ce-source", "/s")]);
            sent.extend(kind);
            binary(&sent, body).map(|event| event.data.unwrap().to_string())
        };
        for (kind, body, expected) in [
            (None, &b"{\"a\":1}"[..], r#"{"a":1}"#),
            (None, b"hello there", r#""hello there""#),
            (None, b"\xff", r#""/w==""#),
            (None, b"\xef\xbb\xbf7", "7"),
            (
                Some("text/plain; charset=latin1"),
                b"caf\xe9",
                "\"caf\u{e9}\"",
            ),
            (Some("application/json; charset=UTF-16LE"), b"7\0", "7"),
            (Some("image/png"), b"\x89PNG", r#""iVBORw==""#),
        ] {
            assert_eq!(data(kind, body).as_deref(), Ok(expected), "{kind:?}");
        }
        for (kind, body) in [
            ("text/plain", b"\xff"),
            ("application/json", b"\xff"),
            ("text/plain; charset=klingon", b"x"),
        ] {
            let read = data(Some(kind), body);
            assert!(matches!(read, Err(Invalid::Unreadable(_))), "{read:?}");
        }
    }

    #[test]
    fn invalid_binary_events_are_rejected() {
        let form = "application/x-www-form-urlencoded";
        let sent = headers(&[("ce-source", "/s"), ("content-type", form)]);
        assert_eq!(binary(&sent, b"{}"), Err(Invalid::Form(form.into())));
        assert_eq!(binary(&headers(&[]), b""), Err(Invalid::Missing("source")));
        let odd = headers(&[("ce-source", "/s"), ("ce-my_name", "1")]);
        assert_eq!(binary(&odd, b""), Err(Invalid::Name("my_name".into())));
    }
}
