//! Reads events from messages, finds which of them depend on each other, publishes them, and classifies the outcome.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use futures::future::join;
use swirl_model::event::EventMatch;
use swirl_model::{CloudEvent, Data};
use swirl_ports::matching::{attributes_to_keep, starts_alone};
use swirl_runtime::Catalog;

use crate::cloudevents::{self, Invalid};
use crate::{Error, Service};

/// The largest event, in bytes, after decompression.
const DECODED_BYTES_MAX: usize = 1 << 20;
const STRUCTURED: &str = "application/cloudevents+json";

/// The outcome of a message.
#[derive(Debug)]
pub enum Taken {
    /// All effects of the event have been committed.
    Done,
    /// It may be processed later. `helps`: a plain retry may be enough.
    Later { error: Error, helps: bool },
    /// It can never be processed.
    Never(String),
}

impl Service {
    /// Publishes an event, and returns how to treat its message. `given` is called as soon as the waiting instances
    /// have the event and the instances that it starts exist. Events that depend on it may then follow while its
    /// effects are still being carried out.
    pub async fn process_arrived(
        &self,
        event: &CloudEvent,
        arrival: &mut Arrival,
        given: impl FnOnce() + Send,
    ) -> Taken {
        match self.publish_arrived(event, arrival, given).await {
            Ok(()) => Taken::Done,
            Err(error) if is_for_good(&error) => Taken::Never(error.to_string()),
            Err(error) => Taken::Later {
                helps: error.is_retryable(),
                error,
            },
        }
    }
}

/// Whether the event itself is at fault, so that a retry can't help.
fn is_for_good(error: &Error) -> bool {
    matches!(error, Error::Store(swirl_ports::Error::TooLarge { .. }))
}

/// A message that is not an event.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{reason}")]
pub struct NoEvent {
    #[source]
    pub reason: Invalid,
    /// The type, source and id that it states. Absent ones are empty.
    pub said: Box<CloudEvent>,
}

/// Reads an event from a message: in the binary mode of the CloudEvents protocol bindings if the message has headers
/// `ce-...`, otherwise in the JSON format. A message whose type is that of events is in the JSON format even if it has
/// such headers, which then only repeat attributes. Header names are compared without regard to case.
///
/// # Errors
/// The reason why it isn't an event.
pub fn read_message<'a>(
    headers: impl Iterator<Item = (&'a str, &'a str)>,
    payload: &[u8],
) -> Result<CloudEvent, NoEvent> {
    let headers: Vec<(String, &str)> = headers
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect();
    let mut said = cloudevents::said_in_headers(as_bytes(&headers));
    read_lower(&headers, payload, &mut said).map_err(|reason| NoEvent {
        reason,
        said: Box::new(said),
    })
}

fn as_bytes<'a>(headers: &'a [(String, &str)]) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
}

/// Reads a message whose header names are in lower case. `said` gets what a body that isn't an event says of itself.
fn read_lower(
    headers: &[(String, &str)],
    payload: &[u8],
    said: &mut CloudEvent,
) -> Result<CloudEvent, Invalid> {
    let named = |wanted: &'static str| {
        let headers = headers.iter();
        headers.filter_map(move |(name, value)| (name == wanted).then_some(*value))
    };
    let mut payload = Cow::Borrowed(payload);
    if named("content-encoding").next().is_some() {
        let codings = named("content-encoding");
        let decoded = swirl_content::decode(codings, payload.into_owned(), DECODED_BYTES_MAX);
        payload = Cow::Owned(decoded.map_err(|error| Invalid::Unreadable(error.to_string()))?);
    }
    let is_structured = named("content-type")
        .next()
        .is_some_and(|kind| swirl_content::media_type(kind) == STRUCTURED);
    if !is_structured && headers.iter().any(|(name, _)| name.starts_with("ce-")) {
        return cloudevents::binary(as_bytes(headers), &payload);
    }
    let text = swirl_content::text(&payload, named("content-type").next());
    let text = text.map_err(|error| Invalid::Unreadable(error.to_string()))?;
    let json = Data::parse(text.as_bytes()).map_err(|error| Invalid::Json(error.to_string()))?;
    cloudevents::structured(&json).inspect_err(|_| *said = cloudevents::said_in_json(&json))
}

/// An event that has arrived and whose turn hasn't come yet.
#[derive(Debug)]
pub struct Arrival {
    /// The deployed definitions, if they were read after the event arrived. They may be used if its turn comes
    /// immediately.
    pub(crate) catalog: Option<Arc<Catalog>>,
    keys: Vec<u64>,
    /// Identifies the event itself: its duplicates have the same key.
    identity: u64,
    is_unawaited: bool,
}

impl Arrival {
    /// The keys of the event, see [`keys`].
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// The event can only start instances, and each of them by itself, so no instance can notice its order. This holds
    /// if all earlier events that share a key with it are done, or also satisfy this. Otherwise [`Arrival::in_order`]
    /// must be called.
    pub fn is_unawaited(&self) -> bool {
        self.is_unawaited
    }

    /// The turn of the event has to look for instances that wait for it.
    pub fn in_order(&mut self) {
        self.is_unawaited = false;
    }

    /// The keys that the event shares with others whose turns must not overlap with its own.
    pub fn turn_keys(&self) -> Vec<u64> {
        match self.is_unawaited {
            true => vec![self.identity],
            false => self.keys.iter().copied().chain([self.identity]).collect(),
        }
    }

    /// The turn doesn't come immediately: definitions may be deployed before it does.
    pub fn delayed(&mut self) {
        self.catalog = None;
    }
}

impl Service {
    /// Returns the keys of these events in the order of arrival, and determines which events need no order.
    ///
    /// # Errors
    /// The store cannot return the deployed definitions, or what instances wait for.
    pub async fn arrived(&self, events: &[&CloudEvent]) -> Result<Vec<Arrival>, Error> {
        // Both at the same time, because usually nothing was deployed since the last events.
        let known = self.registry.known().await;
        let (catalog, unawaited) =
            join(self.registry.catalog(), self.unawaited(events, &known)).await;
        let catalog = catalog?;
        let unawaited = match Arc::ptr_eq(&catalog, &known) {
            true => unawaited?,
            false => self.unawaited(events, &catalog).await?,
        };
        let arrival = |(event, is_unawaited): (&&CloudEvent, bool)| Arrival {
            catalog: Some(catalog.clone()),
            keys: keys(event, &catalog.consumed),
            identity: hash("event", &event.key()),
            is_unawaited,
        };
        Ok(events.iter().zip(unawaited).map(arrival).collect())
    }

    /// Whether each event's only key is its source, it starts instances by itself, and no instance waits for it now.
    async fn unawaited(
        &self,
        events: &[&CloudEvent],
        catalog: &Catalog,
    ) -> Result<Vec<bool>, Error> {
        let is_candidate = |event: &&CloudEvent| {
            own_keys(event, &catalog.consumed).is_empty()
                && starts_alone(event, catalog.triggers.iter())
        };
        let mut unawaited: Vec<bool> = events.iter().map(is_candidate).collect();
        let all = events.iter().zip(&unawaited);
        let candidates = all.filter_map(|(event, is_candidate)| is_candidate.then_some(*event));
        let candidates: Vec<&CloudEvent> = candidates.collect();
        if candidates.is_empty() {
            return Ok(unawaited);
        }
        let awaited = self.events.awaited(&candidates, &catalog.listeners);
        let mut awaited = awaited.await?.into_iter();
        for one in unawaited.iter_mut().filter(|one| **one) {
            *one = !awaited.next().unwrap_or(true);
        }
        Ok(unawaited)
    }
}

/// Events with a common key are processed one at a time, in the order of arrival. Keys are the subject, and the value
/// of each attribute that one of the `consumed` event definitions correlates by. An event without either has the key of
/// its source.
pub fn keys(event: &CloudEvent, consumed: &[EventMatch]) -> Vec<u64> {
    let mut keys = own_keys(event, consumed);
    if keys.is_empty() {
        keys.push(hash("source", &event.source));
    }
    keys
}

fn own_keys(event: &CloudEvent, consumed: &[EventMatch]) -> Vec<u64> {
    let mut names = attributes_to_keep(event, consumed);
    names.insert("subject".into());
    let mut keys: Vec<u64> = names
        .iter()
        .filter_map(|name| Some(hash(&name.to_ascii_lowercase(), &event.attribute(name)?)))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn hash(name: &str, value: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, value).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use swirl_model::workflow::EventId;

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
        let repeated = [
            ("ce-id", "1"),
            (
                "Content-Type",
                "Application/CloudEvents+JSON; charset=utf-8",
            ),
        ];
        let event = read_message(repeated.into_iter(), JSON.as_bytes()).unwrap();
        assert_eq!(event.attribute("orderid").as_deref(), Some("7"));
        assert_eq!(event.data, None);
        let marked = [b"\xef\xbb\xbf", JSON.as_bytes()].concat();
        assert!(read_message(none(), &marked).is_ok());
        for (name, value) in [
            ("Content-Encoding", "zstd"),
            ("Content-Type", "application/json; charset=klingon"),
        ] {
            let read = read_message([(name, value)].into_iter(), JSON.as_bytes());
            let reason = read.map_err(|error| error.reason);
            assert!(matches!(reason, Err(Invalid::Unreadable(_))), "{reason:?}");
        }
        assert!(read_message(none(), b"hello").is_err());
        assert!(read_message(headers.into_iter().skip(1), b"").is_err());
    }

    #[test]
    fn what_is_no_event_is_known_as_far_as_it_says() {
        let said = |headers: &[(&str, &str)], body: &str| {
            let read = read_message(headers.iter().copied(), body.as_bytes());
            let said = read.unwrap_err().said;
            [said.kind, said.source, said.id]
        };
        let headers = [
            ("Ce-Specversion", "1.0"),
            ("Ce-Id", "n%31"),
            ("ce-source", "/s"),
            ("ce-type", "t"),
            ("content-type", "application/json"),
        ];
        assert_eq!(said(&headers, "{"), ["t", "/s", "n1"]);
        assert_eq!(said(&headers[1..], "1"), ["t", "/s", "n1"]);
        assert_eq!(said(&headers[2..4], ""), ["t", "/s", ""]);
        let unknown = [&headers[..], &[("content-encoding", "zstd")]].concat();
        assert_eq!(said(&unknown, "1"), ["t", "/s", "n1"]);
        let json = JSON.replace("1.0", "0.3");
        assert_eq!(said(&[], &json), ["t", "/s", "1"]);
        assert_eq!(said(&[], r#"{"type":"t","id":7}"#), ["t", "", ""]);
        assert_eq!(said(&[], "hello"), ["", "", ""]);
    }

    #[test]
    fn related_events_share_a_key() {
        let event = |text: &str| read_message(std::iter::empty(), text.as_bytes()).unwrap();
        let consumed = |kind: &str, names: &[&str]| EventMatch {
            def: EventId(0),
            source: None,
            kind: Some(kind.to_owned()),
            correlation: names.iter().map(|name| ((*name).into(), None)).collect(),
            ..EventMatch::default()
        };
        let by = [
            consumed("t", &["orderid"]),
            consumed("u", &["orderId", "customer"]),
        ];
        let shares = |a: &str, b: &str| {
            let (a, b) = (keys(&event(a), &by), keys(&event(b), &by));
            a.iter().any(|key| b.contains(key))
        };
        let with = |kind: &str, attributes: &str| {
            JSON.replace(r#""t""#, &format!("{kind:?}"))
                .replace(r#""orderid":"7""#, attributes)
        };
        // The same with any additional attributes.
        assert!(shares(JSON, &with("t", r#""orderid":"7","sequence":"2""#)));
        assert!(shares(JSON, &with("u", r#""orderid":"7","customer":"1""#)));
        assert!(shares(
            &with("u", r#""orderid":"8","customer":"1""#),
            &with("u", r#""orderid":"7","customer":"1""#)
        ));
        assert!(shares(
            &with("t", r#""orderid":"1","subject":"s""#),
            &with("t", r#""orderid":"2","subject":"s""#)
        ));
        assert!(!shares(JSON, &with("t", r#""orderid":"8""#)));
        // This kind has no correlation, so events of the same source stay in order.
        assert!(shares(
            &with("v", r#""orderid":"1""#),
            &with("v", r#""orderid":"2""#)
        ));
    }
}
