//! The facts above everything else: by what people know an instance, and what it does now.

use serde_json::Value;
use swirl_api::instance::{AwaitedEvent, ScopePosition as Scope};
use swirl_api::{Instance, Instant, Status};
use swirl_presentation::timeline::told as error_text;

use super::story::Story;
use super::{PLACES_MAX, ROOT};
use crate::asking::segment;
use crate::naming::{Kind, Name};
use crate::pages::events::address;
use crate::words::{Awaited, awaited, doing, timer};

/// How many search attributes are shown, and how much of each.
const ATTRIBUTES_MAX: usize = 8;
const VALUE_CHARS_MAX: usize = 80;

/// A value by which people know an instance.
pub struct Attribute {
    pub name: String,
    pub value: String,
}

pub struct Place {
    pub sentence: String,
    /// The last entry of its history: it has been there since.
    pub since: Option<Instant>,
    /// The events, each with the address at which it can be sent; empty if its type isn't known.
    pub awaited: Vec<(Awaited, String)>,
    pub timers: Vec<Timer>,
    pub error: String,
}

pub struct Timer {
    pub at: Instant,
    pub effect: &'static str,
}

pub struct Relative {
    pub relation: &'static str,
    pub id: String,
    pub path: String,
}

/// By what people know it; empty if that is only its id.
pub fn business_name(found: &Instance) -> String {
    let keys = (found.instance_key.as_deref(), found.key.as_deref());
    let name = Name::of(&found.id, keys.0, keys.1, &found.attributes);
    match name.kind {
        Kind::Id => String::new(),
        _ => cut(&name.text),
    }
}

pub fn attributes(found: &Instance) -> Vec<Attribute> {
    let all = found.attributes.iter().take(ATTRIBUTES_MAX);
    all.map(|(name, value)| Attribute {
        name: name.clone(),
        value: text(value),
    })
    .collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => cut(text),
        other => cut(&other.to_string()),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

pub fn relatives(found: &Instance) -> Vec<Relative> {
    let all = [
        ("Called by", &found.parent),
        ("Continues", &found.continued_from),
    ];
    let all = all.into_iter().filter_map(|(relation, id)| {
        let id = id.clone()?;
        Some(Relative {
            relation,
            path: segment(&id),
            id,
        })
    });
    all.collect()
}

/// Whether the main flow waits for an event, an answer or a time, as lists of instances say it.
pub fn is_waiting(found: &Instance) -> bool {
    let root = found.scopes.iter().find(|place| place.scope == ROOT);
    let waits = [
        "kept active",
        "sleeping",
        "waiting for an answer",
        "waiting for events",
        "waiting to retry",
    ];
    root.is_some_and(|root| waits.contains(&root.doing.as_str()))
}

/// Its current work, and the number of further branches. Of a failed instance only the failures are shown, without a
/// state that failed because of a branch.
pub fn places(found: &Instance, story: &Story) -> (Vec<Place>, usize) {
    let has_failed = found.status == Status::Faulted;
    let failed: Vec<&Scope> = found
        .scopes
        .iter()
        .filter(|place| place.error.is_some())
        .collect();
    let of_branches = failed.iter().filter(|place| place.scope != ROOT);
    let of_branches: Vec<&Scope> = of_branches.copied().collect();
    let shown: Vec<&Scope> = match (has_failed, of_branches.is_empty(), failed.is_empty()) {
        (true, false, _) => of_branches,
        (true, true, false) => failed,
        _ => found.scopes.iter().collect(),
    };
    let more = shown.len().saturating_sub(PLACES_MAX);
    let shown = shown.into_iter().take(PLACES_MAX);
    (shown.map(|scope| place(scope, story)).collect(), more)
}

fn sendable(event: AwaitedEvent) -> (Awaited, String) {
    let event = awaited(event);
    let address = address(&event);
    (event, address)
}

fn place(scope: &Scope, story: &Story) -> Place {
    let mut entries = story.entries.iter().rev();
    let last = entries.find(|entry| entry.scope == scope.scope);
    Place {
        sentence: doing(scope),
        since: last.map(|entry| entry.at),
        error: scope.error.as_ref().map(error_text).unwrap_or_default(),
        awaited: scope.waits_for.iter().cloned().map(sendable).collect(),
        timers: scope
            .timers
            .iter()
            .map(|one| Timer {
                at: one.due,
                effect: timer(&one.kind),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn instance(more: Value) -> Instance {
        let mut found = json!({"id": "i", "workflow": "w", "version": "1", "status": "faulted", "input": {},
            "startedAt": "2026-01-01T00:00:00Z"});
        found
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(found).unwrap()
    }

    #[test]
    fn an_instance_has_a_name_for_people() {
        let name = |more: Value| business_name(&instance(more));
        let attributes = json!({"amount": 7, "orderId": "A-7"});
        assert_eq!(name(json!({"attributes": attributes, "key": "k"})), "k");
        assert_eq!(
            name(json!({"attributes": attributes, "key": "console-1"})),
            "A-7"
        );
        assert_eq!(name(json!({})), "");
        let long = cut(&"é".repeat(100));
        assert_eq!(long.chars().count(), VALUE_CHARS_MAX + 1);
    }

    #[test]
    fn waiting_is_not_running() {
        let waits = |doing: &str| {
            let scopes = json!({"scopes": [{"scope": "r", "doing": doing}]});
            is_waiting(&instance(scopes))
        };
        assert!(waits("sleeping") && waits("waiting for events"));
        assert!(!waits("calling a function") && !waits("waiting for branches"));
    }

    #[test]
    fn of_a_failure_only_the_branch_is_shown() {
        let error = json!({"name": "E", "message": "m"});
        let found = instance(json!({"scopes": [
            {"scope": "r", "doing": "failed", "state": "Pay and check", "error": error},
            {"scope": "r.1.0", "doing": "failed", "name": "Pay and check / Payment", "action": "pay", "error": error},
            {"scope": "r.1.1", "doing": "waiting for events", "name": "Pay and check / Check"},
        ]}));
        let story = Story {
            entries: Vec::new(),
            before: 0,
            total: 0,
        };
        let (places, more) = places(&found, &story);
        let sentences: Vec<&str> = places.iter().map(|one| one.sentence.as_str()).collect();
        assert_eq!(
            sentences,
            ["It failed in the branch “Payment” of “Pay and check”, in the action “pay”."]
        );
        assert_eq!(more, 0);
    }
}
