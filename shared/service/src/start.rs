//! Starting instances.

use std::sync::Arc;

use swirl_engine::{Definition, NewInstance, new_instance};
use swirl_model::error::names;
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::{Instance, ParentLink};
use swirl_model::trace::{Trace, TraceContext};
use swirl_model::{Data, WorkflowError};
use swirl_ports::{Created, FirstTurn, NewRecords, OutboxEntry};
use swirl_runtime::{
    Recording, StartCause, Unknown, ended_instance, observed_of, take_first_turn, trace_events,
};

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
        "instances of this workflow are started faster than they may be; try again in {wait_ms} ms"
    )]
    Rate { wait_ms: i64 },
    #[error("the key '{key}' was used for an instance with another input")]
    Conflict { key: String, instance: InstanceId },
    #[error(
        "instance {by} runs under the key '{key}': an instance that runs has its key for itself"
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
        // Only workers write histories with the contents of events and the data of states.
        let driver = self.driver.as_ref();
        let records_all =
            driver.is_some_and(|driver| driver.recording_of(definition) == Recording::All);
        let turn = match self.runs_inline && !records_all {
            true => take_first_turn(definition, &header, &root, now, driver.is_some()),
            false => None,
        };
        // Workers end instances that have a business key.
        let turn = turn.filter(|turn| header.instance_key.is_none() || !turn.ends());
        let new = NewRecords {
            header,
            root,
            ends_with_parent,
            watched,
            first_turn: None,
        };
        let created = match turn {
            Some(turn) => {
                self.create_with_turn(definition, new, turn, effects)
                    .await?
            }
            None => {
                let created = self.store.create(new).await?;
                self.queue.push(vec![ScopeRef::root(id)]).await;
                (created, None)
            }
        };
        Ok(Ok(created))
    }

    async fn create_with_turn(
        &self,
        definition: &Definition,
        new: NewRecords,
        mut turn: FirstTurn,
        effects: &mut Vec<OutboxEntry>,
    ) -> Result<(Created, Option<Box<Instance>>), Error> {
        let header = Arc::new(new.header.clone());
        let root = vec![ScopeRef::root(header.id.clone())];
        let ended = ended_instance(&header, &turn).map(Box::new);
        if let Some(observer) = &self.observer {
            trace_events(&**observer, &header, &turn.scope.id, &mut turn.commands);
        }
        let observed = self.observer.as_ref().map(|observer| {
            let follows = observer.follows(&header);
            let has_tasks = definition.workflow.tasks.is_some();
            (observer, observed_of(&header, &turn, has_tasks, follows))
        });
        let plain = NewRecords {
            header: new.header.clone(),
            root: new.root.clone(),
            ends_with_parent: new.ends_with_parent,
            watched: new.watched,
            first_turn: None,
        };
        let with_turn = NewRecords {
            first_turn: Some(Box::new(turn)),
            ..new
        };
        let created = match self.store.create(with_turn).await {
            // A worker can report that the instance is too large.
            Err(swirl_ports::Error::TooLarge { .. }) => self.store.create(plain).await?,
            created => created?,
        };
        match created {
            Created::WithTurn { outbox, wake } => {
                effects.extend(outbox);
                if !wake.is_empty() {
                    self.queue.push(wake).await;
                }
                if let Some((observer, observed)) = observed {
                    observer.committed(observed);
                }
                Ok((Created::New, ended))
            }
            // Its task may be lost if it was started before.
            Created::New | Created::Exists { .. } => {
                self.queue.push(root).await;
                Ok((created, None))
            }
        }
    }
}
