//! Workflows that an event starts by itself.

use std::collections::BTreeSet;

use swirl_model::CloudEvent;
use swirl_ports::Trigger;
use swirl_ports::matching::{addressee, is_alone, roles};

use super::names::digest;

/// The workflows that an event starts by itself, regardless of other events and instances. They are recorded when
/// ingestion begins, so that their starts needn't be stored.
#[derive(Debug, Default)]
pub(super) struct LoneStarts(BTreeSet<String>);

impl LoneStarts {
    pub fn of(event: &CloudEvent, triggers: &[Trigger]) -> LoneStarts {
        let mut names = BTreeSet::new();
        if addressee(event).is_none() {
            let is_alone = |trigger: &&Trigger| {
                let roles = roles(trigger, event);
                roles.first().is_some_and(|role| is_alone(trigger, role))
            };
            let alone = triggers.iter().filter(is_alone);
            names.extend(alone.map(|trigger| digest(&trigger.definition.workflow)));
        }
        LoneStarts(names)
    }

    /// Reads the form that [`LoneStarts::text`] writes.
    pub fn read(text: &str) -> LoneStarts {
        let names = text.strip_prefix('=').unwrap_or_default();
        let names = names.split(',').filter(|name| !name.is_empty());
        LoneStarts(names.map(str::to_owned).collect())
    }

    /// The sign in front tells scripts that there are no claims.
    pub fn text(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(String::as_str).collect();
        format!("={}", names.join(","))
    }

    /// Whether the event starts nothing by itself.
    pub fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the first ingestion starts this workflow by the event alone.
    pub fn has(&self, trigger: &Trigger) -> bool {
        self.0.contains(&digest(&trigger.definition.workflow))
    }
}
