//! Whether an event fits a wait.

use swirl_model::CloudEvent;
use swirl_model::event::EventMatch;
use swirl_model::ids::InstanceId;

use super::Correlation;

/// An event with this attribute reaches only the instance named by it (docs/language.md#decision-49).
const ADDRESSEE: &str = "swirlinstanceid";

/// The only instance that an event may reach, if it names one.
pub fn addressee(event: &CloudEvent) -> Option<InstanceId> {
    event.attribute(ADDRESSEE).map(InstanceId::new)
}

/// How an event matches a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    No,
    /// The filter has no correlation: any event of the kind matches.
    Kind,
    /// The filter has a correlation, but none of its values is known yet.
    Unknown,
    /// The event equals the filter in all values known so far.
    Known,
}

impl Fit {
    /// Whether the wait may get an event that arrived before the wait began. Only waits with a correlation may.
    /// `untouched`: no other instance has consumed the event. `was_there`: the instance had already begun when the
    /// event arrived. Once an instance has consumed an event, instances that begin later don't get it
    /// (docs/language.md#decision-48).
    pub fn early(self, untouched: bool, was_there: bool) -> bool {
        match self {
            Fit::No | Fit::Kind => false,
            Fit::Known => untouched || was_there,
            Fit::Unknown => untouched,
        }
    }
}

/// The value that this attribute of an event must have for the instance, if it is known.
pub(super) fn known_value<'a>(
    filter: &EventMatch,
    attribute: &str,
    explicit: &'a Option<String>,
    correlation: &'a Correlation,
) -> Option<&'a String> {
    explicit.as_ref().or_else(|| match filter.apart {
        true => None,
        false => correlation.get(attribute.to_ascii_lowercase().as_str()),
    })
}

pub fn fit(filter: &EventMatch, correlation: &Correlation, event: &CloudEvent) -> Fit {
    if !filter.is_kind(event) || !filter.has_attributes(event) {
        return Fit::No;
    }
    if filter.correlation.is_empty() {
        return Fit::Kind;
    }
    let (mut carried, mut known) = (false, false);
    for (attribute, explicit) in &filter.correlation {
        let found = event.attribute(attribute);
        carried |= found.is_some();
        if let Some(value) = known_value(filter, attribute, explicit, correlation) {
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

/// The event's values for the attributes that a filter correlates by, as the instance learns them.
pub fn learnt(filter: &EventMatch, event: &CloudEvent) -> Correlation {
    match filter.apart {
        true => Correlation::new(),
        false => values(filter, event),
    }
}

/// The event's values for the attributes that a filter correlates by.
pub(super) fn values(filter: &EventMatch, event: &CloudEvent) -> Correlation {
    let names = filter.correlation.iter().map(|(name, _)| name);
    names
        .filter_map(|name| Some((name.to_ascii_lowercase().into(), event.attribute(name)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::fixture::{event, filter};
    use super::*;
    use swirl_model::data;

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
    fn compares_an_event_with_the_known_values() {
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
}
