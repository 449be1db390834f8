//! An operator's actions on an instance.

use swirl_model::Data;
use swirl_model::event::{Event, HistoryEntry, Input};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::{EndStatus, Instance, Status};
use swirl_ports::{Removed, Suspended};

use crate::{Error, Service};

#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    Cancel,
    Suspend,
    Resume,
    /// Continue at the action or branch that failed.
    Retry,
    /// Use this as the result of the action that failed.
    Skip(Data),
    /// Continue at this state with the current data.
    Rerun(String),
    /// Continue with this state data: at this state, or at the action that failed.
    Edit {
        state: Option<String>,
        data: Data,
        /// Of tasks: the new `$context`.
        context: Option<Data>,
    },
    /// As [`Action::Edit`], with what this jq expression makes of the current state data.
    Patch {
        state: Option<String>,
        patch: String,
    },
}

/// The client that requests an action, and its reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Operator {
    /// The token's name, or the name from the identity provider; `None` where no token is required.
    pub name: Option<String>,
    pub reason: Option<String>,
    /// The batch that the action belongs to.
    pub batch: Option<String>,
}

/// The reason why an instance is not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotRemoved {
    Unknown,
    Running,
    /// It failed while it waited for this sub-workflow, which still runs.
    Awaits(InstanceId),
    /// The parent failed with it, and would run the whole sub-workflow again when it is retried.
    Needed(InstanceId),
    /// Some of its effects have not been carried out yet. It can be removed soon.
    Busy,
}

impl NotRemoved {
    /// The code by which programs distinguish refusals.
    pub fn code(&self) -> &'static str {
        match self {
            NotRemoved::Unknown => "unknown-instance",
            NotRemoved::Running | NotRemoved::Awaits(_) => "still-running",
            NotRemoved::Needed(_) => "still-needed",
            NotRemoved::Busy => "still-busy",
        }
    }

    /// The reason as a sentence.
    pub fn says(&self, id: &InstanceId) -> String {
        match self {
            NotRemoved::Unknown => format!("there is no instance '{id}'"),
            NotRemoved::Running => format!("instance {id} is running: cancel it first"),
            NotRemoved::Awaits(child) => {
                format!("{child}, a sub-workflow of instance {id}, is running: cancel that first")
            }
            NotRemoved::Needed(parent) => format!(
                "instance {parent} failed with its sub-workflow {id}, and its retry would run that again from the \
                 beginning: remove {parent} first"
            ),
            NotRemoved::Busy => {
                format!(
                    "instance {id} has effects that are not carried out yet, or entries of its history that \
                     are not published yet: try again soon"
                )
            }
        }
    }
}

impl Action {
    /// The action's name for clients.
    pub fn as_str(&self) -> &'static str {
        match self {
            Action::Cancel => "cancel",
            Action::Suspend => "suspend",
            Action::Resume => "resume",
            Action::Retry => "retry",
            Action::Skip(_) => "skip",
            Action::Edit { state: None, .. } | Action::Patch { state: None, .. } => "retry",
            Action::Rerun(_) | Action::Edit { .. } | Action::Patch { .. } => "rerun",
        }
    }
}

/// The longest result or data of an action that the history keeps, in bytes.
const GIVEN_BYTES_MAX: usize = 16 << 10;

impl Service {
    /// As [`Service::operate`], and records the operator and the reason in the history.
    pub async fn operate_by(
        &self,
        id: &InstanceId,
        action: Action,
        operator: &Operator,
    ) -> Result<bool, Error> {
        let entry = self.operated(&action, operator);
        // Before the action, so that the history shows its effects after it. A full store still accepts a cancellation.
        match self.store.note(id, entry).await {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) => {
                tracing::warn!(%error, "an operator's action is missing from the history")
            }
        }
        self.operate_as(id, action, operator).await
    }

    /// The reason why an instance can't be removed as it is now. [`NotRemoved::Busy`] shows only when it is tried.
    pub(crate) async fn not_removable(
        &self,
        instance: &Instance,
    ) -> Result<Option<NotRemoved>, Error> {
        match instance.state.status {
            Status::Running => return Ok(Some(NotRemoved::Running)),
            Status::Faulted => {
                if let Some(child) = self.awaited_by(instance).await?.pop() {
                    return Ok(Some(NotRemoved::Awaits(child)));
                }
            }
            Status::Completed | Status::Cancelled | Status::Terminated => {}
        }
        if self.parent_gone_on(instance).await?.is_none()
            && let Some(parent) = self.failed_with_it(instance).await?.first()
        {
            return Ok(Some(NotRemoved::Needed(parent.header.id.clone())));
        }
        Ok(None)
    }

    /// Removes an instance that has ended or failed, with its history.
    pub async fn remove(
        &self,
        instance: &Instance,
        operator: &Operator,
    ) -> Result<Result<(), NotRemoved>, Error> {
        let id = &instance.header.id;
        if let Some(reason) = self.not_removable(instance).await? {
            return Ok(Err(reason));
        }
        Ok(match self.store.remove(id).await? {
            Removed::Done => {
                let (by, reason) = (operator.name.as_deref(), operator.reason.as_deref());
                let batch = operator.batch.as_deref();
                // The history is removed, so only the log still says who did it.
                tracing::info!(instance = %id, by, reason, batch, "an operator removed an instance");
                Ok(())
            }
            Removed::Unknown => Err(NotRemoved::Unknown),
            Removed::Running => Err(NotRemoved::Running),
            Removed::Busy => Err(NotRemoved::Busy),
        })
    }

    /// Returns false if there is no such instance, it isn't in a state for this action, or its key is in use.
    pub async fn operate(&self, id: &InstanceId, action: Action) -> Result<bool, Error> {
        self.operate_as(id, action, &Operator::default()).await
    }

    async fn operate_as(
        &self,
        id: &InstanceId,
        action: Action,
        operator: &Operator,
    ) -> Result<bool, Error> {
        let Some(instance) = self.store.instance(id).await? else {
            return Ok(false);
        };
        let status = instance.state.status;
        let faulted = status == Status::Faulted;
        let input = match action {
            Action::Suspend | Action::Resume => {
                let on = action == Action::Suspend;
                let done = self.store.suspend(id, on, None).await?;
                let Some(Suspended { wake, outbox }) = done else {
                    return Ok(false);
                };
                self.queue.push(wake).await;
                // Failed effects stay in the outbox, and the reconciler carries them out.
                swirl_runtime::flush(&*self.store, self, outbox).await;
                return Ok(true);
            }
            Action::Cancel if status.ended() => return Ok(false),
            Action::Cancel => Input::Cancel {
                status: EndStatus::Cancelled,
            },
            _ if !faulted => return Ok(false),
            _ if self.parent_gone_on(&instance).await?.is_some() => return Ok(false),
            _ if self.take_key_again(&instance.header).await?.is_err() => return Ok(false),
            Action::Retry => Input::Retry,
            Action::Skip(result) => Input::Skip { result },
            Action::Rerun(state) => Input::Rerun { state },
            Action::Edit {
                state,
                data,
                context,
            } => Input::Edit {
                state,
                data,
                context,
            },
            // It becomes an edit when it is checked ([`Service::fitting`]).
            Action::Patch { .. } => return Ok(false),
        };
        let revives = !matches!(input, Input::Cancel { .. });
        let parents = match revives {
            true => self.failed_with_it(&instance).await?,
            false => Vec::new(),
        };
        for parent in &parents {
            if self.take_key_again(&parent.header).await?.is_err() {
                return Ok(false);
            }
        }
        self.send(ScopeRef::root(id.clone()), input).await?;
        for parent in parents {
            self.retry_with_it(id, &parent, operator).await?;
        }
        Ok(true)
    }

    /// Retries the instances that failed together with this sub-workflow.
    async fn retry_with_it(
        &self,
        child: &InstanceId,
        parent: &Instance,
        operator: &Operator,
    ) -> Result<(), Error> {
        let id = &parent.header.id;
        let entry = self.operated(&Action::Retry, &because_of(child, operator));
        if let Err(error) = self.store.note(id, entry).await {
            tracing::warn!(%error, "an operator's action is missing from the history");
        }
        self.send(ScopeRef::root(id.clone()), Input::Retry).await
    }

    pub(crate) fn operated(&self, action: &Action, operator: &Operator) -> HistoryEntry {
        HistoryEntry {
            at: self.clock.now(),
            scope: ScopeId::root(),
            event: Event::Operated {
                action: action.as_str().into(),
                by: operator.name.clone(),
                reason: operator.reason.clone(),
                state: match action {
                    Action::Rerun(state) => Some(state.clone()),
                    Action::Edit { state, .. } | Action::Patch { state, .. } => state.clone(),
                    _ => None,
                },
                from: None,
                to: None,
                batch: operator.batch.clone(),
                with: None,
            },
            data: match action {
                Action::Skip(result) => Some(given("result", result)),
                Action::Edit { data, context, .. } => {
                    let mut all = given("data", data);
                    if let Some(context) = context {
                        let shown = given("context", context).get("context");
                        all.set("context", shown.unwrap_or_default());
                    }
                    Some(all)
                }
                _ => None,
            },
            data_until: None,
        }
    }
}

/// Describes the operator of a parent that continues with its sub-workflow.
pub(crate) fn because_of(child: &InstanceId, operator: &Operator) -> Operator {
    Operator {
        name: operator.name.clone(),
        reason: Some(format!("its sub-workflow {child} continues")),
        batch: operator.batch.clone(),
    }
}

/// The JSON that an operator provided, as the history keeps it.
fn given(name: &str, value: &Data) -> Data {
    let mut data = Data::object();
    if value.exceeds(GIVEN_BYTES_MAX) {
        data.set(name, Data::string("(too long to be kept here)"));
    } else {
        data.set(name, value.clone());
    }
    data
}
