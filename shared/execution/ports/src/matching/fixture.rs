//! An event and a filter for tests.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use swirl_model::CloudEvent;
use swirl_model::data;
use swirl_model::event::EventMatch;
use swirl_model::workflow::EventId;

pub fn event(attributes: swirl_model::Data) -> CloudEvent {
    let mut all = data!({"specversion": "1.0", "id": "1", "source": "/s", "type": "t"});
    swirl_model::merge::merge_over(&mut all, &attributes);
    serde_json::from_str(&all.to_string()).unwrap()
}

pub fn filter(correlation: &[(&str, Option<&str>)]) -> EventMatch {
    let pair = |(name, value): &(&str, Option<&str>)| (Arc::from(*name), value.map(str::to_owned));
    EventMatch {
        def: EventId(0),
        source: None,
        kind: Some("t".to_owned()),
        correlation: correlation.iter().map(pair).collect(),
        ..EventMatch::default()
    }
}
