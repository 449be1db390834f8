//! What an operator does with an instance, and the sub-workflows that it waits for.

use std::collections::HashSet;

use swirl_engine::awaited;
use swirl_model::event::StartInstance;
use swirl_model::ids::InstanceId;
use swirl_model::instance::{Instance, Status};
use swirl_model::scope::ActionStep;
use swirl_ports::{OutboxEntry, Suspended};

use crate::{Error, Service};

/// How many continuations of one sub-workflow are followed.
const CONTINUATIONS_MAX: usize = 10_000;

impl Service {
    /// Brings the sub-workflows that the instance waits for, and those that these wait for, into line with it:
    /// suspended, or not. What it starts from now on follows it as it is created. If this process dies
    /// here, the outboxes of those that it has come to still say what is to be done.
    pub(crate) async fn suspend_awaited(&self, id: &InstanceId) -> Result<(), Error> {
        let mut open = vec![(id.clone(), Vec::new())];
        let mut seen = HashSet::new();
        while let Some((id, outbox)) = open.pop() {
            if seen.insert(id.clone())
                && let Some(instance) = self.store.instance(&id).await?
            {
                for child in self.awaited_by(&instance).await? {
                    let outbox = self.set_suspended(&child, instance.state.suspended).await?;
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
    async fn awaited_by(&self, instance: &Instance) -> Result<Vec<InstanceId>, Error> {
        let mut found = Vec::new();
        for scope in self.store.scopes(&instance.header.id).await? {
            let Some(child) = awaited(&instance.header, &scope) else {
                continue;
            };
            found.extend(self.goes_on_as(child).await?);
        }
        Ok(found)
    }

    /// Returns what the instance's outbox has of it.
    async fn set_suspended(&self, id: &InstanceId, on: bool) -> Result<Vec<OutboxEntry>, Error> {
        if self.is_suspended(id).await? == on {
            return Ok(Vec::new());
        }
        let done = self.store.suspend(id, on, self.clock.now()).await?;
        let Suspended { wake, outbox } = done.unwrap_or_default();
        self.queue.push(wake).await;
        Ok(outbox)
    }

    /// The instance that a sub-workflow goes on as, after any number of `continueAs`.
    async fn goes_on_as(&self, mut id: InstanceId) -> Result<Option<InstanceId>, Error> {
        for _ in 0..CONTINUATIONS_MAX {
            let Some(instance) = self.store.instance(&id).await? else {
                return Ok(None);
            };
            if instance.state.status == Status::Running {
                return Ok(Some(id));
            }
            id = swirl_engine::chained_id(&id);
        }
        Ok(None)
    }

    /// What is created for an instance that is suspended is suspended as well, unless nobody waits
    /// for it.
    pub(crate) async fn follow_suspended(&self, start: &StartInstance) -> Result<(), Error> {
        let parent = start.parent.as_ref().filter(|parent| !parent.detached);
        let parent = parent.map(|parent| &parent.scope.instance);
        for starter in parent.into_iter().chain(&start.continued_from) {
            if !self.is_suspended(starter).await? {
                continue;
            }
            // It waits for nobody yet: nothing follows from it.
            let mut outbox = self.set_suspended(&start.id, true).await?;
            // Resumed meanwhile: who did that may not have seen the new one.
            if !self.is_suspended(starter).await? {
                outbox.extend(self.set_suspended(&start.id, false).await?);
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

    /// The parent that took the failure of this sub-workflow and has gone on: nobody would take what a
    /// retry comes to.
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
        let scopes = self.store.scopes(id).await?;
        let mut scope = scopes.iter().filter(|scope| scope.id == parent.scope.scope);
        let step = scope.next().and_then(|scope| Some(&scope.list()?.step));
        let waits = step == Some(&ActionStep::Subflow { call: parent.call });
        let gone_on = found.state.status.ended() || !waits;
        Ok(gone_on.then(|| id.clone()))
    }
}
