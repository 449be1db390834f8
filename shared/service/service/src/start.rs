//! Starting instances.

use std::sync::Arc;

use swirl_engine::{Definition, NewInstance, new_instance};
use swirl_model::error::names;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::{Header, Instance, ParentLink};
use swirl_model::scope::Scope;
use swirl_model::time::Timestamp;
use swirl_model::trace::{Trace, TraceContext};
use swirl_model::{Data, WorkflowError};
use swirl_ports::{Created, NewRecords, OutboxEntry};
use swirl_runtime::{FirstTurn, Recording, StartCause, Unknown, take_first_turn};

use crate::business_keys::InUse;
use crate::{Error, Service};

/// A chain of this many instances that start each other without waiting for anything is probably endless.
pub(crate) const RUNAWAY: u32 = 4;

/// A client's request for an instance.
#[derive(Debug, Clone, Default)]
pub struct StartRequest {
    pub workflow: String,
    /// The latest version if absent.
    pub version: Option<String>,
    pub input: Data,
    /// The same key always gives the same instance (docs/language.md#decision-79).
    pub key: Option<String>,
    /// Unique for each request. The instance's id is derived from it if there is no key.
    pub request: String,
    /// This process will wait for the end.
    pub watched: bool,
    /// The span that the request belongs to.
    pub trace: Option<TraceContext>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Started {
    New(InstanceId),
    /// New, and already ended.
    Ended(Box<Instance>),
    /// The key was used before, with the same input.
    Existing(InstanceId),
}

/// The reason why there is no instance.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    #[error(transparent)]
    Unknown(#[from] Unknown),
    #[error("{0}")]
    Invalid(WorkflowError),
    #[error(
        "instances of this workflow are started faster than allowed; try again in {wait_ms} ms"
    )]
    Rate { wait_ms: i64 },
    #[error("the key '{key}' was used for an instance with another input")]
    Conflict { key: String, instance: InstanceId },
    #[error(
        "instance {by} is running under the key '{key}': a key is unique among running instances"
    )]
    KeyInUse { key: String, by: InstanceId },
}

impl From<Refused> for WorkflowError {
    fn from(refused: Refused) -> WorkflowError {
        let message = refused.to_string();
        match refused {
            Refused::Invalid(error) => error,
            Refused::KeyInUse { .. } => WorkflowError::new(names::KEY_IN_USE, message),
            Refused::Unknown(_) | Refused::Rate { .. } | Refused::Conflict { .. } => {
                WorkflowError::new(names::START_REFUSED, message)
            }
        }
    }
}

/// The cause of a start by another instance.
pub(crate) fn start_cause(hops: u32, parent: Option<&ParentLink>) -> StartCause {
    let is_awaited = parent.is_some_and(|parent| !parent.detached);
    match hops {
        RUNAWAY.. if !is_awaited => StartCause::Runaway,
        0 => StartCause::Request,
        _ => StartCause::Chain,
    }
}

impl Service {
    /// The id of the instance that a request with this key starts, or has started.
    pub(crate) fn started_with(&self, workflow: &str, key: &str) -> InstanceId {
        self.derive(&["key", workflow, key])
    }

    pub async fn start(&self, request: StartRequest) -> Result<Result<Started, Refused>, Error> {
        let resolved = self
            .registry
            .resolve(&request.workflow, request.version.as_deref())
            .await?;
        let definition = match resolved {
            Ok(definition) => definition,
            Err(unknown) => return Ok(Err(unknown.into())),
        };
        let id = match &request.key {
            Some(key) => self.started_with(&request.workflow, key),
            None => self.derive(&["request", &request.request]),
        };
        let new = NewInstance {
            input: request.input,
            key: request.key.clone(),
            trace: Trace {
                root: None,
                cause: request.trace,
            },
            ..NewInstance::default()
        };
        if let Some(error) = self.closed(&definition, &id).await? {
            return Ok(Err(Refused::Invalid(error)));
        }
        let now = self.clock.now();
        let workflow = &definition.id.workflow;
        if let Err(wait_ms) = self
            .registry
            .rates()
            .start(workflow, StartCause::Request, now)
        {
            return Ok(Err(Refused::Rate { wait_ms }));
        }
        let ends = (false, request.watched);
        let mut effects = Vec::new();
        let created = self
            .create_watched(&definition, id.clone(), new, ends, &mut effects)
            .await?;
        self.flush(effects).await;
        match created {
            Ok((_, Some(instance))) => Ok(Ok(Started::Ended(instance))),
            Ok((Created::New | Created::WithTurn { .. }, None)) => Ok(Ok(Started::New(id))),
            Ok((Created::Exists { conflict: false }, _)) => Ok(Ok(Started::Existing(id))),
            Ok((Created::Exists { conflict: true }, _)) => {
                let key = request.key.unwrap_or_default();
                Ok(Err(Refused::Conflict { key, instance: id }))
            }
            Err(refused) => Ok(Err(refused)),
        }
    }

    /// Creates an instance, and puts its root scope into the queue or runs it. Creating the same id
    /// again changes nothing, so this may be repeated after a crash.
    pub(crate) async fn create(
        &self,
        definition: &Arc<Definition>,
        id: InstanceId,
        new: NewInstance,
        ends_with_parent: bool,
    ) -> Result<Result<Created, WorkflowError>, Error> {
        let mut effects = Vec::new();
        let created = self
            .create_with(definition, id, new, ends_with_parent, &mut effects)
            .await?;
        self.flush(effects).await;
        Ok(created)
    }

    /// Carries out the effects that instances which ran here have left.
    pub(crate) async fn flush(&self, effects: Vec<OutboxEntry>) {
        if let Some(driver) = self.driver.as_ref().filter(|_| !effects.is_empty()) {
            driver.flush(effects).await;
        }
    }

    /// As [`Service::create`], but the caller has to [flush](Service::flush) the effects.
    pub(crate) async fn create_with(
        &self,
        definition: &Arc<Definition>,
        id: InstanceId,
        new: NewInstance,
        ends_with_parent: bool,
        effects: &mut Vec<OutboxEntry>,
    ) -> Result<Result<Created, WorkflowError>, Error> {
        // An event or another instance repeats a start that is refused: it is late, but not lost.
        let cause = match new.events.is_empty() {
            true => start_cause(new.hops, new.parent.as_ref()),
            false => StartCause::Chain,
        };
        let now = self.clock.now();
        let workflow = &definition.id.workflow;
        if let Err(wait_ms) = self.registry.rates().start(workflow, cause, now) {
            let workflow = workflow.clone();
            return Err(Error::TooFast { workflow, wait_ms });
        }
        let ends = (ends_with_parent, false);
        let created = self
            .create_watched(definition, id, new, ends, effects)
            .await?;
        Ok(match created {
            Ok((created, _)) => Ok(created),
            Err(refused) => Err(refused.into()),
        })
    }

    /// Also returns the instance, if it ran here and has ended. The two flags are those of [`NewRecords`].
    async fn create_watched(
        &self,
        definition: &Arc<Definition>,
        id: InstanceId,
        new: NewInstance,
        (ends_with_parent, watched): (bool, bool),
        effects: &mut Vec<OutboxEntry>,
    ) -> Result<Result<(Created, Option<Box<Instance>>), Refused>, Error> {
        let now = self.clock.now();
        let (header, root) = match new_instance(definition, id.clone(), new, now) {
            Ok(records) => records,
            Err(error) => return Ok(Err(Refused::Invalid(error))),
        };
        if let Err(InUse { key, by }) = self.take_key(&header).await? {
            return Ok(Err(Refused::KeyInUse { key, by }));
        }
        let turn = self.first_turn(definition, &header, &root, now);
        let (first_turn, ended, observed) = match turn {
            Some(turn) => (Some(Box::new(turn.commit)), turn.ended, turn.observed),
            None => (None, None, None),
        };
        let new = NewRecords {
            header,
            root,
            ends_with_parent,
            watched,
            first_turn,
        };
        Ok(Ok(match self.store.create(new).await? {
            Created::WithTurn { outbox, wake } => {
                effects.extend(outbox);
                if !wake.is_empty() {
                    self.queue.push(wake).await;
                }
                if let (Some(observer), Some(observed)) = (&self.observer, observed) {
                    observer.committed(observed);
                }
                (Created::New, ended)
            }
            // Its task may be lost if it was started before.
            created @ (Created::New | Created::Exists { .. }) => {
                self.queue.push(vec![ScopeRef::root(id)]).await;
                (created, None)
            }
        }))
    }

    fn first_turn(
        &self,
        definition: &Arc<Definition>,
        header: &Header,
        root: &Scope,
        now: Timestamp,
    ) -> Option<FirstTurn> {
        let driver = self.driver.as_ref();
        // Only workers write histories with the contents of events and the data of states.
        let records_all =
            driver.is_some_and(|driver| driver.recording_of(definition) == Recording::All);
        if !self.runs_inline || records_all {
            return None;
        }
        let observer = self.observer.as_deref();
        take_first_turn(definition, header, root, now, driver.is_some(), observer)
    }
}
