//! References to declarations, by their names.

use swirl_documents::codes;
use swirl_documents::diagnostic::ExpressionPart;
use swirl_documents::source::Node;
use swirl_model::workflow::{AuthId, ErrorId, EventId, StateId};

use super::ctx::{Ctx, did_you_mean};
use super::location::Location;

/// The purpose of a reference to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventUse {
    Consume,
    Produce,
}

/// The number of names that are compared to find a similar one.
pub(super) const CANDIDATES_MAX: usize = 500;

/// The advice for a name that doesn't exist.
fn hint<'s>(name: &str, known: impl Iterator<Item = &'s str>, list: &str) -> String {
    did_you_mean(name, known.take(CANDIDATES_MAX))
        .unwrap_or_else(|| format!("define '{name}' in '{list}', or use a name that is there"))
}

impl Ctx<'_> {
    /// Reports the secrets among these that the list doesn't have.
    pub fn unknown_secrets(&mut self, location: &Location, text: &str, used: &[String]) {
        let Some(known) = &self.secrets else {
            return;
        };
        let list = match self.dialect.variables.contains(&"secrets") {
            true => "use.secrets",
            false => "secrets",
        };
        let unknown = used.iter().filter(|name| !known.contains(*name));
        let hint = |name: &String| did_you_mean(name, known.iter().map(String::as_str));
        let unknown: Vec<_> = unknown.map(|name| (name, hint(name))).collect();
        for (name, hint) in unknown {
            let hint = hint.unwrap_or_else(|| format!("add '{name}' to the list '{list}'"));
            let message = format!("the workflow has no secret '{name}'");
            let part = text.find(name.as_str()).map(|start| ExpressionPart {
                expression: text.to_owned(),
                bytes: start..start + name.len(),
            });
            self.error_in(location, codes::UNKNOWN_SECRET, message, Some(hint), part);
        }
    }

    /// The event's index, if it exists and has the right kind.
    pub fn event(&mut self, node: &Node, what: &str, wanted: EventUse) -> Option<EventId> {
        let name = self.string(node, what)?;
        let events = &self.names.events;
        let Some(entry) = events.get(&name).copied() else {
            if !events.unread {
                let hint = hint(&name, events.names(), "events");
                self.error(
                    node,
                    codes::UNKNOWN_EVENT,
                    format!("there is no event '{name}'"),
                    hint,
                );
            }
            return None;
        };
        if self.dialect.parts.events_without_kind || !entry.kind_known {
            return Some(entry.id);
        }
        if !entry.kind_given && wanted == EventUse::Produce {
            let message = format!("the event '{name}' is produced here, and has no 'kind'");
            let hint = "add 'kind: produced' to its definition".to_owned();
            self.loose(node, message, hint);
        } else if entry.produced != (wanted == EventUse::Produce) {
            let (is, wanted) = match wanted {
                EventUse::Consume => ("produced", "consumed"),
                EventUse::Produce => ("consumed", "produced"),
            };
            let message =
                format!("the event '{name}' is {is}, and {what} needs one that is {wanted}");
            let hint =
                format!("set 'kind: {wanted}' in its definition, or define another event for this");
            self.error(node, codes::EVENT_KIND, message, hint);
        }
        Some(entry.id)
    }

    pub fn error_ref(&mut self, node: &Node, what: &str) -> Option<ErrorId> {
        let name = self.string(node, what)?;
        let errors = &self.names.errors;
        let found = errors.get(&name).copied();
        if found.is_none() && !errors.unread {
            let hint = hint(&name, errors.names(), "errors");
            self.error(
                node,
                codes::UNKNOWN_ERROR,
                format!("there is no error '{name}'"),
                hint,
            );
        }
        found
    }

    pub fn auth_ref(&mut self, node: &Node, what: &str) -> Option<AuthId> {
        let name = self.string(node, what)?;
        let auth = &self.names.auth;
        let found = auth.get(&name).copied();
        if found.is_none() && !auth.unread {
            let hint = hint(&name, auth.names(), "auth");
            let message = format!("there is no auth definition '{name}'");
            self.error(node, codes::UNKNOWN_AUTH, message, hint);
        }
        found
    }

    pub fn state_ref(&mut self, node: &Node, what: &str) -> Option<StateId> {
        let name = self.string(node, what)?;
        let flow = self.flow();
        let names = self.flows.last().map(|scope| &scope.names);
        let found = names.and_then(|names| names.get(&name)).copied();
        if found.is_none() {
            let here = self.states.iter().filter(|head| head.flow == flow);
            let known: Vec<&str> = here.map(|head| head.name.as_str()).collect();
            if known.is_empty() || known.contains(&"") {
                // The states, or the name of one, could not be read, which is a separate error.
                self.failed = true;
                return None;
            }
            let hint = hint(&name, known.iter().copied(), "states");
            self.error(
                node,
                codes::UNKNOWN_STATE,
                format!("there is no state '{name}'"),
                hint,
            );
        }
        found
    }

    /// Whether the flow being read has a state of this name.
    pub fn is_state(&self, name: &str) -> bool {
        let names = self.flows.last().map(|scope| &scope.names);
        names.is_some_and(|names| names.contains_key(name))
    }

    pub fn unknown_retry(&mut self, node: &Node, name: &str) {
        if !self.retries.unread {
            let hint = hint(name, self.retries.names(), "retries");
            let message = format!("there is no retry definition '{name}'");
            self.error(node, codes::UNKNOWN_RETRY, message, hint);
        }
    }

    /// A workflow that isn't deployed yet may be deployed later, so this is a warning (docs/language.md#decision-62).
    pub fn check_known_workflow(&mut self, node: &Node, name: &str) {
        let Some(known) = &self.options.workflows else {
            return;
        };
        if name == self.workflow.id || known.contains(name) {
            return;
        }
        let hint = did_you_mean(name, known.iter().map(String::as_str))
            .unwrap_or_else(|| "deploy it before an instance gets here".to_owned());
        let message = format!("there is no workflow '{name}' yet");
        self.warn(node, codes::UNKNOWN_WORKFLOW, message, hint);
    }

    pub fn unknown_function(
        &mut self,
        location: &Location,
        name: &str,
        other_hint: Option<String>,
    ) {
        if !self.functions.unread {
            let hint =
                other_hint.unwrap_or_else(|| hint(name, self.functions.names(), "functions"));
            self.error_at(
                location,
                codes::UNKNOWN_FUNCTION,
                format!("there is no function '{name}'"),
                hint,
            );
        }
    }
}
