//! Effects that commits leave in the outbox.

use async_trait::async_trait;
use swirl_engine::{NewInstance, chained_id};
use swirl_model::error::names;
use swirl_model::event::{Command, Input, StartInstance};
use swirl_model::ids::{InstanceId, ScopeRef};
use swirl_model::instance::{EndStatus, Status};
use swirl_model::workflow::OnParentEnd;
use swirl_model::{Data, WorkflowError};
use swirl_ports::{InboxItem, PendingStart};
use swirl_runtime::Effects;

use crate::pending::is_counted;
use crate::start::start_cause;
use crate::{Error, Service};

#[async_trait]
impl Effects for Service {
    async fn carry_out(&self, instance: &InstanceId, command: &Command) -> Result<(), Error> {
        match command {
            Command::Publish(event) => self.publish_produced(instance, event).await,
            Command::Schedule { definition, at } => self.follow_end(definition, *at).await,
            Command::Start(start) => self.start_for(instance, start).await,
            Command::EndInstance { id, status } => self.end_chain(id, *status).await,
            Command::SuspendAwaited => self.suspend_awaited(instance, Vec::new()).await,
            Command::FollowSuspended { with, on } => self.follow_again(instance, with, *on).await,
            Command::Send { to, input } => self.send(to.clone(), (**input).clone()).await,
            // All other commands concern only the instance, and the commit has carried them out.
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

    /// Reports the end of a sub-workflow, or of the instance that continues it, to the instance that started it. For
    /// that instance both are a single call (docs/language.md#decision-36).
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

    /// Starts a sub-workflow or a continuation. If starts exceed the rate of the workflow, the start waits in the
    /// outbox of `instance`, as long as there is room for it.
    async fn start_for(&self, instance: &InstanceId, start: &StartInstance) -> Result<(), Error> {
        // Thousands of starts may be waiting, and trying each would cost several requests to the store.
        let cause = start_cause(start.hops, start.parent.as_ref());
        let (name, now) = (&start.workflow, self.clock.now());
        let pending = PendingStart {
            workflow: name,
            id: &start.id,
        };
        let is_counted = is_counted(start);
        let tried = match self.registry.rates().check(name, cause, now) {
            Ok(()) => self.start_now(instance, start).await,
            Err(wait_ms) => {
                let workflow = name.as_str().into();
                Err(Error::TooFast { workflow, wait_ms })
            }
        };
        match tried {
            Ok(()) if is_counted => self.waits_no_longer(pending, start.at).await,
            Err(too_fast @ Error::TooFast { .. }) if is_counted => {
                match self.wait_for_rate(pending).await? {
                    Ok(()) => Err(too_fast),
                    Err(error) => self.refuse_by(instance, start, error).await,
                }
            }
            tried => tried,
        }
    }

    async fn start_now(&self, instance: &InstanceId, start: &StartInstance) -> Result<(), Error> {
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
                return self.refuse_by(instance, start, error).await;
            }
        };
        if let Some(error) = self.closed(&definition, &start.id).await? {
            return self.refuse_by(instance, start, error).await;
        }
        let ends_with_parent = start.on_parent_end == Some(OnParentEnd::Terminate);
        let new = NewInstance {
            input: start.input.clone(),
            key: None,
            parent: start.parent.clone(),
            continued_from: start.continued_from.clone(),
            scheduled_at: start.scheduled_at,
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
            Err(error) => self.refuse_by(instance, start, error).await,
        }
    }

    /// The outcome of the instance that this one should continue, if that instance has already ended without it.
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

    /// Ends the instance that continues as this one. If it was cancelled before this one existed, this one is cancelled
    /// instead.
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

    /// Cancels a sub-workflow whose parent ended before the sub-workflow was created.
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

    /// As [`Service::refuse`]. If no instance waits for the start, the reason goes into the history of the instance
    /// that requested it.
    async fn refuse_by(
        &self,
        instance: &InstanceId,
        start: &StartInstance,
        error: WorkflowError,
    ) -> Result<(), Error> {
        let is_detached = start.parent.as_ref().is_none_or(|link| link.detached);
        if start.continued_from.is_none() && is_detached {
            let workflow = &start.workflow;
            // Thousands of starts may exceed a limit.
            match &*error.name == names::LIMIT_EXCEEDED {
                true => tracing::debug!(%instance, workflow, %error, "no instance was started"),
                false => tracing::error!(%instance, workflow, %error, "no instance was started"),
            }
            self.note_refused(instance, &start.workflow, &error).await;
        }
        self.refuse(start, error).await
    }

    /// Notifies the waiting instance. For a continuation, that is the instance being continued.
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
