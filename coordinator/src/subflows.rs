//! What an operator does with an instance, and the sub-workflows that it waits for.

use std::collections::HashSet;

use swirl_engine::awaited;
use swirl_model::event::StartInstance;
use swirl_model::ids::InstanceId;
use swirl_model::instance::{Instance, Status};
use swirl_model::scope::ActionStep;

use crate::{Error, Service};

/// How many continuations of one sub-workflow are followed.
const CONTINUATIONS_MAX: usize = 10_000;

impl Service {
    /// Suspends or resumes the sub-workflows that the instance waits for, and those that these wait
    /// for. It is suspended itself by then: what it starts from now on is suspended as it is created.
    pub(crate) async fn suspend_awaited(&self, id: &InstanceId, on: bool) -> Result<(), Error> {
        let mut open = vec![id.clone()];
        let mut seen = HashSet::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id.clone()) {
                continue;
            }
            let Some(instance) = self.store.instance(&id).await? else {
                continue;
            };
            for scope in self.store.scopes(&id).await? {
                let Some(child) = awaited(&instance.header, &scope) else {
                    continue;
                };
                if let Some(child) = self.goes_on_as(child).await? {
                    self.set_suspended(&child, on).await?;
                    open.push(child);
                }
            }
        }
        Ok(())
    }

    async fn set_suspended(&self, id: &InstanceId, on: bool) -> Result<(), Error> {
        let poke = self.store.suspend(id, on, self.clock.now()).await?;
        self.queue.push(poke.unwrap_or_default()).await;
        Ok(())
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
            self.set_suspended(&start.id, true).await?;
            // Resumed meanwhile: who did that may not have seen the new one.
            if !self.is_suspended(starter).await? {
                self.set_suspended(&start.id, false).await?;
            }
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
