//! Effects that commits leave in the outbox.

use async_trait::async_trait;
use swirl_engine::{NewInstance, chained_id};
use swirl_model::error::names;
use swirl_model::event::{Command, Input, StartInstance};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::{EndStatus, Status};
use swirl_model::workflow::OnParentEnd;
use swirl_model::{Data, WorkflowError};
use swirl_ports::InboxItem;
use swirl_runtime::Effects;

use crate::start::start_cause;
use crate::{Error, Service};

#[async_trait]
impl Effects for Service {
    async fn carry_out(&self, instance: &InstanceId, command: &Command) -> Result<(), Error> {
        match command {
            Command::Publish(event) => self.publish_produced(event).await,
            Command::Start(start) => self.start_for(start).await,
            Command::EndInstance { id, status } => self.end_chain(id, *status).await,
            Command::SuspendAwaited => self.suspend_awaited(instance).await,
            Command::Send { to, input } => self.send(to.clone(), (**input).clone()).await,
            // All other commands concern the instance alone: the commit has carried them out.
            _ => Ok(()),
        }
    }
}

impl Service {
    pub(crate) async fn send(&self, to: ScopeRef, input: Input) -> Result<(), Error> {
        self.store.add_input(&to, InboxItem::new(input)).await?;
        self.queue.push(vec![to]).await;
        Ok(())
    }

    /// Ends a sub-workflow, or the instance that continues it: for the instance that started it,
    /// both are a single call (docs/language.md#decision-36).
    async fn end_chain(&self, id: &InstanceId, status: EndStatus) -> Result<(), Error> {
        let mut id = id.clone();
        loop {
            self.send(ScopeRef::root(id.clone()), Input::Cancel { status })
                .await?;
            let next = chained_id(&id);
            if self.store.instance(&next).await?.is_none() {
                return Ok(());
            }
            id = next;
        }
    }

    /// Starts a sub-workflow or a continuation.
    async fn start_for(&self, start: &StartInstance) -> Result<(), Error> {
        // Thousands of them may be waiting, each of which would cost some requests to the store.
        let cause = start_cause(start.hops, start.parent.as_ref());
        let (name, now) = (&start.workflow, self.clock.now());
        if let Err(wait_ms) = self.registry.rates().check(name, cause, now) {
            let workflow = name.as_str().into();
            return Err(Error::TooFast { workflow, wait_ms });
        }
        if self.given_up(start).await?.is_some() || self.goes_on_again(start).await? {
            return Ok(());
        }
        let resolved = self
            .registry
            .resolve(&start.workflow, start.version.as_deref())
            .await?;
        let definition = match resolved {
            Ok(definition) => definition,
            Err(unknown) => {
                let error = WorkflowError::new(names::SUBFLOW_NOT_FOUND, unknown.to_string());
                return self.refuse(start, error).await;
            }
        };
        if let Some(error) = self.closed(&definition, &start.id).await? {
            return self.refuse(start, error).await;
        }
        let ends_with_parent = start.on_parent_end == Some(OnParentEnd::Terminate);
        let new = NewInstance {
            input: start.input.clone(),
            key: None,
            parent: start.parent.clone(),
            continued_from: start.continued_from.clone(),
            timeout: start.timeout.clone(),
            depth: start.depth,
            hops: start.hops,
            events: Vec::new(),
            trace: start.trace.clone(),
        };
        match self
            .create(&definition, start.id.clone(), new, ends_with_parent)
            .await?
        {
            Ok(_) if ends_with_parent => self.follow_parent(start).await,
            Ok(_) => {
                self.follow_suspended(start).await?;
                self.follow_continued(start).await
            }
            Err(error) => self.refuse(start, error).await,
        }
    }

    /// The outcome of the instance that should have been continued by this one.
    async fn given_up(&self, start: &StartInstance) -> Result<Option<EndStatus>, Error> {
        let Some(id) = &start.continued_from else {
            return Ok(None);
        };
        let instance = self.store.instance(id).await?;
        Ok(instance.and_then(|instance| match instance.state.status {
            Status::Running | Status::Completed => None,
            Status::Faulted => Some(EndStatus::Faulted),
            Status::Cancelled => Some(EndStatus::Cancelled),
            Status::Terminated => Some(EndStatus::Terminated),
        }))
    }

    /// With this the instance that continues as this one has ended, unless it was cancelled before
    /// this one existed.
    async fn follow_continued(&self, start: &StartInstance) -> Result<(), Error> {
        let Some(id) = &start.continued_from else {
            return Ok(());
        };
        if let Some(status) = self.given_up(start).await? {
            let root = ScopeRef::root(start.id.clone());
            return self.send(root, Input::Cancel { status }).await;
        }
        let done = Input::SubflowDone {
            call: start.call,
            result: Ok(Data::NULL),
            terminate: false,
            generation: 0,
        };
        self.send(ScopeRef::root(id.clone()), done).await
    }

    /// The parent may have ended before its sub-workflow was created.
    async fn follow_parent(&self, start: &StartInstance) -> Result<(), Error> {
        let Some(parent) = &start.parent else {
            return Ok(());
        };
        let parent = self.store.instance(&parent.scope.instance).await?;
        if parent.is_none_or(|parent| parent.state.status.ended()) {
            let input = Input::Cancel {
                status: EndStatus::Terminated,
            };
            self.send(ScopeRef::root(start.id.clone()), input).await?;
        }
        Ok(())
    }

    /// Notifies the waiting instance. For a continuation that is the instance that it continues.
    pub(crate) async fn refuse(
        &self,
        start: &StartInstance,
        error: WorkflowError,
    ) -> Result<(), Error> {
        let waits = match (&start.continued_from, &start.parent) {
            (Some(id), _) => Some((ScopeRef::root(id.clone()), start.call)),
            (None, Some(parent)) if !parent.detached => Some((parent.scope.clone(), parent.call)),
            _ => None,
        };
        let Some((scope, call)) = waits else {
            tracing::error!(workflow = start.workflow, %error, "nothing was started");
            return Ok(());
        };
        let input = Input::SubflowDone {
            call,
            result: Err(error),
            terminate: false,
            generation: start.again,
        };
        self.send(scope, input).await
    }
}
