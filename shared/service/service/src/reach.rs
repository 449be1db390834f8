//! The outcome of an event, for its sender: the instances that received it or were started by it, and if there are
//! none, the reasons.

use std::collections::VecDeque;

use swirl_api::events::{Outcome, Reach, Started};
use swirl_model::event::{EventMatch, source_fits};
use swirl_model::ids::DefinitionId;
use swirl_model::{CloudEvent, Data};
use swirl_ports::matching::{addressee, attributes_to_keep, roles};
use swirl_ports::{Consumed, Trigger};
use swirl_runtime::Catalog;

/// The maximum number of reasons.
const REASONS_MAX: usize = 10;

/// Types with at least this much in common, from 0 to 1, are probably meant to be the same.
const LIKE_MIN: f64 = 0.8;

/// An event without effects.
pub(crate) fn none(source: String, id: String) -> Reach {
    Reach {
        source,
        id,
        outcome: Outcome::NotReceived,
        duplicate: false,
        instances: Vec::new(),
        started: Vec::new(),
        collected_by: Vec::new(),
        kept: false,
        reasons: Vec::new(),
    }
}

/// Describes the part of an event's outcome that doesn't depend on how it was delivered. With `reasons` all definitions
/// are searched.
pub(crate) fn explain(
    reach: &mut Reach,
    event: &CloudEvent,
    catalog: &Catalog,
    triggers: &[Trigger],
) {
    reach.kept = !attributes_to_keep(event, &catalog.consumed).is_empty();
    if addressee(event).is_none() {
        let waits = triggers
            .iter()
            .filter(|trigger| !trigger.exclusive && !roles(trigger, event).is_empty());
        let names = waits.map(|trigger| trigger.definition.workflow.to_string());
        let started = |name: &String| reach.started.iter().any(|one| one.workflow == *name);
        reach.collected_by = names.filter(|name| !started(name)).collect();
    }
    let is_taken =
        !reach.instances.is_empty() || !reach.started.is_empty() || !reach.collected_by.is_empty();
    if !is_taken && !reach.duplicate {
        reach.reasons.extend(reasons(event, catalog, triggers));
    }
}

pub(crate) fn outcome(reach: &Reach) -> Outcome {
    match reach {
        _ if reach.duplicate => Outcome::Duplicate,
        _ if !reach.instances.is_empty() || !reach.started.is_empty() => Outcome::Received,
        _ if !reach.collected_by.is_empty() => Outcome::Collected,
        _ if reach.kept => Outcome::Kept,
        _ => Outcome::NotReceived,
    }
}

/// The outcome on one line.
pub fn text(reach: &Reach) -> String {
    if reach.duplicate {
        return "it was received before, so nothing was done".to_owned();
    }
    let mut parts = Vec::new();
    for Started { id, workflow } in &reach.started {
        parts.push(format!("started {workflow} {id}"));
    }
    for id in &reach.instances {
        parts.push(format!("reached {id}"));
    }
    for workflow in &reach.collected_by {
        parts.push(format!("waits for other events to start {workflow}"));
    }
    if parts.is_empty() {
        parts.push("no instance took it".to_owned());
    }
    if reach.kept {
        parts.push("it is kept for instances that wait for it later".to_owned());
    }
    let mut text = parts.join("; ");
    if !reach.reasons.is_empty() {
        text.push_str(": ");
        text.push_str(&reach.reasons.join("; "));
    }
    text
}

fn reasons(event: &CloudEvent, catalog: &Catalog, triggers: &[Trigger]) -> Vec<String> {
    if let Some(id) = addressee(event) {
        return vec![format!(
            "it names the instance {id}, which does not wait for it"
        )];
    }
    let mut near = Vec::new();
    let mut far = Vec::new();
    for deployed in &catalog.latest {
        let id = deployed.id();
        for consumed in &deployed.head.interests.consumed {
            let filter = &consumed.filter;
            if filter.kind.as_ref().is_some_and(|kind| *kind != event.kind) {
                continue;
            }
            match &filter.source {
                Some(source) if !source_fits(source, &event.source) => far.push(format!(
                    "{id} consumes the type '{}' from '{source}', not from '{}'",
                    event.kind, event.source
                )),
                _ => near.push(refused(event, id, consumed, catalog, triggers)),
            }
        }
    }
    let mut found = if near.is_empty() { far } else { near };
    if found.is_empty() {
        found.push(unknown_type(event, catalog));
    }
    found.dedup();
    found.truncate(REASONS_MAX);
    found
}

/// Says that nothing consumes the type of the event, and which type it may be meant to have.
pub(crate) fn unknown_type(event: &CloudEvent, catalog: &Catalog) -> String {
    let text = format!("no deployed workflow consumes the type '{}'", event.kind);
    let plain = |kind: &str| kind.to_lowercase().replace(['-', '_', '/', ':'], ".");
    let kinds = catalog.latest.iter().flat_map(|one| {
        let consumed = one.head.interests.consumed.iter();
        consumed.filter_map(|consumed| Some((consumed.filter.kind.as_ref()?, one.id())))
    });
    let near = kinds
        .map(|(kind, id)| {
            let likeness =
                strsim::normalized_damerau_levenshtein(&plain(kind), &plain(&event.kind));
            (likeness, kind, id)
        })
        .filter(|(likeness, ..)| *likeness >= LIKE_MIN)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    match near {
        Some((_, kind, id)) => format!("{text}; {id} consumes '{kind}'"),
        None => text,
    }
}

/// Where the event has the first value by which it is correlated, if it has one in another place.
fn nearest_name(event: &CloudEvent, filter: &EventMatch) -> String {
    let mut missing = filter.correlation.iter().map(|(name, _)| name);
    let near = missing.find_map(|name| near_miss(event, name));
    near.map(|near| format!(" ({near})")).unwrap_or_default()
}

/// Where the event has a value that it should have as this attribute.
pub(crate) fn near_miss(event: &CloudEvent, attribute: &str) -> Option<String> {
    if event.attribute(attribute).is_some() {
        return None;
    }
    let plain = |name: &str| {
        let letters = name.chars().filter(|c| c.is_ascii_alphanumeric());
        letters.collect::<String>().to_ascii_lowercase()
    };
    let is_it = |name: &str| plain(name) == plain(attribute);
    let data = event.data.as_ref();
    let inside = data.and_then(|data| place_inside(data, &is_it));
    if let Some((name, place)) = &inside
        && place == "data"
    {
        return Some(format!(
            "'{name}' is inside 'data', and has to be beside it, as an attribute of the event"
        ));
    }
    if let Some(beside) = event.attributes.keys().find(|name| is_it(name)) {
        return Some(format!("it has '{beside}' instead"));
    }
    let (name, place) = inside?;
    Some(format!(
        "'{name}' is inside 'data', in '{place}', and has to be an attribute of the event"
    ))
}

/// The number of values in an event's data among which a name is looked for.
const LOOKED_AT_MAX: usize = 1_000;

/// The first member with such a name, those nearest to the top before others, and the path of the object that it is in.
fn place_inside(data: &Data, is_it: &impl Fn(&str) -> bool) -> Option<(String, String)> {
    let mut next = VecDeque::from([("data".to_owned(), data.clone())]);
    for _ in 0..LOOKED_AT_MAX {
        let (place, value) = next.pop_front()?;
        let room = LOOKED_AT_MAX.saturating_sub(next.len());
        if let Some(members) = value.as_object() {
            for (name, member) in members.iter().take(room) {
                let name = Data(name.clone()).to_text();
                if is_it(&name) {
                    return Some((name, place));
                }
                next.push_back((format!("{place}.{name}"), Data(member.clone())));
            }
        } else if let Some(items) = value.as_array() {
            for (number, item) in items.iter().take(room).enumerate() {
                next.push_back((format!("{place}[{number}]"), Data(item.clone())));
            }
        }
    }
    None
}

/// The reason why a definition that consumes the event doesn't accept it.
fn refused(
    event: &CloudEvent,
    id: &DefinitionId,
    consumed: &Consumed,
    catalog: &Catalog,
    triggers: &[Trigger],
) -> String {
    let correlation = consumed.filter.correlation.iter();
    let missing = correlation.map(|(attribute, _)| &**attribute);
    let missing: Vec<&str> = missing
        .filter(|name| event.attribute(name).is_none())
        .collect();
    if !missing.is_empty() {
        let missing = missing.join("', '");
        let near = nearest_name(event, &consumed.filter);
        return format!(
            "{id} correlates '{}' by '{missing}', which the event lacks{near}",
            consumed.name
        );
    }
    let starts =
        |trigger: &&Trigger| trigger.definition == *id && !roles(trigger, event).is_empty();
    if triggers.iter().any(|trigger| starts(&trigger)) {
        return format!("an instance of {id} with this correlation runs already");
    }
    if catalog.triggers.iter().any(|trigger| starts(&trigger)) {
        return format!("the schedule of {id} allows no instance to be started now");
    }
    format!(
        "no instance of {id} waits for '{}' with this correlation",
        consumed.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_place_of_a_value_is_named() {
        let near = |event: &str| {
            let event =
                format!(r#"{{"specversion":"1.0","id":"1","source":"/s","type":"t",{event}}}"#);
            near_miss(&serde_json::from_str(&event).unwrap(), "orderid")
        };
        let inside = |name: &str, place: &str| {
            format!(
                "'{name}' is inside 'data', in '{place}', and has to be an attribute of the event"
            )
        };
        for (event, expected) in [
            (
                r#""data":{"OrderId":"7","a":{"orderid":"8"}}"#,
                "'OrderId' is inside 'data', and has to be beside it, as an attribute of the event"
                    .to_owned(),
            ),
            (
                r#""data":{"order":{"orderid":"o7"}}"#,
                inside("orderid", "data.order"),
            ),
            (
                r#""data":{"a":{"b":{"c":{"order_id":"o7"}}},"lines":[1,{"order-id":"o7"}]}"#,
                inside("order-id", "data.lines[1]"),
            ),
            (
                r#""data":[[{"orderid":1}]]"#,
                inside("orderid", "data[0][0]"),
            ),
        ] {
            assert_eq!(near(event).as_deref(), Some(&*expected), "{event}");
        }
        for event in [
            r#""orderid":"7","data":{"orderid":"7"}"#,
            r#""data":{"id":7}"#,
        ] {
            assert_eq!(near(event), None, "{event}");
        }
        // Large data isn't searched to its end.
        let many = vec!["{}"; 2 * LOOKED_AT_MAX].join(",");
        assert_eq!(near(&format!(r#""data":[{many},{{"orderid":1}}]"#)), None);
    }
}
