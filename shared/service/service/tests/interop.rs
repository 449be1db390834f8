//! Exchanges CloudEvents with the SDK of the specification's authors: each side must read what the other wrote, with
//! the same content.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;

use cloudevents::binding::http::{Builder, Serializer, to_event};
use cloudevents::event::ExtensionValue;
use cloudevents::message::{BinaryDeserializer, Result as SdkResult, StructuredDeserializer};
use cloudevents::{AttributesReader, AttributesWriter, Event, EventBuilder, EventBuilderV10};
use http::header::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use serde_json::{Value, json};
use swirl_model::{CloudEvent, Data};
use swirl_service::cloudevents::{binary, structured};

/// A message as transported by HTTP and NATS.
#[derive(Default)]
struct Message {
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Builder<Message> for Message {
    fn header(&mut self, key: &str, value: HeaderValue) {
        self.headers
            .insert(http::HeaderName::from_bytes(key.as_bytes()).unwrap(), value);
    }

    fn body(&mut self, bytes: Vec<u8>) -> SdkResult<Message> {
        self.body = bytes;
        self.finish()
    }

    fn finish(&mut self) -> SdkResult<Message> {
        Ok(std::mem::take(self))
    }
}

fn in_headers(event: Event) -> Message {
    event
        .deserialize_binary(Serializer::new(Message::default()))
        .unwrap()
}

fn in_body(event: Event) -> Message {
    event
        .deserialize_structured(Serializer::new(Message::default()))
        .unwrap()
}

fn read(message: &Message) -> CloudEvent {
    let kind = message.headers.get("content-type");
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.starts_with("application/cloudevents+json") {
        return structured(&Data::parse(&message.body).unwrap()).unwrap();
    }
    let headers = message.headers.iter();
    let headers = headers.map(|(name, value)| (name.as_str(), value.as_bytes()));
    binary(headers, &message.body).unwrap()
}

/// Our event in the common form. Extensions become text, since headers have no other type.
fn ours(event: &CloudEvent) -> Value {
    let attributes: BTreeMap<&str, String> = event
        .attributes
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_text()))
        .collect();
    json!({
        "id": event.id, "source": event.source, "type": event.kind, "attributes": attributes,
        "data": event.data.as_ref().map(|data| serde_json::to_value(data).unwrap()),
    })
}

fn theirs(event: &Event) -> Value {
    let mut attributes: BTreeMap<&str, String> = event
        .iter_extensions()
        .map(|(name, value)| (name, value.to_string()))
        .collect();
    if let Some(subject) = event.subject() {
        attributes.insert("subject", subject.to_owned());
    }
    if let Some(kind) = event.datacontenttype() {
        attributes.insert("datacontenttype", kind.to_owned());
    }
    if let Some(schema) = event.dataschema() {
        attributes.insert("dataschema", schema.to_string());
    }
    if let Some(time) = event.time() {
        attributes.insert("time", time.to_rfc3339());
    }
    let data = event.data().map(|data| match data {
        cloudevents::Data::Json(value) => value.clone(),
        cloudevents::Data::String(text) => json!(text),
        cloudevents::Data::Binary(bytes) => {
            serde_json::from_slice(bytes).unwrap_or_else(|_| panic!("not JSON: {bytes:?}"))
        }
    });
    json!({
        "id": event.id(), "source": event.source().as_str(), "type": event.ty(), "attributes": attributes,
        "data": data,
    })
}

fn extension() -> impl Strategy<Value = ExtensionValue> {
    prop_oneof![
        "[ -~äöü€]{1,12}".prop_map(ExtensionValue::String),
        any::<bool>().prop_map(ExtensionValue::Boolean),
        any::<i32>().prop_map(|number| ExtensionValue::Integer(number.into())),
    ]
}

fn data() -> impl Strategy<Value = Option<Value>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    prop::option::of(tree)
}

fn event() -> impl Strategy<Value = Event> {
    let names = prop::collection::btree_map("x[a-z0-9]{1,10}", extension(), 0..3);
    (
        "[!-~]{1,20}",
        "/[a-z0-9/]{0,12}",
        "[a-z.]{1,20}",
        prop::option::of("[!-~]{1,12}"),
        names,
        data(),
    )
        .prop_map(|(id, source, kind, subject, extensions, data)| {
            let mut builder = EventBuilderV10::new().id(id).source(source).ty(kind);
            if let Some(subject) = subject {
                builder = builder.subject(subject);
            }
            for (name, value) in extensions {
                builder = builder.extension(&name, value);
            }
            if let Some(data) = data {
                builder = builder.data("application/json", data);
            }
            let mut event = builder.build().unwrap();
            event.set_time(None::<chrono::DateTime<chrono::Utc>>);
            event
        })
}

proptest! {
    #[test]
    fn their_structured_message_is_read(event in event()) {
        prop_assert_eq!(ours(&read(&in_body(event.clone()))), theirs(&event));
    }

    /// The SDK writes header values without escapes, so only values that need none are compatible.
    #[test]
    fn their_binary_message_is_read(event in event()) {
        let is_plain = |text: &str| !text.contains(['%', '"']) && text.is_ascii() && text.trim() == text;
        let extensions = event.iter_extensions().map(|(_, value)| value.to_string());
        prop_assume!(extensions.chain([event.id().to_owned()]).all(|text| is_plain(&text)));
        prop_assume!(event.subject().is_none_or(is_plain));
        prop_assert_eq!(ours(&read(&in_headers(event.clone()))), theirs(&event));
    }

    #[test]
    fn our_event_is_read(event in event()) {
        let event = read(&in_body(event));
        let body = serde_json::to_vec(&event).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/cloudevents+json"));
        let read = to_event(&headers, body).unwrap();
        prop_assert_eq!(theirs(&read), ours(&event));
    }
}
