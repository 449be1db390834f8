//! Events that come as messages: read, published, and judged.

use std::hash::{DefaultHasher, Hash, Hasher};

use swirl_model::{CloudEvent, Data};

use crate::cloudevents::{self, Invalid};
use crate::{Error, Service};

/// What came of a message.
#[derive(Debug)]
pub enum Taken {
    /// All that the event does has been committed.
    Done,
    /// It may be taken in later.
    Later(Error),
    /// It never can be.
    Never(String),
}

impl Service {
    /// Publishes an event, and says what is to become of its message.
    pub async fn take_in(&self, event: &CloudEvent) -> Taken {
        match self.publish(event).await {
            Ok(()) => Taken::Done,
            Err(error) if is_for_good(&error) => Taken::Never(error.to_string()),
            Err(error) => Taken::Later(error),
        }
    }
}

/// Whether the event itself is at fault.
fn is_for_good(error: &Error) -> bool {
    matches!(error, Error::Store(swirl_ports::Error::TooLarge { .. }))
}

/// A message's event: in the binary mode of the CloudEvents protocol bindings if it has headers
/// `ce-...`, else in the JSON format. Names of headers are compared without regard to case.
///
/// # Errors
/// What it lacks to be an event.
pub fn read_message<'a>(
    headers: impl Iterator<Item = (&'a str, &'a str)>,
    payload: &[u8],
) -> Result<CloudEvent, Invalid> {
    let headers: Vec<(String, &str)> = headers
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect();
    if headers.iter().any(|(name, _)| name.starts_with("ce-")) {
        let headers = headers.iter();
        let headers = headers.map(|(name, value)| (name.as_str(), value.as_bytes()));
        return cloudevents::binary(headers, payload);
    }
    let json = Data::parse(payload).map_err(|error| Invalid::Json(error.to_string()))?;
    cloudevents::structured(&json)
}

/// Events of one lane are taken in one after another, others at once: those that could belong
/// together (the same subject and extension attributes) share one.
pub fn lane(event: &CloudEvent, lanes: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    let names = event.attributes.iter();
    let mut bound = false;
    for (name, value) in names {
        let apart = [
            "time",
            "datacontenttype",
            "dataschema",
            "traceparent",
            "tracestate",
        ];
        if !apart.contains(&name.as_str()) {
            (name.to_ascii_lowercase(), value.to_text()).hash(&mut hasher);
            bound = true;
        }
    }
    if !bound {
        event.source.hash(&mut hasher);
    }
    (hasher.finish() % lanes.max(1) as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","orderid":"7"}"#;

    #[test]
    fn both_modes_are_read() {
        let none = std::iter::empty;
        let event = read_message(none(), JSON.as_bytes()).unwrap();
        assert_eq!(event.attribute("orderid").as_deref(), Some("7"));
        let headers = [
            ("Ce-Specversion", "1.0"),
            ("ce-id", "1"),
            ("ce-source", "/s"),
            ("ce-type", "t"),
            ("Nats-Msg-Id", "x"),
        ];
        let event = read_message(headers.into_iter(), b"{\"a\":1}").unwrap();
        assert_eq!((event.kind.as_str(), event.attributes.len()), ("t", 0));
        assert!(read_message(none(), b"hello").is_err());
        assert!(read_message(headers.into_iter().skip(1), b"").is_err());
    }

    #[test]
    fn what_belongs_together_shares_a_lane() {
        let event = |text: &str| read_message(std::iter::empty(), text.as_bytes()).unwrap();
        let lanes = 1 << 20;
        let first = lane(&event(JSON), lanes);
        let other = JSON.replace(r#""t""#, r#""u""#).replace("/s", "/x");
        assert_eq!(first, lane(&event(&other), lanes));
        assert_ne!(first, lane(&event(&JSON.replace("\"7\"", "\"8\"")), lanes));
    }
}
