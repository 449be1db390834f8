//! Problems of a definition's functions.

use swirl_model::workflow::{Function, Workflow};

/// The reason why a function of a definition cannot be called. Retrying with the same documents never helps.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("function `{function}`: {message}")]
pub struct Problem {
    pub function: String,
    /// Its number among the functions of this name, from 0: a refused definition may have several.
    pub nth: usize,
    /// The task's place, of a call that a task describes itself.
    pub place: String,
    pub message: String,
    pub site: Site,
}

impl Problem {
    pub fn of(function: &Function, message: String, site: Site) -> Problem {
        Problem {
            function: function.name.to_string(),
            nth: 0,
            place: function.place.clone(),
            message,
            site,
        }
    }

    /// The function that has it.
    pub fn of_function<'w>(&self, workflow: &'w Workflow) -> Option<&'w Function> {
        let functions = workflow.functions.iter();
        let mut own =
            functions.filter(|known| *known.name == *self.function && known.place == self.place);
        own.nth(self.nth)
    }
}

/// The part of a function's operation that is to blame for a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FaultyPart {
    /// The document that describes the service.
    #[default]
    Document,
    /// The operation or the channel.
    Operation,
    Service,
    Method,
    Server,
    Protocol,
    Transport,
}

/// The reason why a function cannot be called, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unusable {
    pub(crate) part: FaultyPart,
    pub(crate) reason: String,
}

impl Unusable {
    pub(crate) fn at(part: FaultyPart, reason: String) -> Unusable {
        Unusable { part, reason }
    }

    /// The same, with the document's name.
    pub(crate) fn in_document(self, uri: &str) -> Unusable {
        let reason = format!("`{uri}`: {}", self.reason);
        Unusable { reason, ..self }
    }
}

impl From<String> for Unusable {
    fn from(reason: String) -> Unusable {
        Unusable::at(FaultyPart::default(), reason)
    }
}

/// The part of a definition that has a [`Problem`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Site {
    /// The function's `operation`. A task's call has a property of its own for each part of it.
    Operation(FaultyPart),
    /// The function's `authRef`.
    Auth,
    /// The arguments in an action's call.
    Arguments {
        /// JSON pointer to the action.
        action: String,
        /// JSON pointer below the arguments; empty if it concerns all of them.
        within: String,
    },
    /// The part of the result that an action selects, with a JSON pointer to the action.
    Selection(String),
}
