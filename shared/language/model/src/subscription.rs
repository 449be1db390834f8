//! The events that a scope waits for, and whether an event is one of them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::CloudEvent;
use crate::workflow::EventId;

/// The events that a scope waits for: each slot takes one event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Subscription {
    pub wait: u32,
    pub slots: Vec<Slot>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Slot {
    pub slot: u16,
    /// Any of these.
    pub filters: Vec<EventMatch>,
}

/// The CloudEvents extension that names the action which produced the event to get an answer.
pub const ACTION: &str = "swirlaction";

/// The conditions that an event must meet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EventMatch {
    pub def: EventId,
    pub source: Option<String>,
    pub kind: Option<String>,
    /// Attribute and the value it must have; without one the instance's own correlation value holds.
    pub correlation: Vec<(Arc<str>, Option<String>)>,
    /// Further attributes and the values that they must have. They link nothing: an event that came before the wait
    /// isn't for it. In a definition the value is absent if only the instance knows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(Arc<str>, Option<String>)>,
    /// The values that correlate belong to the wait: the instance neither knows nor learns them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
    /// Events are offered: the slot stays open, each event goes to the scope as it comes, and the scope says which of
    /// them it consumes ([`crate::event::Command::Take`]).
    /// In a trigger: expressions over the event decide whether it fits, before it is matched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub offers: bool,
    /// In a trigger, for one event: the values that this event and the others of its set must share, by key.
    #[serde(skip)]
    pub shares: Vec<(Arc<str>, String)>,
    /// The action that asks for this answer. Its own events never match (docs/language.md#decision-82 and
    /// #decision-107). In records of older versions it is the id of such an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub except: Option<String>,
}

impl EventMatch {
    /// Whether the event has the definition's source and type. Correlation is not checked.
    pub fn is_kind(&self, event: &CloudEvent) -> bool {
        self.source
            .as_ref()
            .is_none_or(|source| source_fits(source, &event.source))
            && self.kind.as_ref().is_none_or(|kind| *kind == event.kind)
            && self.except.as_ref().is_none_or(|except| {
                *except != event.id && event.attribute(ACTION).as_ref() != Some(except)
            })
    }

    /// Whether the event has all further attributes, as far as their values are known.
    pub fn has_attributes(&self, event: &CloudEvent) -> bool {
        let has = |(name, value): &(Arc<str>, Option<String>)| {
            let found = event.attribute(name);
            match value {
                Some(value) => found.as_ref() == Some(value),
                None => found.is_some(),
            }
        };
        self.attributes.iter().all(has)
    }

    /// Whether the event has everything that this wait asks for by itself, also the values that correlate.
    pub fn fits(&self, event: &CloudEvent) -> bool {
        let correlates = |(name, value): &(Arc<str>, Option<String>)| {
            let found = event.attribute(name);
            found.is_some() && (value.is_none() || found == *value)
        };
        self.is_kind(event) && self.has_attributes(event) && self.correlation.iter().all(correlates)
    }
}

/// Whether a source in a definition can match more than one source.
pub fn is_source_pattern(source: &str) -> bool {
    let mut segments = source.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        if matches!(segment, "+" | "*") || (is_last && matches!(segment, "#" | "**")) {
            return true;
        }
    }
    false
}

/// Whether an event's source is the one in a definition: a whole segment `+` or `*` matches any one segment, a last
/// segment `#` or `**` for the rest, at least one (docs/language.md#decision-93).
pub fn source_fits(pattern: &str, source: &str) -> bool {
    if pattern == source {
        return true;
    }
    if !is_source_pattern(pattern) {
        return false;
    }
    let mut wanted = pattern.split('/').peekable();
    let mut found = source.split('/');
    while let Some(segment) = wanted.next() {
        let is_last = wanted.peek().is_none();
        if is_last && matches!(segment, "#" | "**") {
            return found.next().is_some();
        }
        match found.next() {
            Some(other) if segment == other || matches!(segment, "+" | "*") => {}
            _ => return false,
        }
    }
    found.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_with_segments_for_any() {
        for (pattern, source, fits) in [
            ("/a/b", "/a/b", true),
            ("/a/b", "/a/c", false),
            ("/a/+/c", "/a/b/c", true),
            ("/a/*/c", "/a/b/c", true),
            ("/a/+/c", "/a/b/b/c", false),
            ("/a/+", "/a", false),
            ("/a/#", "/a/b/c", true),
            ("/a/**", "/a/b", true),
            ("/a/**", "/a", false),
            ("/a/#/c", "/a/b/c", false),
            ("/a/#/c", "/a/#/c", true),
            ("/a*", "/ab", false),
            ("*", "shop", true),
            ("#", "https://shop/1", true),
        ] {
            assert_eq!(source_fits(pattern, source), fits, "{pattern} {source}");
        }
    }
}
