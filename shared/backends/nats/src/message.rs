//! Events as messages: their format and ids.

use swirl_model::CloudEvent;

pub(crate) const CONTENT_TYPE: &str = "application/cloudevents+json; charset=utf-8";

/// The id by which JetStream drops duplicates.
pub(crate) fn message_id(event: &CloudEvent) -> String {
    id_of(&event.source, &event.id)
}

fn id_of(source: &str, id: &str) -> String {
    // Has the form of [`CloudEvent::key`].
    blake3::hash(format!("{source}\n{id}").as_bytes()).to_hex()[..32].to_owned()
}

/// The message id for a payload that [`Bus`](crate::Bus) wrote.
pub(crate) fn message_id_of(payload: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        source: std::borrow::Cow<'a, str>,
        #[serde(borrow)]
        id: std::borrow::Cow<'a, str>,
    }
    let named: Named<'_> = serde_json::from_slice(payload).ok()?;
    Some(id_of(&named.source, &named.id))
}
