//! Workflows that an event starts by itself.

use std::collections::BTreeSet;

use swirl_model::CloudEvent;
use swirl_ports::Trigger;
use swirl_ports::matching::{addressee, is_alone, roles};

use super::names::digest;

/// The workflows that an event starts by itself, regardless of other events and instances. They are recorded when
/// ingestion begins, so that their starts needn't be stored. `None` if an older build began the ingestion.
#[derive(Debug, Default)]
pub(super) struct LoneStarts(Option<BTreeSet<String>>);

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
        LoneStarts(Some(names))
    }

    /// Reads the form that [`LoneStarts::text`] writes.
    pub fn read(text: &str) -> LoneStarts {
        let names = text.strip_prefix('=');
        let split = |names: &str| {
            let names = names.split(',').filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        };
        LoneStarts(names.map(split))
    }

    pub fn text(&self) -> String {
        let names: Vec<&str> = self.0.iter().flatten().map(String::as_str).collect();
        format!("={}", names.join(","))
    }

    /// Whether it is known that the event starts nothing by itself.
    pub fn are_none(&self) -> bool {
        self.0.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Whether the first ingestion starts this workflow by the event alone; `None` if unknown.
    pub fn has(&self, trigger: &Trigger) -> Option<bool> {
        let names = self.0.as_ref()?;
        Some(names.contains(&digest(&trigger.definition.workflow)))
    }
}
