//! Where waits and kept events are looked for: by type or source, and by one correlation value.
//!
//! A wait whose value is known stands only under that value, so an event finds it among any
//! number of others; one whose values are all unknown stands under the type alone. What is found
//! is then compared in full.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use swirl_model::CloudEvent;
use swirl_model::event::EventMatch;

pub(crate) type Correlation = BTreeMap<Arc<str>, String>;

/// Numbers in their order. Mostly one, so a vector.
#[derive(Debug, Default)]
pub(crate) struct Places(Vec<u64>);

impl Places {
    pub fn insert(&mut self, place: u64) {
        if let Err(index) = self.0.binary_search(&place) {
            // Room for one at first, not for four.
            if self.0.is_empty() {
                self.0.reserve_exact(1);
            }
            self.0.insert(index, place);
        }
    }

    /// True: it was the last one.
    pub fn remove(&mut self, place: u64) -> bool {
        if let Ok(index) = self.0.binary_search(&place) {
            self.0.remove(index);
        }
        self.0.is_empty()
    }

    pub fn all(&self) -> &[u64] {
        &self.0
    }
}

/// Places in some order, by bucket.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    places: HashMap<Arc<str>, Places>,
}

impl Buckets {
    pub fn insert(&mut self, bucket: &Arc<str>, place: u64) {
        self.places.entry(bucket.clone()).or_default().insert(place);
    }

    pub fn remove(&mut self, bucket: &str, place: u64) {
        if self
            .places
            .get_mut(bucket)
            .is_some_and(|places| places.remove(place))
        {
            self.places.remove(bucket);
        }
    }

    pub fn get(&self, bucket: &str) -> &[u64] {
        self.places.get(bucket).map_or(&[], Places::all)
    }
}

fn valued(kind: &str, attribute: &str, value: &str) -> String {
    format!("{kind}\0{}\0{value}", attribute.to_ascii_lowercase())
}

/// The value that an event must have in this attribute to be the instance's, as far as known.
pub(crate) fn known_value<'a>(
    attribute: &str,
    explicit: &'a Option<String>,
    correlation: &'a Correlation,
) -> Option<&'a String> {
    let lower = attribute.to_ascii_lowercase();
    explicit
        .as_ref()
        .or_else(|| correlation.get(lower.as_str()))
}

fn kind_of(filter: &EventMatch) -> String {
    match (&filter.kind, &filter.source) {
        (Some(kind), _) => format!("t{kind}"),
        (None, Some(source)) => format!("s{source}"),
        (None, None) => "*".to_owned(),
    }
}

/// Where a filter stands, or is to look.
pub(crate) fn bucket_of(filter: &EventMatch, correlation: &Correlation) -> Arc<str> {
    let kind = kind_of(filter);
    let known = filter.correlation.iter().find_map(|(attribute, explicit)| {
        Some((attribute, known_value(attribute, explicit, correlation)?))
    });
    match known {
        Some((attribute, value)) => valued(&kind, attribute, value).into(),
        None => kind.into(),
    }
}

/// The buckets in which an event is to be found or looked for: those of its kinds alone, and those
/// with each of the given attributes.
pub(crate) fn buckets_of<'a>(
    event: &CloudEvent,
    attributes: impl Iterator<Item = &'a str> + Clone,
) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
    let kinds = [
        format!("t{}", event.kind),
        format!("s{}", event.source),
        "*".to_owned(),
    ];
    let values = kinds.iter().flat_map(|kind| {
        attributes.clone().filter_map(move |attribute| {
            Some(valued(kind, attribute, &event.attribute(attribute)?).into())
        })
    });
    let values = values.collect();
    (kinds.into_iter().map(Arc::from).collect(), values)
}

/// All attributes of an event that one can correlate by.
pub(crate) fn attributes_of(event: &CloudEvent) -> impl Iterator<Item = &str> + Clone {
    ["id", "source", "type"]
        .into_iter()
        .chain(event.attributes.keys().map(String::as_str))
}

/// How an event and a filter go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    No,
    /// It has no correlation: any event of the kind will do.
    Kind,
    /// A correlation, but no value of it is known yet.
    Unknown,
    /// All values that are known are equal.
    Known,
}

pub(crate) fn fit(filter: &EventMatch, correlation: &Correlation, event: &CloudEvent) -> Fit {
    if !filter.is_kind(event) {
        return Fit::No;
    }
    if filter.correlation.is_empty() {
        return Fit::Kind;
    }
    let (mut carried, mut known) = (false, false);
    for (attribute, explicit) in &filter.correlation {
        let found = event.attribute(attribute);
        carried |= found.is_some();
        if let Some(value) = known_value(attribute, explicit, correlation) {
            if found.as_ref() != Some(value) {
                return Fit::No;
            }
            known = true;
        }
    }
    match (carried, known) {
        (false, _) => Fit::No,
        (true, false) => Fit::Unknown,
        (true, true) => Fit::Known,
    }
}

#[cfg(test)]
mod tests {
    use swirl_model::data;
    use swirl_model::workflow::EventId;

    use super::*;

    fn event(attributes: swirl_model::Data) -> CloudEvent {
        let mut all = data!({"specversion": "1.0", "id": "1", "source": "/s", "type": "t"});
        swirl_model::merge::merge_over(&mut all, &attributes);
        serde_json::from_str(&all.to_string()).unwrap()
    }

    fn filter(correlation: &[(&str, Option<&str>)]) -> EventMatch {
        let pair =
            |(name, value): &(&str, Option<&str>)| (Arc::from(*name), value.map(str::to_owned));
        EventMatch {
            def: EventId(0),
            source: None,
            kind: Some("t".to_owned()),
            correlation: correlation.iter().map(pair).collect(),
        }
    }

    fn give(
        correlation: &[(&str, Option<&str>)],
        known: &[(&str, &str)],
        carried: swirl_model::Data,
    ) -> Fit {
        let known = known
            .iter()
            .map(|(name, value)| (Arc::from(*name), (*value).to_owned()));
        fit(&filter(correlation), &known.collect(), &event(carried))
    }

    #[test]
    fn fits() {
        assert_eq!(give(&[], &[], data!({})), Fit::Kind);
        assert_eq!(give(&[("a", None)], &[], data!({"a": "1"})), Fit::Unknown);
        assert_eq!(give(&[("a", None)], &[], data!({"b": "1"})), Fit::No);
        assert_eq!(
            give(&[("a", None)], &[("a", "1")], data!({"a": 1})),
            Fit::Known
        );
        assert_eq!(
            give(&[("a", None)], &[("a", "2")], data!({"a": "1"})),
            Fit::No
        );
        assert_eq!(
            give(&[("a", Some("1"))], &[("a", "2")], data!({"a": "1"})),
            Fit::Known
        );
        assert_eq!(
            give(
                &[("a", None), ("b", None)],
                &[("b", "1")],
                data!({"a": "1"})
            ),
            Fit::No
        );
        assert_eq!(
            give(
                &[("Patient", None)],
                &[("patient", "1")],
                data!({"patient": "1"})
            ),
            Fit::Known
        );
    }

    #[test]
    fn a_wait_is_found_by_its_value() {
        let known = Correlation::from([(Arc::from("a"), "7".to_owned())]);
        let bucket = bucket_of(&filter(&[("A", None)]), &known);
        let event = event(data!({"a": 7}));
        let (kinds, values) = buckets_of(&event, attributes_of(&event));
        assert!(values.contains(&bucket) && !kinds.contains(&bucket));
        let unknown = bucket_of(&filter(&[("A", None)]), &Correlation::new());
        assert!(kinds.contains(&unknown));
    }
}
