//! The index of waits and kept events: by type or source, and by one correlation value.
//!
//! A wait with a known value is indexed only under that value, so an event finds it quickly among any number of others.
//! A wait without any known value is indexed under the type alone. Every wait that is found is then compared in full.

use std::collections::BTreeSet;
use std::sync::Arc;

use swirl_model::CloudEvent;
use swirl_model::event::{EventMatch, is_source_pattern};

use crate::KeptGroup;

use super::Correlation;
use super::fit::known_value;

fn valued(kind: &str, attribute: &str, value: &str) -> String {
    format!("{kind}\0{}\0{value}", attribute.to_ascii_lowercase())
}

fn kind_of(filter: &EventMatch) -> String {
    match (&filter.kind, &filter.source) {
        (Some(kind), _) => format!("t{kind}"),
        (None, Some(source)) if !is_source_pattern(source) => format!("s{source}"),
        (None, _) => "*".to_owned(),
    }
}

/// The bucket in which a filter is stored and searched.
pub fn bucket_of(filter: &EventMatch, correlation: &Correlation) -> Arc<str> {
    let kind = kind_of(filter);
    let mut rules = filter.attributes.iter().chain(&filter.correlation);
    let known = rules.find_map(|(attribute, explicit)| {
        let value = known_value(filter, attribute, explicit, correlation)?;
        Some((attribute, value))
    });
    match known {
        Some((attribute, value)) => valued(&kind, attribute, value).into(),
        None => kind.into(),
    }
}

/// Whether a bucket is for a single correlation value rather than for all events of a kind.
pub fn is_valued(bucket: &str) -> bool {
    bucket.contains('\0')
}

/// The buckets for storing or searching an event: one per kind, and one per kind and given attribute.
pub fn buckets_of<'a>(
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

/// The buckets that can contain waits by these definitions for this event. Values that differ by instance are known
/// only to the wait.
pub fn buckets_with<'a>(
    event: &CloudEvent,
    listeners: impl Iterator<Item = &'a EventMatch>,
) -> BTreeSet<Arc<str>> {
    let mut buckets = BTreeSet::new();
    for filter in listeners {
        let kind = kind_of(filter);
        // As in `bucket_of`, a wait is stored under the first value that is known.
        let mut rules = filter.attributes.iter().chain(&filter.correlation);
        let always_known = rules.any(|(attribute, constant)| {
            let value = event.attribute(attribute);
            buckets.extend(value.map(|value| valued(&kind, attribute, &value).into()));
            constant.is_some()
        });
        if !always_known {
            buckets.insert(kind.into());
        }
    }
    buckets
}

/// All attributes of an event that can be used for correlation.
pub fn attributes_of(event: &CloudEvent) -> impl Iterator<Item = &str> + Clone {
    ["id", "source", "type"]
        .into_iter()
        .chain(event.attributes.keys().map(String::as_str))
}

/// The attributes that make an event worth keeping: the event carries them, and a definition correlates by them.
pub fn attributes_to_keep(event: &CloudEvent, consumed: &[EventMatch]) -> BTreeSet<Arc<str>> {
    let filters = consumed.iter();
    let filters = filters.filter(|filter| filter.is_kind(event) && filter.has_attributes(event));
    let attributes = filters.flat_map(|filter| filter.correlation.iter().map(|(name, _)| name));
    attributes
        .filter(|name| event.attribute(name).is_some())
        .cloned()
        .collect()
}

/// What the size of a kept event counts for: the workflows that correlate by one of its attributes, and its type.
/// `owners`: the workflows of `consumed`.
pub fn groups_to_keep(
    event: &CloudEvent,
    consumed: &[EventMatch],
    owners: &[Arc<str>],
) -> BTreeSet<KeptGroup> {
    let owned = consumed.iter().zip(owners).filter(|(filter, _)| {
        let mut names = filter.correlation.iter();
        filter.is_kind(event) && names.any(|(name, _)| event.attribute(name).is_some())
    });
    let workflows = owned.map(|(_, owner)| KeptGroup::Workflow(owner.clone()));
    let kind = KeptGroup::Kind(event.kind.as_str().into());
    workflows.chain([kind]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{event, filter};
    use super::*;
    use swirl_model::data;

    #[test]
    fn buckets_with_covers_the_bucket_of_each_wait() {
        let event = event(data!({"a": 7, "b": 8}));
        let found = |definition: &[(&str, Option<&str>)]| {
            let definition = filter(definition);
            buckets_with(&event, std::iter::once(&definition))
        };
        let at = |wait: &[(&str, Option<&str>)]| bucket_of(&filter(wait), &Correlation::new());
        let both = found(&[("a", None), ("b", None)]);
        for wait in [
            &[("a", None), ("b", None)][..],
            &[("a", Some("7")), ("b", None)],
            &[("a", None), ("b", Some("8"))],
        ] {
            assert!(both.contains(&at(wait)), "{wait:?}");
        }
        assert_eq!(both.len(), 3);
        // The event lacks the first attribute, and a wait may know the second.
        assert_eq!(found(&[("c", None), ("b", None)]).len(), 2);
        // No wait is stored under the type alone if a value is always known.
        let constant = found(&[("a", Some("7")), ("b", None)]);
        assert_eq!(Vec::from_iter(constant), [at(&[("a", Some("7"))])]);
    }

    #[test]
    fn a_wait_with_a_known_value_is_found_by_that_value() {
        let known = Correlation::from([(Arc::from("a"), "7".to_owned())]);
        let bucket = bucket_of(&filter(&[("A", None)]), &known);
        let event = event(data!({"a": 7}));
        let (kinds, values) = buckets_of(&event, attributes_of(&event));
        assert!(values.contains(&bucket) && !kinds.contains(&bucket));
        let unknown = bucket_of(&filter(&[("A", None)]), &Correlation::new());
        assert!(kinds.contains(&unknown));
    }
}
