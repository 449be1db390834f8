//! Starting instances.

use std::sync::Arc;

use swirl_engine::{Definition, NewInstance, derive, new_instance};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::trace::{Trace, TraceContext};
use swirl_model::{Data, WorkflowError};
use swirl_ports::{Created, NewInstance as Records};
use swirl_runtime::Unknown;

use crate::{Error, Service};

/// Somebody asks for an instance.
#[derive(Debug, Clone, Default)]
pub struct StartRequest {
    pub workflow: String,
    /// The latest, if absent.
    pub version: Option<String>,
    pub input: Data,
    /// The same key gives the same instance (decision 79).
    pub key: Option<String>,
    /// What the instance's id is derived from where there is no key: unique for each request.
    pub request: String,
    /// This process is going to wait for the end.
    pub watched: bool,
    /// The span that the request belongs to.
    pub trace: Option<TraceContext>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    New(InstanceId),
    /// The key was used before, with the same input.
    Existing(InstanceId),
}

/// Why there is no instance.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    #[error(transparent)]
    Unknown(#[from] Unknown),
    #[error("{0}")]
    Invalid(WorkflowError),
    #[error("the key '{key}' was used for an instance with another input")]
    Conflict { key: String, instance: InstanceId },
}

impl Service {
    pub async fn start(&self, request: StartRequest) -> Result<Result<Started, Refused>, Error> {
        let resolved = self
            .registry
            .resolve(
                &request.workflow,
                request.version.as_deref(),
                self.clock.now(),
            )
            .await?;
        let definition = match resolved {
            Ok(definition) => definition,
            Err(unknown) => return Ok(Err(unknown.into())),
        };
        let id = match &request.key {
            Some(key) => derive(&["key", &request.workflow, key]),
            None => derive(&["request", &request.request]),
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
        let id = InstanceId::new(id);
        let watched = request.watched;
        match self
            .create_watched(&definition, id.clone(), new, (false, watched))
            .await?
        {
            Ok(Created::New) => Ok(Ok(Started::New(id))),
            Ok(Created::Exists { conflict: false }) => Ok(Ok(Started::Existing(id))),
            Ok(Created::Exists { conflict: true }) => {
                let key = request.key.unwrap_or_default();
                Ok(Err(Refused::Conflict { key, instance: id }))
            }
            Err(error) => Ok(Err(Refused::Invalid(error))),
        }
    }

    /// Creates an instance and puts its root scope into the queue. The same id again changes
    /// nothing, so this may be repeated after a crash.
    pub(crate) async fn create(
        &self,
        definition: &Arc<Definition>,
        id: InstanceId,
        new: NewInstance,
        ends_with_parent: bool,
    ) -> Result<Result<Created, WorkflowError>, Error> {
        let ends = (ends_with_parent, false);
        self.create_watched(definition, id, new, ends).await
    }

    async fn create_watched(
        &self,
        definition: &Arc<Definition>,
        id: InstanceId,
        new: NewInstance,
        (ends_with_parent, watched): (bool, bool),
    ) -> Result<Result<Created, WorkflowError>, Error> {
        let (header, root) = match new_instance(definition, id.clone(), new, self.clock.now()) {
            Ok(records) => records,
            Err(error) => return Ok(Err(error)),
        };
        let created = self
            .store
            .create(Records {
                header,
                root,
                ends_with_parent,
                watched,
            })
            .await?;
        self.queue.push(vec![ScopeRef::root(id)]).await;
        Ok(Ok(created))
    }
}
