//! The events that deployed definitions listen to, by type.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use swirl_model::CloudEvent;
use swirl_model::event::EventMatch;

type Names = Vec<(Arc<str>, Option<String>)>;

/// Definitions of consumed events without duplicates, however many workflows and versions have them.
#[derive(Debug, Default)]
pub struct Listeners {
    by_kind: HashMap<String, Vec<EventMatch>>,
    /// Definitions that name only a source.
    others: Vec<EventMatch>,
}

impl Listeners {
    pub fn new(filters: impl Iterator<Item = EventMatch>) -> Listeners {
        let mut seen: BTreeSet<(Option<String>, Option<String>, [Names; 2])> = BTreeSet::new();
        let mut all = Listeners::default();
        for filter in filters {
            let kind = filter.kind.clone();
            let names = [filter.correlation.clone(), filter.attributes.clone()];
            if !seen.insert((kind, filter.source.clone(), names)) {
                continue;
            }
            match &filter.kind {
                Some(kind) => all.by_kind.entry(kind.clone()).or_default(),
                None => &mut all.others,
            }
            .push(filter);
        }
        all
    }

    /// The definitions with this event's type and source. Correlation is not checked.
    pub fn of(&self, event: &CloudEvent) -> impl Iterator<Item = &EventMatch> {
        let of_kind = self.by_kind.get(&event.kind).into_iter().flatten();
        let all = of_kind.chain(&self.others);
        all.filter(|filter| filter.is_kind(event))
    }

    /// Whether any definition listens to the event.
    pub fn any(&self, event: &CloudEvent) -> bool {
        self.of(event).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::workflow::EventId;

    use super::*;

    fn filter(kind: Option<&str>, source: Option<&str>, names: &[&str]) -> EventMatch {
        EventMatch {
            def: EventId(0),
            source: source.map(str::to_owned),
            kind: kind.map(str::to_owned),
            correlation: names.iter().map(|name| ((*name).into(), None)).collect(),
            ..EventMatch::default()
        }
    }

    fn event(kind: &str, source: &str) -> CloudEvent {
        let event =
            swirl_model::data!({"specversion": "1.0", "id": "1", "source": source, "type": kind});
        serde_json::from_str(&event.to_string()).unwrap()
    }

    #[test]
    fn an_event_has_the_listeners_of_its_type_and_source() {
        let all = [
            filter(Some("t"), None, &[]),
            filter(Some("t"), None, &["a"]),
            filter(Some("t"), None, &[]),
            filter(Some("t"), Some("/other"), &[]),
            filter(None, Some("/s/+"), &[]),
        ];
        let listeners = Listeners::new(all.into_iter());
        let count = |kind, source| listeners.of(&event(kind, source)).count();
        assert_eq!(count("t", "/s"), 2, "the same one counts once");
        assert_eq!((count("t", "/other"), count("t", "/s/1")), (3, 3));
        assert!(listeners.any(&event("u", "/s/1")));
        assert!(!listeners.any(&event("u", "/s")));
    }
}
