//! An operator's actions on an instance affect the sub-workflows that it waits for.

use std::collections::HashSet;

use swirl_engine::{awaited, continuation_id};
use swirl_model::WorkflowError;
use swirl_model::error::names;
use swirl_model::event::{Event, HistoryEntry, Input, StartInstance};
use swirl_model::ids::{InstanceId, ScopeId, ScopeRef};
use swirl_model::instance::{Instance, ParentLink, Status};
use swirl_model::scope::{ActionStep, Scope};
use swirl_ports::{OutboxEntry, Suspended};

use crate::{Error, Service};

/// Continuations of one sub-workflow are followed up to this number.
const CONTINUATIONS_MAX: usize = 10_000;

impl Service {
    /// Suspends or resumes, like the instance itself, the sub-workflows that it waits for and its continuation, and
    /// theirs in turn. Those that are created later follow it on creation. If this process dies here, the remaining work
    /// is still in the outboxes of those already reached. `outbox`: the entries of the instance that this completes.
    pub(crate) async fn suspend_awaited(
        &self,
        id: &InstanceId,
        outbox: Vec<OutboxEntry>,
    ) -> Result<(), Error> {
        let mut open = vec![(id.clone(), outbox)];
        let mut seen = HashSet::new();
        while let Some((id, outbox)) = open.pop() {
            if seen.insert(id.clone())
                && let Some(instance) = self.store.instance(&id).await?
            {
                let mut followers = self.awaited_by(&instance).await?;
                let continuation = continuation_id(&instance.header);
                followers.extend(self.goes_on_as(continuation).await?);
                for follower in followers {
                    let outbox = self.follow(&follower, &id, None).await?;
                    open.push((follower, outbox));
                }
            }
            if !outbox.is_empty() {
                self.store.flushed(&outbox).await?;
            }
        }
        Ok(())
    }

    /// An instance was suspended or resumed because of the instance `with`, by a process that may have died since. If
    /// `with` has changed meanwhile, the instance follows it.
    pub(crate) async fn follow_again(
        &self,
        id: &InstanceId,
        with: &InstanceId,
        on: bool,
    ) -> Result<(), Error> {
        let outbox = self.follow(id, with, Some(on)).await?;
        self.suspend_awaited(id, outbox).await
    }

    /// The running sub-workflows that an instance waits for.
    pub async fn awaited_by(&self, instance: &Instance) -> Result<Vec<InstanceId>, Error> {
        let mut found = Vec::new();
        for scope in self.store.scopes(&instance.header.id).await? {
            let Some(child) = awaited(&instance.header, &scope) else {
                continue;
            };
            found.extend(self.goes_on_as(child).await?);
        }
        Ok(found)
    }

    /// Suspends or resumes an instance like the instance `with`. Returns the resulting entries of its outbox. `before`: its
    /// state that is already because of `with`; an operator may have changed it since.
    ///
    /// This process may be late: an operator resumes `with` after it was read as suspended, and those who pass that on
    /// find an instance that isn't suspended yet. So `with` is read again after each change. If this process dies before
    /// that, the entries in the outbox repeat it.
    async fn follow(
        &self,
        id: &InstanceId,
        with: &InstanceId,
        mut before: Option<bool>,
    ) -> Result<Vec<OutboxEntry>, Error> {
        let mut outbox = Vec::new();
        // Another round means that an operator has given another command meanwhile.
        loop {
            let leader = self.store.instance(with).await?;
            let on = match leader.filter(|leader| leader.state.status == Status::Running) {
                Some(leader) => leader.state.suspended,
                None => self.is_held_by_parent(id).await?,
            };
            if before == Some(on) {
                return Ok(outbox);
            }
            let changed = self.set_suspended(id, on, with).await?;
            if changed.is_empty() {
                return Ok(outbox);
            }
            outbox.extend(changed);
            before = Some(on);
        }
    }

    /// Whether the instance that waits for this one is suspended.
    async fn is_held_by_parent(&self, id: &InstanceId) -> Result<bool, Error> {
        let instance = self.store.instance(id).await?;
        let parent = instance.and_then(|instance| instance.header.parent.clone());
        match parent.filter(|parent| !parent.detached) {
            Some(parent) => self.is_suspended(&parent.scope.instance).await,
            None => Ok(false),
        }
    }

    /// Suspends or resumes an instance because of the instance `with`. Returns the resulting entries of its outbox, none
    /// if it doesn't run or is like this already.
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
        // Before the change, as for an operator's own action. If the process dies in between, the history has the entry
        // twice.
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
            tracing::warn!(%error, "its suspension or resumption is missing from the history");
        }
        let done = self.store.suspend(id, on, Some(with)).await?;
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

    /// An operator retries an action that waited for a sub-workflow. If an instance of the sub-workflow exists, it
    /// continues where it failed, and its completed work is not repeated. Returns false if there is none.
    pub(crate) async fn goes_on_again(&self, start: &StartInstance) -> Result<bool, Error> {
        if start.again == 0 || self.waiting_scope(start).await?.is_none() {
            return Ok(start.again > 0);
        }
        let Some(child) = self.last_of(start.id.clone()).await? else {
            return Ok(false);
        };
        match child.state.status {
            // It was already retried by itself, and will report its outcome.
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

    /// Delivers the result of a sub-workflow that was retried by itself while its faulted parent couldn't accept the
    /// result.
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

    /// Suspends a new instance if the instance that created it is suspended and waits for it.
    pub(crate) async fn follow_suspended(&self, start: &StartInstance) -> Result<(), Error> {
        let parent = start.parent.as_ref().filter(|parent| !parent.detached);
        let parent = parent.map(|parent| &parent.scope.instance);
        for starter in parent.into_iter().chain(&start.continued_from) {
            if !self.is_suspended(starter).await? {
                continue;
            }
            // It may already wait for others.
            let outbox = self.follow(&start.id, starter, None).await?;
            return self.suspend_awaited(&start.id, outbox).await;
        }
        Ok(())
    }

    async fn is_suspended(&self, id: &InstanceId) -> Result<bool, Error> {
        let instance = self.store.instance(id).await?;
        Ok(instance.is_some_and(|instance| instance.state.suspended))
    }

    /// The parent, if it handled the failure of this sub-workflow and continued, so that it wouldn't use the result of
    /// a retry.
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

    /// The instances that failed because this one did, nearest first. They continue together with it.
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

/// Whether the scope's current action failed with this sub-workflow and no handler took the error.
fn failed_with(scope: &Scope, call: u32) -> bool {
    scope.fault.is_some() && scope.list().is_some_and(|run| run.child == Some(call))
}
