//! The reason why an operator's action doesn't fit an instance as it is now.

use std::fmt;

use swirl_engine::{Patch, Rejection, can_edit, can_rerun, can_skip};
use swirl_model::ids::InstanceId;
use swirl_model::instance::{Header, Instance, Status};
use swirl_model::scope::Scope;
use swirl_model::workflow::Workflow;

use crate::business_keys::InUse;
use crate::{Action, Error, NotRemoved, Service};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    Unknown,
    /// The status doesn't allow it, with the reason.
    Status(String),
    /// An instance cannot be continued at this state; the text says why.
    State(String),
    /// This other instance now runs under the same key.
    KeyInUse {
        key: String,
        by: InstanceId,
    },
    /// What failed has its own copy of the data, so other state data has no effect on its retry. It has an effect on
    /// this state, if that can be run again.
    OwnData {
        state: Option<String>,
    },
    /// The patch fails on the instance's data, with the reason.
    Patch(String),
    /// It cannot be moved to the other version of its definition, with the reason.
    Misfit(String),
    /// There is no such version; the text is a full sentence.
    Version(String),
    /// Some of its work is under way and may end soon, with the reason.
    Busy(String),
}

impl Unfit {
    /// The code by which programs distinguish refusals.
    pub fn code(&self) -> &'static str {
        match self {
            Unfit::Unknown => "unknown-instance",
            Unfit::Status(_) | Unfit::OwnData { .. } => "wrong-status",
            Unfit::State(_) => "unknown-state",
            Unfit::Patch(_) => "patch-failed",
            Unfit::KeyInUse { .. } => "key-in-use",
            Unfit::Misfit(_) => "does-not-fit",
            Unfit::Version(_) => "unknown-workflow",
            Unfit::Busy(_) => "still-busy",
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Unknown => write!(f, "the instance is no longer there"),
            Unfit::OwnData { state } => {
                write!(
                    f,
                    "what failed (a branch or a handler of events) has its own copy of the data, which other data \
                     doesn't reach"
                )?;
                match state {
                    Some(state) => {
                        write!(f, ": rerun '{state}' with the data that you want")
                    }
                    None => Ok(()),
                }
            }
            Unfit::Status(reason)
            | Unfit::State(reason)
            | Unfit::Patch(reason)
            | Unfit::Misfit(reason)
            | Unfit::Version(reason)
            | Unfit::Busy(reason) => write!(f, "{reason}"),
            Unfit::KeyInUse { key, by } => {
                write!(
                    f,
                    "instance {by} runs under the key '{}' by now",
                    short(key)
                )
            }
        }
    }
}

/// A client's text, as much as a message shows of it.
fn short(text: &str) -> String {
    const CHARS_MAX: usize = 100;
    let short: String = text.chars().take(CHARS_MAX).collect();
    let rest = if short.len() < text.len() { "…" } else { "" };
    short + rest
}

/// The reason why no instance can be continued at a state.
fn not_to_rerun(header: &Header, workflow: &Workflow, name: &str) -> String {
    let word = match workflow.tasks {
        Some(_) => "task",
        None => "state",
    };
    let asked = short(name);
    match workflow.main_state_around(name) {
        Some(around) => {
            let around = &workflow[around].name;
            format!(
                "only a {word} of the main list can be rerun: rerun '{around}', which '{asked}' is part of"
            )
        }
        None => format!("{} has no {word} '{asked}'", header.definition),
    }
}

impl From<InUse> for Unfit {
    fn from(in_use: InUse) -> Unfit {
        Unfit::KeyInUse {
            key: in_use.key,
            by: in_use.by,
        }
    }
}

/// An action that would be refused, as it would be when carried out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    pub code: &'static str,
    pub reason: String,
}

impl From<Unfit> for Refusal {
    fn from(unfit: Unfit) -> Refusal {
        Refusal {
            code: unfit.code(),
            reason: unfit.to_string(),
        }
    }
}

impl NotRemoved {
    pub(crate) fn refusal(&self, id: &InstanceId) -> Refusal {
        Refusal {
            code: self.code(),
            reason: self.says(id),
        }
    }
}

impl Action {
    /// Whether the action lets a failed instance continue.
    pub fn revives(&self) -> bool {
        match self {
            Action::Retry
            | Action::Skip(_)
            | Action::Rerun(_)
            | Action::Edit { .. }
            | Action::Patch { .. } => true,
            Action::Cancel | Action::Suspend | Action::Resume => false,
        }
    }

    /// The reason why the instance's status doesn't allow the action.
    pub fn rejection_reason(&self, status: Status, suspended: bool) -> Option<String> {
        let word = status.as_str();
        match self {
            _ if self.revives() && status != Status::Faulted => Some(format!(
                "only a faulted instance can be continued; this one is {word}"
            )),
            Action::Cancel | Action::Suspend | Action::Resume if status.ended() => {
                Some(format!("the instance has ended: it is {word}"))
            }
            Action::Suspend if suspended => Some("the instance is suspended already".to_owned()),
            Action::Resume if !suspended => Some("the instance isn't suspended".to_owned()),
            _ => None,
        }
    }
}

impl Service {
    /// The action as it can be carried out on the instance, which takes its key again, or the reason why it can't.
    ///
    /// # Errors
    /// The store failed, or the definition cannot be read.
    pub async fn fitting(
        &self,
        instance: &Instance,
        action: &Action,
    ) -> Result<Result<Action, Unfit>, Error> {
        let fitting = self.would_fit(instance, action).await?;
        if fitting.is_ok() && action.revives() {
            for instance in self.with_its_parents(instance).await? {
                if let Err(in_use) = self.take_key_again(&instance.header).await? {
                    return Ok(Err(in_use.into()));
                }
            }
        }
        Ok(fitting)
    }

    /// The action as it could be carried out on the instance, or the reason why it couldn't. Changes nothing.
    pub(crate) async fn would_fit(
        &self,
        instance: &Instance,
        action: &Action,
    ) -> Result<Result<Action, Unfit>, Error> {
        let state = &instance.state;
        if let Some(reason) = action.rejection_reason(state.status, state.suspended) {
            return Ok(Err(Unfit::Status(reason)));
        }
        if !action.revives() {
            return Ok(Ok(action.clone()));
        }
        if let Some(parent) = self.parent_gone_on(instance).await? {
            return Ok(Err(Unfit::Status(format!(
                "the instance that waited for this sub-workflow, {parent}, has taken its failure and continued"
            ))));
        }
        let action = match self.patched(instance, action).await? {
            Ok(action) => action,
            Err(unfit) => return Ok(Err(unfit)),
        };
        if let Some(unfit) = self.misplaced(instance, &action).await? {
            return Ok(Err(unfit));
        }
        for instance in self.with_its_parents(instance).await? {
            if let Some(in_use) = self.key_in_use(&instance.header).await? {
                return Ok(Err(in_use.into()));
            }
        }
        Ok(Ok(action))
    }

    /// A failed instance, and those that failed because it did.
    pub(crate) async fn with_its_parents(
        &self,
        instance: &Instance,
    ) -> Result<Vec<Instance>, Error> {
        let mut all = vec![instance.clone()];
        all.extend(self.failed_with_it(instance).await?);
        Ok(all)
    }

    /// The action with the data that its patch makes of the instance's, if it has a patch.
    async fn patched(
        &self,
        instance: &Instance,
        action: &Action,
    ) -> Result<Result<Action, Unfit>, Error> {
        let Action::Patch { state, patch } = action else {
            return Ok(Ok(action.clone()));
        };
        let definition = self.registry.get(&instance.header.definition).await?;
        let Some(root) = self.root(instance).await? else {
            return Ok(Err(Unfit::Unknown));
        };
        let data = Patch::compile(patch)
            .and_then(|patch| patch.apply(&root.data, definition.limits, self.clock.now()));
        Ok(match data {
            Ok(data) => Ok(Action::Edit {
                state: state.clone(),
                data,
                context: None,
            }),
            Err(reason) => Err(Unfit::Patch(reason)),
        })
    }

    pub(crate) async fn root(&self, instance: &Instance) -> Result<Option<Scope>, Error> {
        let scopes = self.store.scopes(&instance.header.id).await?;
        Ok(scopes.into_iter().find(|scope| scope.id.is_root()))
    }

    /// The reason why the action doesn't fit the place where the instance failed.
    async fn misplaced(
        &self,
        instance: &Instance,
        action: &Action,
    ) -> Result<Option<Unfit>, Error> {
        let header = &instance.header;
        let status = |rejection: Rejection| Some(Unfit::Status(rejection.to_string()));
        if let Action::Skip(_) = action {
            let root = self.root(instance).await?;
            return Ok(match root.is_some_and(|root| !can_skip(&root)) {
                true => status(Rejection::NothingToSkip),
                false => None,
            });
        }
        let (name, data, context) = match action {
            Action::Rerun(name) => (Some(name), None, None),
            Action::Edit {
                state,
                data,
                context,
            } => (state.as_ref(), Some(data), context.as_ref()),
            _ => return Ok(None),
        };
        let definition = self.registry.get(&header.definition).await?;
        let mut given = data.into_iter().chain(context);
        if given.any(|data| data.exceeds(definition.sizes.data_bytes)) {
            return Ok(status(Rejection::DataTooLarge));
        }
        let workflow = &definition.workflow;
        if context.is_some() && workflow.tasks.is_none() {
            return Ok(status(Rejection::NoContext));
        }
        let Some(name) = name else {
            let root = self.root(instance).await?;
            let Some(root) = root.filter(|root| !can_edit(root)) else {
                return Ok(None);
            };
            let outermost = root.frames.first().map(|frame| frame.state);
            let state = outermost.or_else(|| root.state());
            let state = state.filter(|state| can_rerun(&definition, header, *state));
            return Ok(Some(Unfit::OwnData {
                state: state.map(|state| workflow[state].name.to_string()),
            }));
        };
        Ok(match workflow.state_by_name(Workflow::ROOT, name) {
            None => Some(Unfit::State(not_to_rerun(header, workflow, name))),
            Some(state) if !can_rerun(&definition, header, state) => {
                status(Rejection::NotOfMainFlow)
            }
            Some(_) => None,
        })
    }
}
