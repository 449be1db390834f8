//! An operator's actions on an instance, and the sub-workflows that it waits for.

use std::collections::HashSet;

use swirl_engine::awaited;
use swirl_model::WorkflowError;
use swirl_model::error::names;
use swirl_model::event::{Event, HistoryEntry, Input, StartInstance};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::{Instance, ParentLink, Status};
use swirl_model::scope::{ActionStep, Scope};
use swirl_ports::{OutboxEntry, Suspended};

use crate::{Error, Service};

/// The number of continuations of one sub-workflow that are followed.
const CONTINUATIONS_MAX: usize = 10_000;

impl Service {
    /// Suspends or resumes the sub-workflows that the instance waits for, and those that these wait for, like the
    /// instance itself. A sub-workflow that it starts from now on follows it as it is created. If this process dies
    /// here, the outboxes of those that it has reached still have the remaining work.
    pub(crate) async fn suspend_awaited(&self, id: &InstanceId) -> Result<(), Error> {
        let mut open = vec![(id.clone(), Vec::new())];
        let mut seen = HashSet::new();
        while let Some((id, outbox)) = open.pop() {
            if seen.insert(id.clone())
                && let Some(instance) = self.store.instance(&id).await?
            {
                for child in self.awaited_by(&instance).await? {
                    let outbox = self
                        .set_suspended(&child, instance.state.suspended, &id)
                        .await?;
                    open.push((child, outbox));
                }
            }
            if !outbox.is_empty() {
                self.store.flushed(&outbox).await?;
            }
        }
        Ok(())
    }

    /// The running sub-workflows that an instance waits for.
    pub(crate) async fn awaited_by(&self, instance: &Instance) -> Result<Vec<InstanceId>, Error> {
        let mut found = Vec::new();
        for scope in self.store.scopes(&instance.header.id).await? {
            let Some(child) = awaited(&instance.header, &scope) else {
                continue;
            };
            found.extend(self.goes_on_as(child).await?);
        }
        Ok(found)
    }

    /// Returns the entries that the instance's outbox has for it. `with`: the one that it follows.
    async fn set_suspended(
        &self,
        id: &InstanceId,
        on: bool,
        with: &InstanceId,
    ) -> Result<Vec<OutboxEntry>, Error> {
        let instance = self.store.instance(id).await?;
        let follows = instance.is_some_and(|instance| {
            instance.state.status == Status::Running && instance.state.suspended != on
        });
        if !follows {
            return Ok(Vec::new());
        }
        // Before it is done, as for an operator's own action: a process that dies in between leaves the line twice.
        let entry = HistoryEntry {
            at: self.clock.now(),
            scope: ScopeId::root(),
            event: Event::Operated {
                action: if on { "suspend" } else { "resume" }.into(),
                by: None,
                reason: None,
                state: None,
                from: None,
                to: None,
                batch: None,
                with: Some(with.clone()),
            },
            data: None,
            data_until: None,
        };
        if let Err(error) = self.store.note(id, entry).await {
            tracing::warn!(%error, "that it is suspended or resumed is missing in the history");
        }
        let done = self.store.suspend(id, on, self.clock.now()).await?;
        let Suspended { wake, outbox } = done.unwrap_or_default();
        self.queue.push(wake).await;
        Ok(outbox)
    }

    /// The running instance that continues a sub-workflow, after any number of `continueAs`.
    async fn goes_on_as(&self, id: InstanceId) -> Result<Option<InstanceId>, Error> {
        let last = self.last_of(id).await?;
        let running = last.filter(|instance| instance.state.status == Status::Running);
        Ok(running.map(|instance| instance.header.id.clone()))
    }

    /// The last instance of a sub-workflow, after any number of `continueAs`.
    async fn last_of(&self, mut id: InstanceId) -> Result<Option<Instance>, Error> {
        let mut last = None;
        for _ in 0..CONTINUATIONS_MAX {
            let Some(instance) = self.store.instance(&id).await? else {
                break;
            };
            let is_over = instance.state.status != Status::Running;
            last = Some(instance);
            if !is_over {
                break;
            }
            id = swirl_engine::chained_id(&id);
        }
        Ok(last)
    }

    /// An operator's retry has come to an action that waited for a sub-workflow: an existing instance of it continues
    /// where it failed, and nothing that it has done is repeated. False: there is none.
    pub(crate) async fn goes_on_again(&self, start: &StartInstance) -> Result<bool, Error> {
        if start.again == 0 || self.waiting_scope(start).await?.is_none() {
            return Ok(start.again > 0);
        }
        let Some(child) = self.last_of(start.id.clone()).await? else {
            return Ok(false);
        };
        match child.state.status {
            // Its own retry came first. It will report the outcome.
            Status::Running => {}
            Status::Faulted => {
                self.send(ScopeRef::root(child.header.id.clone()), Input::Retry)
                    .await?;
            }
            Status::Completed => self.deliver(start, child).await?,
            status => {
                let message = format!("the sub-workflow was {}", status.as_str());
                let error = WorkflowError::new(names::SUBFLOW_FAILED, message);
                self.refuse(start, error).await?;
            }
        }
        Ok(true)
    }

    /// It was retried by itself, and its parent, which was faulted, could not take the result.
    async fn deliver(&self, start: &StartInstance, child: Instance) -> Result<(), Error> {
        let Some(parent) = &start.parent else {
            return Ok(());
        };
        let done = Input::SubflowDone {
            call: start.call,
            result: Ok(child.state.output.unwrap_or_default()),
            terminate: false,
            generation: start.again,
        };
        self.send(parent.scope.clone(), done).await
    }

    /// The scope that waits for the started instance, if it still does.
    async fn waiting_scope(&self, start: &StartInstance) -> Result<Option<Scope>, Error> {
        let Some(parent) = &start.parent else {
            return Ok(None);
        };
        let scope = self.scope_of(parent).await?;
        Ok(scope.filter(|scope| waits_for(scope, start.call)))
    }

    async fn scope_of(&self, parent: &ParentLink) -> Result<Option<Scope>, Error> {
        let scopes = self.store.scopes(&parent.scope.instance).await?;
        Ok(scopes
            .into_iter()
            .find(|scope| scope.id == parent.scope.scope))
    }

    /// An instance that is created for a suspended one is suspended as well, unless nothing waits for
    /// it.
    pub(crate) async fn follow_suspended(&self, start: &StartInstance) -> Result<(), Error> {
        let parent = start.parent.as_ref().filter(|parent| !parent.detached);
        let parent = parent.map(|parent| &parent.scope.instance);
        for starter in parent.into_iter().chain(&start.continued_from) {
            if !self.is_suspended(starter).await? {
                continue;
            }
            // It isn't waited for yet: nothing follows from it.
            let mut outbox = self.set_suspended(&start.id, true, starter).await?;
            // Resumed meanwhile: that process may not have seen the new one.
            if !self.is_suspended(starter).await? {
                outbox.extend(self.set_suspended(&start.id, false, starter).await?);
            }
            self.store.flushed(&outbox).await?;
            return Ok(());
        }
        Ok(())
    }

    async fn is_suspended(&self, id: &InstanceId) -> Result<bool, Error> {
        let instance = self.store.instance(id).await?;
        Ok(instance.is_some_and(|instance| instance.state.suspended))
    }

    /// The parent that took the failure of this sub-workflow and has continued: the result of a retry would not be
    /// used.
    pub(crate) async fn parent_gone_on(
        &self,
        instance: &Instance,
    ) -> Result<Option<InstanceId>, Error> {
        let parent = instance.header.parent.as_ref();
        let Some(parent) = parent.filter(|parent| !parent.detached) else {
            return Ok(None);
        };
        let id = &parent.scope.instance;
        let Some(found) = self.store.instance(id).await? else {
            return Ok(None);
        };
        let scope = self.scope_of(parent).await?;
        let gone_on = match found.state.status {
            Status::Running => !scope.is_some_and(|scope| waits_for(&scope, parent.call)),
            Status::Faulted => !scope.is_some_and(|scope| failed_with(&scope, parent.call)),
            Status::Completed | Status::Cancelled | Status::Terminated => true,
        };
        Ok(gone_on.then(|| id.clone()))
    }

    /// The instances that failed because this one did, from the nearest on. They continue with it.
    pub(crate) async fn failed_with_it(&self, instance: &Instance) -> Result<Vec<Instance>, Error> {
        let mut failed: Vec<Instance> = Vec::new();
        loop {
            let header = &failed.last().unwrap_or(instance).header;
            let Some(parent) = header.parent.as_ref().filter(|parent| !parent.detached) else {
                return Ok(failed);
            };
            let found = self.store.instance(&parent.scope.instance).await?;
            match found {
                Some(found) if found.state.status == Status::Faulted => failed.push(found),
                _ => return Ok(failed),
            }
        }
    }
}

fn waits_for(scope: &Scope, call: u32) -> bool {
    scope
        .list()
        .is_some_and(|run| run.step == ActionStep::Subflow { call })
}

/// Whether the scope's current action has failed with this sub-workflow, and no handler took the error.
fn failed_with(scope: &Scope, call: u32) -> bool {
    scope.fault.is_some() && scope.list().is_some_and(|run| run.child == Some(call))
}
